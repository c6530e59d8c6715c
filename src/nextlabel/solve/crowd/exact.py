"""The exact optimum of a tiny problem with workers who differ.

====== ======== ==================================================================
symbol code     meaning
====== ======== ==================================================================
s      tasks    beliefs of all tasks, as a multiset
n      supply   labels that each type can still give
u      budget   labels that may still be bought
====== ======== ==================================================================

Arrivals come in random order of the supply: all orders are alike, so that the next one is of type m with probability
n_m / sum n. It may be turned away, which uses no budget; labels come in at once.

    W(s, n, u) = sum_m (n_m / sum n) max{ W(s, n - e_m, u),
                                          max_x -cost_m + sum_y P(y | p_x, m) W(s after y on x, n - e_m, u - 1) }

and W = sum_x R(p_x) when no arrival or no budget is left. Beliefs that agree to thirteen digits are one.
Guarantee: exact up to rounding. Cost: one state for each multiset of beliefs, supply and budget that can occur; they
grow very fast with the arrivals, and problems with more than ``MAX_STATES`` are refused.
"""

from __future__ import annotations

import math
import time
from typing import NamedTuple

import numpy as np

from nextlabel.arrays import Floats
from nextlabel.errors import ProblemError, TooLargeError
from nextlabel.model.problem import Problem
from nextlabel.solve.crowd.bound import tasks_of, types_of
from nextlabel.solve.crowd.relaxation import Types
from nextlabel.solve.exact import ExactResult

MAX_STATES = 1_000_000
#: Arrivals at most: with more, even one task has too many states.
MAX_ARRIVALS = 60
#: Digits in which beliefs must agree to be one.
DIGITS = 13

Tasks = tuple[int, ...]
State = tuple[Tasks, tuple[int, ...], int]


class _Belief(NamedTuple):
    """A belief of a task: its reward, and for each type the answers that can come with where they lead."""

    law: Floats
    kind: int
    reward: float
    after: dict[int, list[tuple[float, int]]]


def exact_crowd_value(problem: Problem, max_states: int = MAX_STATES) -> ExactResult:
    """The best expected value over all policies that may turn workers away."""
    begin = time.perf_counter()
    supply = _supply(problem)
    beliefs, members, rewards, unit = tasks_of(problem)
    if problem.tasks + sum(supply) > MAX_ARRIVALS:
        raise TooLargeError(
            f"{problem.tasks} tasks and a supply of {sum(supply)} labels are too many to solve exactly with workers.",
            f"Keep tasks and supply together to at most {MAX_ARRIVALS}, or use bound.",
        )
    search = _Search(types_of(problem, unit), rewards.utilities, max_states)
    start: list[int] = []
    for law, count, kind in zip(beliefs, members, rewards.of, strict=True):
        start += [search.belief(law, int(kind))] * int(count)
    value = unit * search.value((tuple(sorted(start)), supply, problem.budget))
    seconds = time.perf_counter() - begin
    return ExactResult(value, value / problem.tasks, search.states, 0.0, seconds)


class _Search:
    """The recursion, with every state kept."""

    def __init__(self, types: Types, utilities: tuple[Floats, ...], max_states: int) -> None:
        self._types, self._utilities, self._max_states = types, utilities, max_states
        self._beliefs: list[_Belief] = []
        self._numbers: dict[tuple[int, tuple[float, ...]], int] = {}
        self._known: dict[State, float] = {}

    @property
    def states(self) -> int:
        """States visited."""
        return len(self._known)

    def belief(self, law: Floats, kind: int) -> int:
        """The number of a belief, a new one if it has none."""
        key = (kind, tuple(np.round(law, DIGITS).tolist()))
        if key not in self._numbers:
            self._numbers[key] = len(self._beliefs)
            reward = float((self._utilities[kind] * law).sum(axis=1).max())
            self._beliefs.append(_Belief(law, kind, reward, {}))
        return self._numbers[key]

    def value(self, state: State) -> float:
        """W."""
        tasks, supply, budget = state
        if budget == 0 or not any(supply):
            return sum(self._beliefs[x].reward for x in tasks)
        if state in self._known:
            return self._known[state]
        total = 0.0
        for m, left in enumerate(supply):
            if left == 0:
                continue
            rest = (*supply[:m], left - 1, *supply[m + 1 :])
            best = self.value((tasks, rest, budget))
            for k, x in enumerate(tasks):
                if k > 0 and tasks[k - 1] == x:
                    continue
                others = tasks[:k] + tasks[k + 1 :]
                worth = -float(self._types.cost[m])
                for chance, y in self._after(x, m):
                    worth += chance * self.value((tuple(sorted((*others, y))), rest, budget - 1))
                best = max(best, worth)
            total += left * best
        if len(self._known) >= self._max_states:
            raise TooLargeError(
                f"the problem has more than {self._max_states:,} joint states of tasks and workers.",
                "Use fewer tasks, types or labels, or bound instead of exact.",
            )
        self._known[state] = total / sum(supply)
        return self._known[state]

    def _after(self, x: int, m: int) -> list[tuple[float, int]]:
        """Answers of a worker of type m to a task at belief x: their probabilities and where they lead."""
        belief = self._beliefs[x]
        if m not in belief.after:
            answers = []
            for column in self._types.channel[m].T:
                joint = belief.law * column
                chance = float(joint.sum())
                if chance > 0.0:
                    answers.append((chance, self.belief(joint / chance, belief.kind)))
            belief.after[m] = answers
        return belief.after[m]


def _supply(problem: Problem) -> tuple[int, ...]:
    """The supply of each type, or a ProblemError where the order of arrivals is not defined."""
    for worker in problem.workers:
        if worker.channel is None:
            raise ProblemError(
                "exact needs workers whose channels are known.", "Give accuracy or confusion instead of a prior."
            )
        if worker.supply is None:
            raise ProblemError(
                "exact takes arrivals in random order of the supply, and a type of workers has none.",
                "Give every [[workers]] table a supply.",
            )
    if not math.isinf(problem.horizon):
        raise ProblemError("exact with workers has labels come in at once.", "Leave out the horizon.")
    return tuple(int(worker.supply or 0) for worker in problem.workers)
