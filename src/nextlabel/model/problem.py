"""The labelling problem: classes of tasks, budget, horizon, rates.

====== ================ ======================================================
symbol code             meaning
====== ================ ======================================================
K      tasks            number of tasks, summed over the classes
U      budget           workers at most; each arrival uses one unit
r      arrival_rate     rate of the Poisson process of arrivals, constant or in pieces (finite T)
mu     completion_rate  a label takes Exp(mu)
T      horizon          labels still in flight at T are lost (inf: all come in)
t      start            time at which a piece of r begins; the pieces repeat after a ``period``, if it has one
d      threshold        truth of a task is 1{theta > d}
c      label_cost       what a label costs, in the unit of the reward; 0: only the budget limits labels
--     workers          types of workers who differ; the tasks are then facts
====== ================ ======================================================

Day and night: ``PiecewiseRate(((0, 2.0), (16, 0.2)), period=24)``. Solvers count time backwards, tau = T - t.
With a cost the value is the reward less the cost of the labels given out, and an arrival may be turned away (it still
counts as one of the U).

The unit of a problem's rewards: solvers' tolerances are for rewards of about 1, whatever money is counted in.

====== ======= =======================================================================
symbol code    meaning
====== ======= =======================================================================
s      size    what is at stake in one task, the largest of the classes
u      unit    1024^k, the power nearest to s
====== ======= =======================================================================

For accuracy and squared error s is the range of the reward; for a utility, whose range may have nothing to do with what
a task is worth, the larger of abs(R) and ceiling - R before the first label.

    V(u R, u c) = u V(R, c):  a problem whose rewards and label cost are divided by u has the same policies.

Guarantee: exact, for dividing by a power of two rounds nothing; u = 1 for s from 1/32 to 32.

Types of workers: how they answer, how many labels they can give, and what one costs.

======== ============== ========= ==================================================================
symbol   code           shape     meaning
======== ============== ========= ==================================================================
A        channel        (C, C)    P(says y | truth c): one row for each truth, one column for each answer
alpha    prior          (C, C)    Dirichlet weights of the rows of A, where the channel is not known
N        supply         --        labels that the type can give in all
r        arrival_rate   --        or how often one of its workers comes
--       count          --        workers of the type: they share the supply, or the arrivals, evenly
--       cost           --        what a label of this type costs, in the unit of the reward
======== ============== ========= ==================================================================

Neither supply nor rate: as many labels as the budget allows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf, isfinite, isinf, log2
from typing import Any

import numpy as np

from nextlabel.arrays import Floats
from nextlabel.errors import ProblemError
from nextlabel.model.beta import Beta
from nextlabel.model.dirichlet import Dirichlet
from nextlabel.model.fact import Fact, checked_law
from nextlabel.model.prior import Prior, number, positive, settle, shown
from nextlabel.model.rewards import Accuracy, Reward, Utility
from nextlabel.model.tasks import (
    ScoreClasses,
    TaskClass,
    at_least_0,
    counts_of,
    different_rewards,
    patterns,
    stack_classes,
    whole,
)

Rows = tuple[tuple[float, ...], ...]


def one_coin(accuracy: Any, answers: int = 2) -> Rows:
    """The channel of a worker who is right with probability ``accuracy`` and else gives any other answer alike."""
    a = number(accuracy)
    if not 0 <= a <= 1:
        raise ProblemError(f"accuracy {shown(accuracy)} is outside [0, 1].", "Give e.g. accuracy = 0.8.")
    wrong = (1.0 - a) / (answers - 1)
    return tuple(tuple(a if c == y else wrong for y in range(answers)) for c in range(answers))


@dataclass(frozen=True, slots=True)
class WorkerType:
    """Workers who answer alike, or whose channels have one prior."""

    channel: Rows | None = None
    supply: int | None = None
    arrival_rate: float | None = None
    count: int = 1
    cost: float = 0.0
    prior: Rows | None = None

    def __post_init__(self) -> None:
        if (self.channel is None) == (self.prior is None):
            given = "has neither a channel nor a prior" if self.channel is None else "has both a channel and a prior"
            raise ProblemError(f"a type of workers {given}.", "Give accuracy, confusion or prior, one of them.")
        if self.channel is not None:
            rows = _square(self.channel, "confusion")
            what = "the answers of a worker if the truth is {}"
            settle(self, channel=tuple(checked_law(row, what.format(c)) for c, row in enumerate(rows)))
        else:
            weights = _square(self.prior, "prior")
            if not all(0 < number(x) < math.inf for row in weights for x in row):
                raise ProblemError(
                    "the prior of a channel has a weight that is not a positive number.",
                    "Give Dirichlet weights, one row for each truth, e.g. prior = [[4, 2], [2, 4]].",
                )
            settle(self, prior=tuple(tuple(float(x) for x in row) for row in weights))
        if self.supply is not None and self.arrival_rate is not None:
            raise ProblemError("a type of workers has both a supply and an arrival rate.", "Give one of them.")
        supply, rate, of = self.supply, self.arrival_rate, "of a type of workers"
        often = "Give workers per unit of time."
        enough = "Give the labels of this type in all, e.g. supply = 1000, or leave the type out."
        settle(
            self,
            supply=None if supply is None else whole(f"supply {of}", supply, 1, enough),
            arrival_rate=None if rate is None else positive(f"arrival rate {of}", rate, often),
            count=whole(f"count {of}", self.count, 1, "Give at least one worker."),
            cost=at_least_0("worker cost", self.cost, "Give e.g. cost = 0.05."),
        )

    @classmethod
    def of_accuracy(cls, accuracy: float, answers: int = 2, **rest: Any) -> WorkerType:
        """Workers right with probability ``accuracy``; ``rest`` are supply, arrival_rate, count, cost."""
        return cls(one_coin(accuracy, answers), **rest)

    @property
    def answers(self) -> int:
        """C, the number of answers."""
        rows = self.channel if self.channel is not None else self.prior
        assert rows is not None
        return len(rows)

    @property
    def mean_channel(self) -> Floats:
        """The channel, or its mean under the prior."""
        if self.channel is not None:
            return np.array(self.channel)
        weights = np.array(self.prior)
        return np.asarray(weights / weights.sum(axis=1, keepdims=True), dtype=np.float64)

    def labels(self, horizon: float) -> float:
        """Labels that the type can give up to the horizon, in expectation; infinite if nothing limits them."""
        if self.supply is not None:
            return float(self.supply)
        return math.inf if self.arrival_rate is None else self.arrival_rate * horizon


def check_workers(workers: Any, classes: Sequence[TaskClass]) -> tuple[WorkerType, ...]:
    """Types of workers that fit these tasks, or a ProblemError."""
    if not isinstance(workers, list | tuple):
        raise ProblemError(f"workers are {workers!r}.", "Give a list of WorkerType objects.")
    others = [one.prior for one in classes if not isinstance(one.prior, Fact)]
    if not workers:
        if len(others) < len(classes):
            raise ProblemError(
                "tasks with fact priors need workers.",
                'Add [[workers]] tables, or use kind = "one-coin" if all workers have one accuracy.',
            )
        return ()
    if others:
        raise ProblemError(
            f"a problem with workers has tasks with the prior {others[0].describe()}.",
            'Give every class of tasks a prior such as {kind = "fact", probability = 0.5}.',
        )
    if any(one.reward.kind == "squared-error" for one in classes):
        raise ProblemError(
            "the squared error of theta means nothing to tasks that are facts.", "Use accuracy or a utility."
        )
    for worker in workers:
        if not isinstance(worker, WorkerType):
            raise ProblemError(f"{worker!r} is not a type of workers.", "Give WorkerType objects.")
        if worker.answers != classes[0].answers:
            raise ProblemError(
                f"workers who give {worker.answers} answers meet tasks with {classes[0].answers}.",
                "Give channels one row and one column for each answer of the tasks.",
            )
    return tuple(workers)


def refuse_workers(problem: Problem, what: str) -> None:
    """Refuse a problem with workers where ``what`` cannot use them."""
    if problem.workers:
        raise ProblemError(
            f"{what} cannot use workers who differ.",
            "Use bound, exact, simulate or plan, or give tasks a prior and leave out the workers.",
        )


def _square(rows: Any, name: str) -> tuple[Any, ...]:
    given = rows.tolist() if isinstance(rows, np.ndarray) else rows
    if (
        not isinstance(given, list | tuple)
        or len(given) < 2
        or not all(isinstance(row, list | tuple) and len(row) == len(given) for row in given)
    ):
        raise ProblemError(
            f"{name} {given!r} is not a square table.",
            f"Give one row for each truth and one column for each answer, e.g. {name} = [[0.9, 0.1], [0.2, 0.8]].",
        )
    return tuple(given)


RATE_HINT = "Give pairs of a time and a rate, the first at time 0, e.g. arrival_rate = [[0, 2.0], [16, 0.2]]."
#: Pieces up to the horizon.
MOST_PIECES = 10_000
#: A piece shorter than this share of the horizon is rounding of a period, and its neighbour takes it over.
SLIVER = 1e-12


@dataclass(frozen=True, slots=True)
class PiecewiseRate:
    """``pieces`` of (start, rate), the first from time 0 on."""

    pieces: tuple[tuple[float, float], ...]
    period: float = inf

    def __post_init__(self) -> None:
        given: Any = self.pieces
        pieces: list[Any] = [tuple(map(number, one)) if isinstance(one, list | tuple) else () for one in given]
        for one, pair in zip(given, pieces, strict=True):
            if len(pair) != 2 or not all(map(isfinite, pair)) or pair[1] < 0:
                raise ProblemError(f"piece {one!r} of the arrival rate is not a time and a rate.", RATE_HINT)
        starts = [start for start, _ in pieces]
        if not pieces or starts[0] != 0 or any(b <= a for a, b in pairwise(starts)):
            raise ProblemError("the pieces of the arrival rate do not rise from time 0.", RATE_HINT)
        if not any(rate > 0 for _, rate in pieces):
            raise ProblemError("the arrival rate is 0 at all times, so no worker ever comes.", RATE_HINT)
        period = number(self.period)
        if not period > starts[-1]:
            raise ProblemError(
                f"the period {self.period!r} of the arrival rate ends before its last piece starts, at {starts[-1]:g}.",
                "Give a longer period, e.g. 24 for hours of a day, or leave it out.",
            )
        settle(self, pieces=tuple(pieces), period=period)

    @property
    def peak(self) -> float:
        """The largest rate."""
        return max(rate for _, rate in self.pieces)

    def until(self, horizon: float) -> tuple[Floats, Floats]:
        """Starts and rates of the pieces up to a finite ``horizon``; neighbours of one rate are joined."""
        rounds = 1 if not isfinite(self.period) else int(np.ceil(horizon / self.period))
        if rounds * len(self.pieces) > MOST_PIECES:
            raise ProblemError(
                f"the arrival rate has {rounds * len(self.pieces):,} pieces up to the horizon.",
                f"Give a longer period or a shorter horizon; at most {MOST_PIECES:,} pieces are allowed.",
            )
        found = list[tuple[float, float]]()
        for k in range(rounds):
            for start, rate in self.pieces:
                at = start + (k * self.period if k > 0 else 0.0)
                if at >= horizon * (1.0 - SLIVER):
                    continue
                if found and at - found[-1][0] <= SLIVER * horizon:
                    at, _ = found.pop()
                if not found or rate != found[-1][1]:
                    found.append((at, rate))
        starts, rates = zip(*found, strict=True)
        return np.array(starts), np.array(rates)

    def mean_arrivals(self, horizon: float) -> float:
        """Expected workers up to a finite ``horizon``."""
        starts, rates = self.until(horizon)
        return float(rates @ np.diff(np.append(starts, horizon)))

    def describe(self) -> str:
        """The rate in words."""
        every = "" if not isfinite(self.period) else f", every {self.period:g}"
        return f"arrival rate {', '.join(f'{rate:g} from {start:g}' for start, rate in self.pieces)}{every}"


DEFAULT_ARRIVAL_RATE = 0.1
DEFAULT_COMPLETION_RATE = 0.4
LOG2_STEP = 10


def as_prior(prior: Prior | tuple[float, ...]) -> Prior:
    """A prior as it is; two numbers are Beta(alpha, beta), more are Dirichlet weights."""
    if isinstance(prior, Prior):
        return prior
    return Beta(*prior) if len(prior) == 2 else Dirichlet(tuple(prior))


def _arrival_rate(rate: Any, horizon: float) -> float | PiecewiseRate:
    """A checked rate; pieces of one and the same rate are that rate."""
    if not isinstance(rate, PiecewiseRate):
        return positive("arrival rate", rate, "Give workers per unit of time, e.g. 0.1.")
    if isinf(horizon):
        raise ProblemError(
            "an arrival rate that varies needs a finite horizon.", "Give --horizon T, or one constant --arrival-rate."
        )
    _, rates = rate.until(horizon)
    if len(rates) == 1:
        return positive("arrival rate", float(rates[0]), "Give at least one piece before the horizon a rate above 0.")
    return rate


@dataclass(frozen=True, slots=True)
class Problem:
    """K tasks in classes, at most U workers, horizon T."""

    classes: Sequence[TaskClass]
    budget: int
    arrival_rate: float | PiecewiseRate = DEFAULT_ARRIVAL_RATE
    completion_rate: float = DEFAULT_COMPLETION_RATE
    horizon: float = inf
    label_cost: float = 0.0
    workers: tuple[WorkerType, ...] = ()

    def __post_init__(self) -> None:
        classes = self.classes if isinstance(self.classes, ScoreClasses) else tuple(self.classes)
        if not classes:
            raise ProblemError("the problem has no tasks.", "Give --tasks N or a [[tasks]] table with a count.")
        one_of_each = patterns(classes)
        answers = {c.answers for c in one_of_each}
        if len(answers) > 1:
            raise ProblemError(
                f"tasks with {' and '.join(str(n) for n in sorted(answers))} answers are mixed.",
                "Give all tasks of a problem the same number of answers.",
            )
        forever = "Give a time above 0, or leave it out to wait for every label."
        settle(
            self,
            classes=classes,
            budget=whole("budget", self.budget, 0, "Give the number of labels to buy, e.g. --budget 1200."),
            completion_rate=positive(
                "completion rate", self.completion_rate, "Give labels per worker and unit of time, e.g. 0.4."
            ),
            horizon=positive("horizon", self.horizon, forever, infinite=True),
        )
        settle(
            self,
            arrival_rate=_arrival_rate(self.arrival_rate, self.horizon),
            label_cost=at_least_0("label cost", self.label_cost, "Give e.g. --label-cost 0.02."),
            workers=check_workers(self.workers, one_of_each),
        )

    @classmethod
    def identical(
        cls,
        tasks: int,
        budget: int,
        prior: Prior | tuple[float, ...] = (1, 1),
        threshold: float = 0.5,
        reward: Reward | None = None,
        **rest: Any,
    ) -> Problem:
        """K tasks that share one prior; ``rest`` are arrival_rate, completion_rate, horizon, label_cost, workers."""
        return cls((TaskClass(tasks, as_prior(prior), threshold, reward or Accuracy()),), budget, **rest)

    @classmethod
    def from_priors(
        cls,
        priors: Iterable[Prior | tuple[float, ...]],
        budget: int,
        threshold: float = 0.5,
        reward: Reward | None = None,
        **rest: Any,
    ) -> Problem:
        """One task per prior; equal priors share a class."""
        counts: dict[Prior, int] = {}
        for prior in priors:
            belief = as_prior(prior)
            counts[belief] = counts.get(belief, 0) + 1
        worth = reward or Accuracy()
        return cls(tuple(TaskClass(n, belief, threshold, worth) for belief, n in counts.items()), budget, **rest)

    @property
    def tasks(self) -> int:
        """K, the number of tasks."""
        return round(float(counts_of(self.classes).sum()))

    @property
    def answers(self) -> int:
        """J, the number of answers to a task."""
        return self.classes[0].answers

    @property
    def is_accuracy(self) -> bool:
        """Whether every task is worth 1 if it comes out right and 0 if not."""
        return different_rewards(self.classes) == [Accuracy()]

    @property
    def peak_rate(self) -> float:
        """The arrival rate, the largest one if it varies."""
        return self.arrival_rate.peak if isinstance(self.arrival_rate, PiecewiseRate) else self.arrival_rate

    @property
    def mean_arrivals(self) -> float:
        """Expected workers up to a finite horizon, however many the budget takes."""
        if isinstance(self.arrival_rate, PiecewiseRate):
            return self.arrival_rate.mean_arrivals(self.horizon)
        return self.arrival_rate * self.horizon

    @property
    def rate_pieces(self) -> tuple[Floats, Floats]:
        """Starts and rates of the pieces of constant arrival rate, time running forward from 0."""
        if isinstance(self.arrival_rate, PiecewiseRate):
            return self.arrival_rate.until(self.horizon)
        return np.zeros(1), np.array([self.arrival_rate])

    @property
    def rho(self) -> float:
        """r / mu: the mean number of labels in flight when every arrival works (at the peak, if r varies)."""
        return self.peak_rate / self.completion_rate

    @property
    def finite(self) -> bool:
        """Whether the horizon is finite."""
        return isfinite(self.horizon)

    def with_prior(self, prior: Prior) -> Problem:
        """The same problem with that prior for every task."""
        return replace(self, classes=tuple(replace(c, prior=prior) for c in self.classes))

    def with_budget(self, budget: int) -> Problem:
        """The same problem with another budget."""
        return replace(self, budget=budget)


def reward_unit(problem: Problem) -> float:
    """u; 1 where a reward cannot be scaled."""
    rewards = different_rewards(problem.classes)
    if not all(r.size > 0 or isinstance(r, Utility) for r in rewards):
        return 1.0
    sizes = [r.size for r in rewards if not isinstance(r, Utility)]
    if len(sizes) < len(rewards):
        uncertain = [c for c in problem.classes if isinstance(c.reward, Utility)]
        roots = stack_classes(uncertain, 0)
        sizes.append(float(np.maximum(np.abs(roots.reward), roots.ceiling - roots.reward).max()))
    size = max(sizes)
    return float(2.0 ** (LOG2_STEP * round(log2(size) / LOG2_STEP))) if size > 0 else 1.0


def in_units(problem: Problem) -> tuple[Problem, float]:
    """The problem with its rewards and its label cost in units of u, and u."""
    unit = reward_unit(problem)
    if unit == 1.0:
        return problem, unit
    different = different_rewards(problem.classes)
    scaled = {r: r.times(1.0 / unit) for r in different}
    classes: Sequence[TaskClass]
    if isinstance(problem.classes, ScoreClasses):
        classes = replace(problem.classes, pattern=replace(problem.classes.pattern, reward=scaled[different[0]]))
    else:
        classes = tuple(replace(c, reward=scaled[c.reward]) for c in problem.classes)
    return replace(problem, classes=classes, label_cost=problem.label_cost / unit), unit
