"""Tasks whose truth is a fact: one of C answers, with a probability each; what labels teach depends on who gives them.

====== ============== ========= ==================================================================
symbol code           shape     meaning
====== ============== ========= ==================================================================
pi_c   probabilities  (C,)      P(truth is c) before any label
====== ============== ========= ==================================================================

The law of the labels is not the task's own: a worker's channel says how often each answer comes if the truth is c. Such
tasks therefore need workers (``problem.workers``), and have no lattice of counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from nextlabel.arrays import Floats
from nextlabel.beliefs.prior import Prior, number, shown
from nextlabel.errors import ProblemError

#: Probabilities may miss 1 in their sum by this much, from rounding in a file.
SUM_SLACK = 1e-6


@dataclass(frozen=True, slots=True)
class Fact(Prior):
    """``Fact(probability)`` with two answers is P(truth is 1); ``Fact.of(probabilities)`` has one for each answer."""

    probability: float | None = 0.5
    probabilities: tuple[float, ...] = ()
    kind: ClassVar[str] = "fact"
    thresholded: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.probabilities:
            law = checked_law(self.probabilities, "the probabilities of a fact")
            if len(law) == 2:
                law = (1.0 - law[1], law[1])
        else:
            p = number(self.probability)
            if not 0 <= p <= 1:
                raise ProblemError(
                    f"probability {shown(self.probability)} is outside [0, 1].", "Give P(truth is 1), e.g. 0.5."
                )
            law = (1.0 - p, p)
        object.__setattr__(self, "probabilities", law)
        object.__setattr__(self, "probability", law[1] if len(law) == 2 else None)

    @classmethod
    def of(cls, probabilities: Any) -> Fact:
        """A fact with one probability for each answer."""
        if not isinstance(probabilities, list | tuple | np.ndarray) or len(probabilities) < 2:
            raise ProblemError(
                f"probabilities {probabilities!r} are not a list of at least two numbers.",
                "Give one for each answer, e.g. [0.2, 0.3, 0.5].",
            )
        return cls(None, tuple(float(number(p)) for p in probabilities))

    @property
    def answers(self) -> int:
        """C, the number of answers."""
        return len(self.probabilities)

    def believe(self, d: float, depth: int) -> tuple[Floats, Floats]:
        """Before the first label alone: what comes after depends on who gives it."""
        if depth > 0:
            raise ProblemError(
                "the labels of tasks with fact priors follow the workers who give them, which this cannot use.",
                'Use bound, exact, simulate or plan with [[workers]], or a prior such as kind = "one-coin".',
            )
        law = np.array([self.probabilities])
        return law.copy(), law

    def belief_error(self, depth: int) -> tuple[float, float]:
        """The probabilities are given."""
        return 0.0, 0.0

    def points(self) -> tuple[Floats, Floats]:
        """The truths: theta is not used, for workers draw the labels."""
        return np.eye(self.answers), np.array(self.probabilities)

    def describe(self) -> str:
        """The probabilities."""
        if self.probability is not None:
            return f"fact, 1 with probability {self.probability:g}"
        return f"fact with probabilities {', '.join(f'{p:g}' for p in self.probabilities)}"


def checked_law(values: Any, what: str) -> tuple[float, ...]:
    """Numbers of at least 0 that sum to 1, made to do so to the last digit, or a ProblemError that names ``what``."""
    law = [number(v) for v in values]
    shown_law = ", ".join(shown(v) for v in values)
    if not all(0.0 <= p <= 1.0 for p in law):
        raise ProblemError(f"{what} are {shown_law}, and not all lie in [0, 1].", "Give probabilities that sum to 1.")
    total = sum(law)
    if abs(total - 1.0) > SUM_SLACK:
        raise ProblemError(f"{what} are {shown_law}, which sum to {total:g}.", "Give probabilities that sum to 1.")
    return tuple(law) if abs(total - 1.0) <= 1e-12 else tuple(p / total for p in law)
