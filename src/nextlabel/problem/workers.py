"""Types of workers: how they answer, how many labels they can give, and what one costs.

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
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from nextlabel.arrays import Floats
from nextlabel.beliefs.fact import Fact, checked_law
from nextlabel.beliefs.prior import number, shown
from nextlabel.errors import ProblemError
from nextlabel.problem.tasks import at_least_0, positive, whole

if TYPE_CHECKING:
    from nextlabel.problem.problem import Problem

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
        set_ = object.__setattr__
        if (self.channel is None) == (self.prior is None):
            given = "has neither a channel nor a prior" if self.channel is None else "has both a channel and a prior"
            raise ProblemError(f"a type of workers {given}.", "Give accuracy, confusion or prior, one of them.")
        if self.channel is not None:
            rows = _square(self.channel, "confusion")
            what = "the answers of a worker if the truth is {}"
            set_(self, "channel", tuple(checked_law(row, what.format(c)) for c, row in enumerate(rows)))
        else:
            weights = _square(self.prior, "prior")
            if not all(0 < number(x) < math.inf for row in weights for x in row):
                raise ProblemError(
                    "the prior of a channel has a weight that is not a positive number.",
                    "Give Dirichlet weights, one row for each truth, e.g. prior = [[4, 2], [2, 4]].",
                )
            set_(self, "prior", tuple(tuple(float(x) for x in row) for row in weights))
        if self.supply is not None and self.arrival_rate is not None:
            raise ProblemError("a type of workers has both a supply and an arrival rate.", "Give one of them.")
        if self.supply is not None:
            set_(
                self,
                "supply",
                whole(
                    "supply of a type of workers",
                    self.supply,
                    1,
                    "Give the labels of this type in all, e.g. supply = 1000, or leave the type out.",
                ),
            )
        if self.arrival_rate is not None:
            rate = positive("arrival rate of a type of workers", self.arrival_rate, "Give workers per unit of time.")
            set_(self, "arrival_rate", rate)
        set_(self, "count", whole("count of a type of workers", self.count, 1, "Give at least one worker."))
        set_(self, "cost", at_least_0("worker cost", self.cost, "Give e.g. cost = 0.05."))

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


def check_workers(workers: Any, priors: Sequence[Any], rewards: Sequence[Any]) -> tuple[WorkerType, ...]:
    """Types of workers that fit tasks with these priors and rewards, or a ProblemError."""
    if not isinstance(workers, list | tuple):
        raise ProblemError(f"workers are {workers!r}.", "Give a list of WorkerType objects.")
    facts = [isinstance(prior, Fact) for prior in priors]
    if not workers:
        if any(facts):
            raise ProblemError(
                "tasks with fact priors need workers.",
                'Add [[workers]] tables, or use kind = "one-coin" if all workers have one accuracy.',
            )
        return ()
    if not all(facts):
        other = next(prior for prior, fact in zip(priors, facts, strict=True) if not fact)
        raise ProblemError(
            f"a problem with workers has tasks with the prior {other.describe()}.",
            'Give every class of tasks a prior such as {kind = "fact", probability = 0.5}.',
        )
    for reward in rewards:
        if reward.kind == "squared-error":
            raise ProblemError(
                "the squared error of theta means nothing to tasks that are facts.", "Use accuracy or a utility."
            )
    for worker in workers:
        if not isinstance(worker, WorkerType):
            raise ProblemError(f"{worker!r} is not a type of workers.", "Give WorkerType objects.")
        if worker.answers != priors[0].answers:
            raise ProblemError(
                f"workers who give {worker.answers} answers meet tasks with {priors[0].answers}.",
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
