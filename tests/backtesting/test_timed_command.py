"""``nextlabel backtest --replay timed`` from outside, on a small record with times made here."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from nextlabel.cli.app import run

HEAD = ["task", "worker", "label", "batch", "started", "submitted"]


def timed_rows(tasks: int = 24, workers: int = 8, each: int = 4) -> tuple[list[list[str]], list[int]]:
    """Two batches one after the other; in each every worker does task after task, a label begun each ten seconds."""
    rng = np.random.default_rng(7)
    truth = rng.integers(0, 2, tasks)
    skill = np.linspace(0.5, 0.95, workers)
    rows, clock = [], datetime(2026, 3, 1, 9)
    for batch in (0, 1):
        for j in range(workers):
            for x in range(batch * tasks // 2, (batch + 1) * tasks // 2):
                if (x + j) % workers < each:
                    clock += timedelta(seconds=10)
                    said = int(truth[x] if rng.random() < skill[j] else 1 - truth[x])
                    handed_in = clock + timedelta(seconds=int(rng.integers(5, 60)))
                    rows.append([f"t{x}", f"w{j}", str(said), f"b{batch}", clock.isoformat(), handed_in.isoformat()])
    return rows, truth.tolist()


def write(folder: Path, rows: list[list[str]], truth: list[int], head: list[str] = HEAD) -> list[str]:
    labels, gold = folder / "labels.csv", folder / "gold.csv"
    labels.write_text("\n".join(",".join(row) for row in [head, *rows]) + "\n", encoding="utf-8")
    gold.write_text("task,label\n" + "".join(f"t{x},{y}\n" for x, y in enumerate(truth)), encoding="utf-8")
    return ["backtest", str(labels), "--gold", str(gold), "--replay", "timed", "--replications", "2"]


def test_a_record_with_its_own_times(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = [*write(tmp_path, *timed_rows()), "--labels-per-task", "2", "--turn-away"]
    page, out = tmp_path / "page.html", tmp_path / "out"
    assert run([*command, "--json", "--out", str(out), "--report", str(page)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["replay"], found["turn_away"], found["tasks"], found["workers"]) == ("timed", True, 24, 8)
    asked = [row for row in found["accuracy"] if row["asked"] and row["budget"] == 48]
    assert {row["policy"] for row in asked} == {"crowd", "crowd-uncertainty"}
    assert {row["readout"] for row in asked} == {"workers", "majority"}
    assert all(row["labels_used"] == 48 and row["half_width"] > 0 for row in asked)
    rests = " ".join(found["assumptions"])
    assert "workers come when they came and take as long as they took" in rests
    assert "leave nothing to chance" in rests
    assert sorted(path.name for path in out.iterdir()) == ["backtest.csv", "backtest.png", "savings.csv"]
    assert "take as long as they took" in page.read_text(encoding="utf-8")


def test_columns_of_times_with_other_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows, truth = timed_rows()
    head = ["task", "worker", "label", "batch", "opened", "closed"]
    command = [*write(tmp_path, rows, truth, head), "--policy", "crowd-uncertainty", "--labels-per-task", "2"]
    assert run(command) == 2
    assert "the labels have no times at which they were begun and handed in" in capsys.readouterr().err
    named = [*command, "--assigned-column", "opened", "--submitted-column"]
    assert run([*named, "shut"]) == 2
    assert "has no column 'shut'" in capsys.readouterr().err
    assert run([*named, "closed", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["replay"] == "timed"


def test_times_that_cannot_be(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows, truth = timed_rows()
    rows[5][5] = "2026-02-01T00:00:00"
    assert run([*write(tmp_path, rows, truth), "--out", str(tmp_path / "out")]) == 2
    assert "1 of 96 labels lack a time or were handed in before they were begun" in capsys.readouterr().err
    rows[5][5] = ""
    assert run(write(tmp_path, rows, truth)) == 2
    assert "1 of 96 labels lack a time or were handed in before they were begun" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
