"""What an exact solution is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ExactResult:
    """The value, per task too, the joint states it took, its estimated numerical error (0 when T is infinite)."""

    value: float
    per_task: float
    states: int
    error: float
    seconds: float
