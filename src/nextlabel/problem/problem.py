"""The labelling problem: classes of tasks, budget, horizon, rates.

====== ================ ======================================================
symbol code             meaning
====== ================ ======================================================
K      tasks            number of tasks, summed over the classes
U      budget           workers at most; each arrival uses one unit
r      arrival_rate     rate of the Poisson process of arrivals
mu     completion_rate  a label takes Exp(mu)
T      horizon          labels still in flight at T are lost (inf: all come in)
d      threshold        truth of a task is 1{theta > d}
====== ================ ======================================================
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from typing import Any

from nextlabel.beliefs.beta import Beta
from nextlabel.beliefs.lattice import Lattice
from nextlabel.errors import ProblemError

DEFAULT_ARRIVAL_RATE = 0.1
DEFAULT_COMPLETION_RATE = 0.4
#: Largest count or budget accepted.
LARGEST = 10**9


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


@dataclass(frozen=True, slots=True)
class TaskClass:
    """``count`` tasks that share a prior and a threshold."""

    count: int
    prior: Beta = field(default_factory=lambda: Beta(1, 1))
    threshold: float = 0.5

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "count", whole("number of tasks", self.count, 1, "Give at least one task, e.g. --tasks 100.")
        )
        d: Any = self.threshold
        if isinstance(d, bool) or not isinstance(d, Real) or not 0 < float(d) < 1:
            raise ProblemError(f"threshold {d!r} is outside (0, 1).", "Give a number between 0 and 1, e.g. 0.5.")
        object.__setattr__(self, "threshold", float(d))

    def lattice(self, depth: int) -> Lattice:
        """The belief lattice of one task of this class."""
        return self.prior.lattice(self.threshold, depth)


@dataclass(frozen=True, slots=True)
class Problem:
    """K tasks in classes, at most U workers, horizon T."""

    classes: tuple[TaskClass, ...]
    budget: int
    arrival_rate: float = DEFAULT_ARRIVAL_RATE
    completion_rate: float = DEFAULT_COMPLETION_RATE
    horizon: float = math.inf

    def __post_init__(self) -> None:
        classes = tuple(self.classes)
        if not classes:
            raise ProblemError("the problem has no tasks.", "Give --tasks N or a [[tasks]] table with a count.")
        set_ = object.__setattr__
        set_(self, "classes", classes)
        set_(self, "budget", whole("budget", self.budget, 0, "Give the number of labels to buy, e.g. --budget 1200."))
        set_(
            self,
            "arrival_rate",
            positive("arrival rate", self.arrival_rate, "Give workers per unit of time, e.g. 0.1."),
        )
        set_(
            self,
            "completion_rate",
            positive("completion rate", self.completion_rate, "Give labels per worker and unit of time, e.g. 0.4."),
        )
        set_(
            self,
            "horizon",
            positive(
                "horizon", self.horizon, "Give a time above 0, or leave it out to wait for every label.", infinite=True
            ),
        )

    @classmethod
    def identical(
        cls,
        tasks: int,
        budget: int,
        prior: Beta | tuple[float, float] = (1, 1),
        threshold: float = 0.5,
        **rates: float,
    ) -> Problem:
        """K tasks that share one prior; ``rates`` are arrival_rate, completion_rate, horizon."""
        belief = prior if isinstance(prior, Beta) else Beta(*prior)
        return cls((TaskClass(tasks, belief, threshold),), budget, **rates)

    @classmethod
    def from_priors(
        cls, priors: Iterable[Beta | tuple[float, float]], budget: int, threshold: float = 0.5, **rates: float
    ) -> Problem:
        """One task per prior; equal priors share a class."""
        counts: dict[Beta, int] = {}
        for prior in priors:
            belief = prior if isinstance(prior, Beta) else Beta(*prior)
            counts[belief] = counts.get(belief, 0) + 1
        return cls(tuple(TaskClass(n, belief, threshold) for belief, n in counts.items()), budget, **rates)

    @property
    def tasks(self) -> int:
        """K, the number of tasks."""
        return sum(c.count for c in self.classes)

    @property
    def rho(self) -> float:
        """r / mu: the mean number of labels in flight when every arrival works."""
        return self.arrival_rate / self.completion_rate

    @property
    def finite(self) -> bool:
        """Whether the horizon is finite."""
        return math.isfinite(self.horizon)

    def with_budget(self, budget: int) -> Problem:
        """The same problem with another budget."""
        return replace(self, budget=budget)
