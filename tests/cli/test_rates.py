"""``nextlabel rates`` from the command line."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from nextlabel.cli.app import run


@pytest.fixture
def timed(tmp_path: Path) -> Path:
    """600 labels: a worker every 4 minutes, labels that take 2 minutes, both exponential."""
    rng = np.random.default_rng(0)
    now = datetime(2026, 3, 2, 8)
    rows = ["task,worker,label,assigned_at,submitted_at"]
    for k in range(600):
        now += timedelta(minutes=float(rng.exponential(4)))
        done = now + timedelta(minutes=float(rng.exponential(2)))
        rows.append(f"t{k % 120},w{k},{k % 2},{now.isoformat()},{done.isoformat()}")
    path = tmp_path / "labels.csv"
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


def test_rates_are_recovered(timed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["rates", str(timed), "--unit", "min", "--json", "--out", str(tmp_path / "out")]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["arrival_rate"] == pytest.approx(0.25, rel=0.12)
    assert answer["completion_rate"] == pytest.approx(0.5, rel=0.12)
    assert (tmp_path / "out" / "rates.png").stat().st_size > 5000


def test_rates_in_words_end_with_the_flags(timed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["rates", str(timed)]) == 0
    said = capsys.readouterr().out
    assert "Arrivals:" in said
    assert said.strip().splitlines()[-1].startswith("For plan, bound and simulate, time in hour: --arrival-rate 1")


def test_labels_without_times_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "labels.csv"
    path.write_text("task,worker,label\na,b,1\na,c,0\n", encoding="utf-8")
    assert run(["rates", str(path)]) == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith("error: 0 of 2 labels have a time")
