"""What a run of ``annotate`` has done."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Outcome:
    """``labels`` that the model gave and that the campaign has now, ``known`` tasks that it had answered before,
    ``failed`` tasks on which its function was given up, ``passed`` tasks for which it returned None, ``charged`` labels
    of the budget; ``version`` of a learner; why the run ended, as a sentence."""

    model: str
    labels: int
    ended: str
    known: int = 0
    failed: int = 0
    passed: int = 0
    charged: int = 0
    version: int | None = None
