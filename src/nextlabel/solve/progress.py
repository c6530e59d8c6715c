"""How solvers tell how far they are: a callable that takes a fraction between 0 and 1."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[float], None]


def part(progress: Progress | None, done: int, of: int) -> Progress | None:
    """Progress of piece ``done`` (counted from 0) of ``of`` equal pieces."""
    if progress is None:
        return None
    return lambda fraction: progress((done + fraction) / of)
