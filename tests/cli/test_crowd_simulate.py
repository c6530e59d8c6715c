"""``nextlabel simulate`` with workers who differ, from outside."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from nextlabel.cli.app import run

FILE = """
budget = 12
[[tasks]]
count = 6
prior = {kind = "fact", probability = 0.5}
[[workers]]
accuracy = 0.9
supply = 8
count = 4
[[workers]]
accuracy = 0.6
supply = 12
count = 4
"""
POLICIES = ["crowd", "crowd-uncertainty", "uniform"]


@pytest.fixture
def problem(tmp_path: Path) -> Path:
    path = tmp_path / "crowd.toml"
    path.write_text(FILE, encoding="utf-8")
    return path


def simulated(problem: Path, capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert run(["simulate", "--problem", str(problem), "--replications", "4", "--json", *words]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_policies_that_know_the_workers_or_learn_them(problem: Path, capsys: pytest.CaptureFixture[str]) -> None:
    known = simulated(problem, capsys, "--turn-away", "--channels", "known")
    learnt = simulated(problem, capsys, "--turn-away", "--channels", "learnt")
    for found, channels in ((known, "known"), (learnt, "learnt")):
        assert [row["name"] for row in found["policies"]] == POLICIES
        assert (found["turn_away"], found["channels"], found["replications"]) == (True, channels, 4)
        assert found["assumes"].startswith("Workers differ")
        assert all(row["labels_used"] == 12 for row in found["policies"])
    assert known["bound_per_task"] == learnt["bound_per_task"]
    best, *_ = ([row["mean_per_task"] for row in found["policies"]] for found in (known, learnt))
    assert best[0] > max(best[1:])
    assert known["policies"][0]["gap_percent"] < 3.0
    assert known["policies"][0]["mean_per_task"] > learnt["policies"][0]["mean_per_task"]
    assert known["policies"] != simulated(problem, capsys, "--turn-away", "--seed", "1")["policies"]


def test_turning_away_is_off_unless_asked_for(problem: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nobody = simulated(problem, capsys, "--policy", "uniform")
    assert (nobody["turn_away"], nobody["channels"]) == (False, "known")
    assert "Nobody is turned away" in nobody["assumes"]
    away = simulated(problem, capsys, "--policy", "uniform", "--turn-away")
    assert away["bound_per_task"] > nobody["bound_per_task"]
    assert away["policies"][0]["mean_per_task"] == nobody["policies"][0]["mean_per_task"]  # it never turns away


def test_in_words_and_files(problem: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--policy", "crowd-uncertainty", "--policy", "uniform", "--channels", "learnt", "--turn-away"]
    folder = tmp_path / "out"
    assert run(["simulate", "--problem", str(problem), "--replications", "2", *words, "--out", str(folder)]) == 0
    told = capsys.readouterr()
    assert "2 types of workers" in " ".join(told.out.split())
    assert "Policies learn the workers as labels come in and may turn workers away; the bound is that of" in told.err
    assert sorted(path.name for path in folder.iterdir()) == ["manifest.json", "policies.csv", "policies.png"]
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    assert (manifest["channels"], manifest["turn_away"]) == ("learnt", True)
    with (folder / "policies.csv").open(encoding="utf-8", newline="") as file:
        assert [row["name"] for row in csv.DictReader(file)] == ["crowd-uncertainty", "uniform"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--policy", "index"], "'index' takes workers to be alike"),
        (["--channels", "guessed"], "'known', 'learnt'"),
        (["--pending", "discard"], "--pending only has an effect with problems without workers"),
        (["--prices", "per-arrival"], "--prices only has an effect with problems without workers"),
    ],
)
def test_bad_flags(
    problem: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    assert run(["simulate", "--problem", str(problem), "--out", str(tmp_path / "out"), *words]) == 2
    told = capsys.readouterr()
    assert said in told.err and told.out == ""
    assert told.err.startswith("error: ") and told.err.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("command", ["simulate", "plan"])
def test_utilities_are_refused(command: str, tmp_path: Path, problem: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reward = 'count = 6\nreward = {kind = "utility", matrix = [[1, -5], [0, 1]]}'
    problem.write_text(FILE.replace("count = 6", reward, 1), encoding="utf-8")
    assert run(["bound", "--problem", str(problem), "--json"]) == 0
    capsys.readouterr()
    assert run([command, "--problem", str(problem), "--out", str(tmp_path / "out")]) == 2
    told = capsys.readouterr()
    assert "policies for workers who differ know one reward: how many tasks come out right." in told.err
    assert told.err.count("\n") == 1 and told.out == ""
    assert not (tmp_path / "out").exists()


def test_flags_that_need_workers(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["--turn-away"], ["--channels", "known"]):
        assert run(["simulate", "--tasks", "3", "--budget", "4", *words]) == 2
        assert f"{words[0]} only has an effect with workers in the problem" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["bound", "exact", "simulate", "plan"])
@pytest.mark.parametrize(
    ("worker", "said"),
    [
        ("confusion = [[0.9, 0.2], [0.1, 0.9]]\nsupply = 4", "if the truth is 0 are 0.9, 0.2, which sum to 1.1"),
        ("accuracy = 0.9\nsupply = 0", "supply of a type of workers is 0"),
        ("accuracy = 0.9\nsupply = 2.5", "supply of a type of workers is 2.5, which is not a whole number"),
        ("accuracy = 1.2\nsupply = 4", "accuracy 1.2 is outside [0, 1]"),
        ("supply = 4", "does not say how its workers answer"),
    ],
)
def test_bad_workers(command: str, worker: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "crowd.toml"
    path.write_text(FILE + f"[[workers]]\n{worker}\n", encoding="utf-8")
    out = ["--out", str(tmp_path / "out")] if command in ("simulate", "plan") else []
    assert run([command, "--problem", str(path), *out]) == 2
    told = capsys.readouterr()
    assert said in told.err and told.out == ""
    assert told.err.startswith("error: ") and told.err.count("\n") == 1
    assert [one.name for one in tmp_path.iterdir()] == ["crowd.toml"]
