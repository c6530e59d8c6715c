"""Clocks, fresh processes, and counters that tell how much work a call did."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, slots=True)
class Timed:
    """Best and median seconds of a few calls, and what the last one returned."""

    best: float
    median: float
    repeats: int
    answer: Any


def timed(call: Callable[[], Any], repeats: int) -> Timed:
    """Time ``call``; the caller has run it once before if it has anything to compile."""
    seconds = []
    answer = None
    for _ in range(repeats):
        begin = perf_counter()
        answer = call()
        seconds.append(perf_counter() - begin)
    return Timed(min(seconds), statistics.median(seconds), repeats, answer)


def in_fresh_process(job: str, **environment: str) -> dict[str, float]:
    """Run one job of ``benchmarks.child`` in a process of its own and return the numbers it reports."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.child", job],
        cwd=ROOT,
        env={**os.environ, **environment},
        check=True,
        capture_output=True,
        text=True,
    )
    answer: dict[str, float] = json.loads(done.stdout)
    return answer


@contextmanager
def counting(owner: type, name: str, amount: Callable[..., float]) -> Iterator[list[float]]:
    """Within the block, add ``amount(self, *arguments)`` to the list at every call of the method ``owner.name``."""
    counts: list[float] = []
    original = getattr(owner, name)

    def counted(self: Any, *args: Any, **kwargs: Any) -> Any:
        counts.append(amount(self, *args))
        return original(self, *args, **kwargs)

    setattr(owner, name, counted)
    try:
        yield counts
    finally:
        setattr(owner, name, original)


def seconds(x: float) -> str:
    """A duration for a person."""
    if x < 1e-3:
        return f"{x * 1e6:.0f} us"
    if x < 1.0:
        return f"{x * 1e3:.3g} ms"
    return f"{x:.3g} s"


def count(x: float) -> str:
    """A large number for a person."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if x >= size:
            return f"{x / size:.3g}{unit}"
    return f"{x:.3g}"
