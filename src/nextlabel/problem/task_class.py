"""Tasks that share a prior, a threshold and a reward; and numbers checked at the edge."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any

from nextlabel.arrays import Floats
from nextlabel.beliefs.beta import Beta
from nextlabel.beliefs.lattice import Lattice, make_lattice
from nextlabel.beliefs.prior import Prior
from nextlabel.beliefs.rewards import Accuracy, Reward
from nextlabel.errors import ProblemError

#: Largest count or budget accepted.
LARGEST = 10**9


@dataclass(frozen=True, slots=True)
class TaskClass:
    """``count`` tasks that share a prior, a threshold and a reward."""

    count: int
    prior: Prior = field(default_factory=lambda: Beta(1, 1))
    threshold: float = 0.5
    reward: Reward = field(default_factory=Accuracy)

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "count", whole("number of tasks", self.count, 1, "Give at least one task, e.g. --tasks 100.")
        )
        d: Any = self.threshold
        if isinstance(d, bool) or not isinstance(d, Real) or not 0 < float(d) < 1:
            raise ProblemError(f"threshold {d!r} is outside (0, 1).", "Give a number between 0 and 1, e.g. 0.5.")
        object.__setattr__(self, "threshold", float(d))
        if not self.prior.thresholded and self.threshold != 0.5:
            raise ProblemError(
                f"a threshold means nothing to tasks with the prior {self.prior.describe()}.",
                "Leave it out: thresholds are for binary answers of unknown reliability.",
            )
        self.reward.check(self.prior.answers)

    @property
    def weight(self) -> float:
        """How often a task of this class counts in sums over tasks."""
        return float(self.count)

    @property
    def answers(self) -> int:
        """J, the number of answers."""
        return self.prior.answers

    def beliefs(self, depth: int) -> tuple[Floats, Floats]:
        """Predictive probabilities of the answers and posterior probabilities of the truths, (nodes, J) each."""
        return self.prior.believe(self.threshold, depth)

    def lattice(self, depth: int) -> Lattice:
        """The belief lattice of one task of this class."""
        return make_lattice(self.prior, self.threshold, depth, self.reward)


def whole(name: str, value: Any, least: int, hint: str) -> int:
    """``value`` as a whole number of at least ``least``, or a ProblemError."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ProblemError(f"{name} is {value!r}, which is not a whole number.", hint)
    if not isinstance(value, Integral) and not float(value).is_integer():
        raise ProblemError(f"{name} is {value!r}, which is not a whole number.", hint)
    number = int(float(value)) if not isinstance(value, Integral) else int(value)
    if not least <= number <= LARGEST:
        shown = f"{number}" if abs(number) <= LARGEST else "too large a number"
        raise ProblemError(f"{name} is {shown}: give a whole number from {least} to {LARGEST:,}.", hint)
    return number


def positive(name: str, value: Any, hint: str, *, infinite: bool = False) -> float:
    """``value`` as a positive float, or a ProblemError."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ProblemError(f"{name} is {value!r}, which is not a number.", hint)
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not number > 0 or (math.isinf(number) and not infinite):
        raise ProblemError(f"{name} is {number:g}, which is not a positive number.", hint)
    return number
