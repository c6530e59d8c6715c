"""Every example runs: scripts say something, problem files go through every verb with the values in order."""

from __future__ import annotations

import json
import os
import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import nextlabel as nl
from nextlabel.cli.app import run
from tolerances import BOUND, EXACT

FOLDER = Path(__file__).parent.parent / "examples"
SCRIPTS = sorted(FOLDER.glob("*.py"))
FILES = sorted(FOLDER.glob("*.toml"))
ONE_CLASS = [path for path in FILES if path.stem != "two_classes"]
#: Flags win, so that a file can be solved exactly whatever its size.
SMALL = ["--tasks", "2", "--budget", "3"]


def stem(path: Path) -> str:
    return path.stem


@pytest.fixture
def answer(capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    def call(*arguments: str) -> Any:
        code = run([*arguments, "--json"])
        out, err = capsys.readouterr()
        assert code == 0, err
        return json.loads(out)

    return call


@pytest.mark.parametrize("path", SCRIPTS, ids=stem)
def test_script(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(path)])
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out.strip()
    assert os.listdir(tmp_path) == []


class TestFiles:
    def test_every_generalisation_has_one(self) -> None:
        problems = [nl.load_problem(path) for path in FILES]
        classes = [c for problem in problems for c in problem.classes]
        assert {c.prior.kind for c in classes} == {
            "beta",
            "dirichlet",
            "histogram",
            "logit-normal",
            "mixture",
            "one-coin",
        }
        assert {c.reward.kind for c in classes} == {"accuracy", "squared-error", "utility"}
        assert any(problem.label_cost > 0 for problem in problems)
        assert any(isinstance(problem.arrival_rate, nl.PiecewiseRate) for problem in problems)
        assert {len(problem.classes) for problem in problems} == {1, 2}

    @pytest.mark.parametrize("path", FILES, ids=stem)
    def test_says_when_to_use_it(self, path: Path) -> None:
        assert path.read_text(encoding="utf-8").startswith("# ")

    @pytest.mark.parametrize("path", FILES, ids=stem)
    def test_bound(self, path: Path, answer: Callable[..., Any]) -> None:
        assert answer("bound", "--problem", str(path))["certified"]

    @pytest.mark.parametrize("path", ONE_CLASS, ids=stem)
    def test_exact(self, path: Path, answer: Callable[..., Any]) -> None:
        found = answer("exact", "--problem", str(path), *SMALL, "--policy", "index")
        assert found["bound"] + BOUND >= found["value"] >= found["policy"]["value"] - EXACT - found["error"]

    @pytest.mark.parametrize("path", ONE_CLASS, ids=stem)
    def test_index(self, path: Path, answer: Callable[..., Any]) -> None:
        rows = answer("index", "--problem", str(path), *SMALL)["indices"]
        assert rows[0]["index"] > 0

    @pytest.mark.parametrize("path", ONE_CLASS, ids=stem)
    def test_simulate_index(self, path: Path, answer: Callable[..., Any]) -> None:
        found = answer("simulate", "--problem", str(path), *SMALL, "--policy", "index", "--replications", "20")
        assert 0 < found["policies"][0]["labels_used"] <= 3

    @pytest.mark.parametrize("path", FILES, ids=stem)
    def test_simulate(self, path: Path, answer: Callable[..., Any]) -> None:
        policies = ["--policy", "okg", "--policy", "uniform", "--replications", "20"]
        found = answer("simulate", "--problem", str(path), *policies)
        assert all(row["labels_used"] > 0 for row in found["policies"])
