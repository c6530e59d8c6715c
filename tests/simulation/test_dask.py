"""Backtests and studies on a Dask cluster of two processes, of which one is killed while it works: the same digits."""

from __future__ import annotations

import os
import signal
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nextlabel as nl
from nextlabel.cli.app import run
from studies import growth

TRUTHS = np.random.default_rng(3).integers(0, 2, 24)
LABELS = {
    "task": [f"t{k}" for k in range(24) for _ in range(5)],
    "worker": [f"w{(k + j) % 9}" for k in range(24) for j in range(5)],
    "label": [
        str(truth if right else 1 - truth)
        for truth, some in zip(TRUTHS, np.random.default_rng(4).random((24, 5)) < 0.75, strict=True)
        for right in some
    ],
}
GOLD = {"task": [f"t{k}" for k in range(24)], "label": [str(one) for one in TRUTHS]}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    from distributed import LocalCluster

    with warnings.catch_warnings():
        warnings.simplefilter("default")
        with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as made:
            yield made


def killing(cluster: Any) -> Callable[[float], None]:
    """Progress that kills a worker process when the first part is done."""
    pid = [next(iter(cluster.workers.values())).pid]

    def show(fraction: float) -> None:
        if pid and fraction > 0:
            os.kill(pid.pop(), signal.SIGKILL)

    return show


@pytest.mark.slow
@pytest.mark.parametrize(
    "which", [{"policies": ["index", "uniform"], "prior": (2.0, 1.0)}, {"policies": ["crowd"]}], ids=["alike", "crowd"]
)
def test_a_backtest_has_the_same_digits_after_a_worker_was_killed(cluster: Any, which: dict[str, Any]) -> None:
    asked: dict[str, Any] = {**which, "labels_per_task": [1.0, 2.0], "replications": 4, "seed": 5}
    here = nl.backtest(LABELS, GOLD, **asked)
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        engine = nl.Engine("dask", scheduler=cluster.scheduler_address)
        there = nl.backtest(LABELS, GOLD, engine=engine, progress=killing(cluster), **asked)
    assert there.points == here.points and len(cluster.workers) >= 1


@pytest.mark.slow
def test_a_study_on_a_cluster(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(growth, "QUICK_TASKS", (10, 20))
    monkeypatch.setattr(growth, "names", lambda **_: ["index", "uniform"])
    words = ["reproduce", "growth", "--quick", "--replications", "6"]
    assert run([*words, "--out", str(tmp_path / "here")]) == 0
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        where = ["--engine", "dask", "--scheduler", cluster.scheduler_address]
        assert run([*words, *where, "--out", str(tmp_path / "there")]) == 0
    here, there = (sorted((tmp_path / part / "growth").glob("*.csv")) for part in ("here", "there"))
    assert here and [one.read_text() for one in here] == [one.read_text() for one in there]


def test_flags_of_the_other_engine_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for words, said in (
        (["--scheduler", "tcp://x:1"], "--engine dask"), (["--engine", "dask", "--jobs", "2"], "--engine local"),
        (["--engine", "dask"], "needs a scheduler"),
    ):  # fmt: skip
        for command in (["reproduce", "growth"], ["backtest", "labels.csv"]):
            assert run([*command, *words]) == 2
            assert said in capsys.readouterr().err
