"""Chunks: short enough for Ctrl-C, and without effect on the results."""

from __future__ import annotations

import signal
import subprocess
import sys

import numpy as np
import pytest

from nextlabel.arrays import Floats
from nextlabel.simulation import engine as engine_module
from nextlabel.simulation.engine import CHUNK_SECONDS, Engine, run_chunks

#: A campaign that says when its first chunk begins.
CAMPAIGN = """
import sys
from nextlabel.policies.rollout_arrays import Rollout

real = Rollout.play

def noisy(*given, **more):
    sys.stderr.write("begun\\n")
    sys.stderr.flush()
    return real(*given, **more)

Rollout.play = noisy
from nextlabel.cli.app import main

main()
"""
#: Seconds after which a child that does not end is taken to hang; with long chunks it took half an hour.
HANGS = 300


@pytest.mark.parametrize(("cost", "count"), [(1e-6, 50_000), (0.01, 3000), (0.7, 40), (30.0, 20)])
def test_chunks_take_about_a_second(cost: float, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    took: list[float] = []
    shares: list[float] = []
    monkeypatch.setattr(engine_module, "perf_counter", lambda: now)

    def chunk(first: int, size: int) -> tuple[Floats]:
        nonlocal now
        now += cost * size
        took.append(cost * size)
        return (np.arange(first, first + size, dtype=np.float64)[:, None],)

    (out,) = run_chunks(Engine(), chunk, count, shares.append)
    assert (out[:, 0] == np.arange(count)).all()
    assert max(took) <= max(CHUNK_SECONDS, cost)
    assert len(took) <= 40 + sum(took) / (0.5 * CHUNK_SECONDS)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


@pytest.mark.slow
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_an_interrupt_is_heard_in_a_long_simulation(jobs: str) -> None:
    words = ["simulate", "--tasks", "1000", "--budget", "3000", "--replications", "20000000", "--policy", "okg"]
    child = subprocess.Popen(
        [sys.executable, "-c", CAMPAIGN, *words, "--jobs", jobs],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert child.stderr is not None
        assert any(line == "begun\n" for line in child.stderr)
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=HANGS)
    finally:
        child.kill()
    assert child.returncode == 130
    assert out == ""
    assert err.endswith("error: interrupted, nothing was written.\n")
