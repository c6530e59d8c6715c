"""How solvers tell how far they are, a callable that takes a fraction between 0 and 1, and work on all cores."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from os import cpu_count
from typing import TypeVar

Progress = Callable[[float], None]
Item = TypeVar("Item")
Result = TypeVar("Result")


def part(progress: Progress | None, done: int, of: int) -> Progress | None:
    """Progress of piece ``done`` (counted from 0) of ``of`` equal pieces."""
    if progress is None:
        return None
    return lambda fraction: progress((done + fraction) / of)


def on_all_cores(
    work: Callable[[Item], Result], items: Sequence[Item], progress: Progress | None = None
) -> Iterator[Result]:
    """``work`` of each item, in their order; threads are enough, for kernels hold no lock, and one item needs none."""
    with nullcontext() if len(items) == 1 else ThreadPoolExecutor(max(1, min(len(items), cpu_count() or 1))) as pool:
        for done, result in enumerate(map(work, items) if pool is None else pool.map(work, items), start=1):
            yield result
            if progress is not None:
                progress(done / len(items))
