"""``nextlabel workers`` and ``nextlabel audit``: tables, files, JSON, and sentences for bad input."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from nextlabel.cli.app import run


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Labels of four workers (one at chance, one against the grain) for 300 tasks, and their truth."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 2, 300)
    right = rng.random((300, 6)) < np.array([0.92, 0.9, 0.88, 0.85, 0.5, 0.1])
    said = np.where(right, truth[:, None], 1 - truth[:, None])
    rows = [f"t{x},w{j},{said[x, j]}" for x in range(300) for j in range(6)]
    Path("labels.csv").write_text("\n".join(["task,worker,label", *rows]), encoding="utf-8")
    Path("gold.csv").write_text("\n".join(["task,label", *(f"t{x},{truth[x]}" for x in range(300))]), encoding="utf-8")
    Path("few.csv").write_text("\n".join(["task,label", *(f"t{x},{truth[x]}" for x in range(0, 300, 4))]), "utf-8")
    return tmp_path


def test_workers_show_a_table(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["workers", "labels.csv"]) == 0
    out, err = capsys.readouterr()
    assert "6 workers in labels.csv" in out
    assert "Workers who stand out: at chance (1), against the grain (1)." in " ".join(out.split())
    assert "Agreement" in out and "6 workers." in err


def test_workers_as_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["workers", "labels.csv", "--gold", "few.csv", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert {one["worker"] for one in answer["workers"]} == {f"w{j}" for j in range(6)}
    assert len(answer["tasks"]) == 300 and answer["converged"]
    assert sum(one["gold"] is not None for one in answer["tasks"]) == 75
    first = answer["workers"][0]
    assert first["accuracy"]["low"] <= first["accuracy"]["mean"] <= first["accuracy"]["high"]
    assert {"sensitivity", "specificity", "bias", "confusion", "worth", "flags"} <= set(first)
    assert answer["read"][1]["known"] == 75


def test_results_are_written_and_audited(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["workers", "labels.csv", "--save", "results.csv", "--out", "out", "--report", "page.html"]) == 0
    capsys.readouterr()
    with Path("results.csv").open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert list(rows[0]) == ["task", "label", "probability", "labels", "gold"] and len(rows) == 300
    assert sorted(path.name for path in Path("out").iterdir()) == [
        "agreement.csv",
        "confusions.png",
        "tasks.csv",
        "workers.csv",
        "workers.png",
    ]
    page = Path("page.html").read_text(encoding="utf-8")
    assert "Who the workers are" in page and "data:image/png" in page and "against the grain" in page

    assert run(["audit", "results.csv", "few.csv"]) == 0
    out = capsys.readouterr().out
    assert "75 audited labels" in out and "whatever the model" in out
    assert run(["audit", "results.csv", "gold.csv", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["audited"] == answer["tasks"] == 300
    assert answer["low"] == answer["accuracy"] == answer["high"] == answer["right"] / 300


def test_labels_of_three_kinds(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [f"t{x},w{j},{'abc'[(x + (j == 3 and x % 5 == 0)) % 3]}" for x in range(60) for j in range(4)]
    Path("three.csv").write_text("\n".join(["task,worker,label", *rows]), encoding="utf-8")
    assert run(["workers", "three.csv", "--out", "out", "--save", "results.csv"]) == 0
    with Path("results.csv").open(encoding="utf-8") as stream:
        assert {row["label"] for row in csv.DictReader(stream)} == {"a", "b", "c"}
    assert "says_a_when_b" in Path("out/workers.csv").read_text(encoding="utf-8")


BAD = [
    ("task,label\na,1\nb,0\n", "has no column 'worker'"),
    ("task,worker,label\na,ann,1\nb,bob,1\n", "all of the 2 labels are 1"),
]


@pytest.mark.parametrize(("text", "said"), BAD)
def test_bad_labels_leave_nothing_behind(
    text: str, said: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("bad.csv").write_text(text, encoding="utf-8")
    before = sorted(folder.iterdir())
    assert run(["workers", "bad.csv", "--save", "results.csv", "--out", "out"]) == 2
    out, err = capsys.readouterr()
    assert out == "" and said in err.splitlines()[-1]
    assert sorted(folder.iterdir()) == before


def test_gold_for_unknown_tasks(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("other.csv").write_text("task,label\nz,1\n", encoding="utf-8")
    assert run(["workers", "labels.csv", "--gold", "other.csv"]) == 2
    assert "no gold for any task" in capsys.readouterr().err
    Path("other.csv").write_text("task,label\nz,1\nt0,1\n", encoding="utf-8")
    assert run(["workers", "labels.csv", "--gold", "other.csv"]) == 0
    assert "Gold for 1 task without labels left out." in capsys.readouterr().err


def test_one_worker_only(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("one.csv").write_text("task,worker,label\na,ann,1\nb,ann,0\n", encoding="utf-8")
    assert run(["workers", "one.csv"]) == 0
    assert "skill cannot be learnt" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["audit", "labels.csv", "gold.csv"], "no column 'probability'"),
        (["audit", "results.csv", "gold.csv", "--level", "95"], "level is 95"),
        (["audit", "results.csv", "other.csv"], "no audited task that has a result"),
    ],
)
def test_bad_audits(words: list[str], said: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("results.csv").write_text("task,label,probability\nt0,1,0.9\n", encoding="utf-8")
    Path("other.csv").write_text("task,label\nz,1\n", encoding="utf-8")
    assert run(words) == 2
    out, err = capsys.readouterr()
    assert out == "" and said in err.splitlines()[-1]
