"""The exact optimum of a tiny problem with workers who differ: the recursion of ``solve.random_order`` over beliefs.

Guarantee: exact up to rounding; beliefs that agree to thirteen digits are one. Cost: see there.
"""

from __future__ import annotations

import math
import time
from functools import cache

import numpy as np

from nextlabel.arrays import Floats
from nextlabel.errors import ProblemError, TooLargeError
from nextlabel.model.problem import Problem
from nextlabel.solve.crowd.bound import tasks_of, types_of
from nextlabel.solve.exact import ExactResult
from nextlabel.solve.random_order import RandomOrder

MAX_STATES = 1_000_000
#: Arrivals at most: with more, even one task has too many states.
MAX_ARRIVALS = 60
#: Digits in which beliefs must agree to be one.
DIGITS = 13


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
    types = types_of(problem, unit)
    laws: list[tuple[int, Floats]] = []  # reward and belief by number
    numbers: dict[tuple[int, tuple[float, ...]], int] = {}

    def number(kind: int, law: Floats) -> int:
        key = (kind, tuple(np.round(law, DIGITS).tolist()))
        if key not in numbers:
            numbers[key] = len(laws)
            laws.append((kind, law))
        return numbers[key]

    @cache
    def after(x: int, m: int) -> list[tuple[float, int]]:
        kind, law = laws[x]
        joint = [law * column for column in types.channel[m].T]
        return [(float(one.sum()), number(kind, one / one.sum())) for one in joint if one.sum() > 0.0]

    @cache
    def worth(x: int) -> float:
        kind, law = laws[x]
        return float((rewards.utilities[kind] * law).sum(axis=1).max())

    start: list[int] = []
    for law, count, kind in zip(beliefs, members, rewards.of, strict=True):
        start += [number(int(kind), law)] * int(count)
    search = RandomOrder(worth, after, types.cost.tolist(), max_states)
    value = unit * search.value(tuple(sorted(start)), supply, problem.budget)
    seconds = time.perf_counter() - begin
    return ExactResult(value, value / problem.tasks, len(search.known), 0.0, seconds)


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
