"""Numbers to find out: who labels which item next, under a budget, when workers' precisions are known.

====== ========== =========================================================================================
symbol code       meaning
====== ========== =========================================================================================
v_i    sd squared variance of what is known of item i before any label; 1 / v_i its precision
t_m    1 / sd^2   precision of a label of a worker of type m, N_m of which can be had (``supply``)
U      budget     labels that may be bought
T_i    --         precision that the labels of item i add up to
value  --         squared error that the labels take away, sum_i v_i - 1 / (1 / v_i + T_i)
====== ========== =========================================================================================

A label of precision t takes the variance v of an item to 1 / (1 / v + t), whatever it says: the state of an item is a
precision. Workers come in a random order of the supply, are seen before they are given an item, and may be turned away;
labels come at once, and a worker may label an item more than once.

**Bound.** Reveal the order, split labels: no policy has more precision than P, that of the U most precise labels of the
supply, and sum_i 1 / (1 / v_i + T_i) with sum T_i = P is least where water of volume P fills the precisions to one
level. Certified in closed form; for equal items and workers whose labels come out even it is the optimum,
K v - K / (1 / v + U t / K).

**Exact** (tiny): the recursion of ``solve.random_order`` over precisions. **Policies**: ``value`` gives the item
whose variance falls most, and turns a worker away while the supply still holds as many better labels as may be bought;
``uncertain`` gives it to everybody who comes; ``uniform`` gives a random item. Cost: bound O(K log K); play O(U log K).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from heapq import heapify, heapreplace
from typing import Any, Literal, NamedTuple

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.errors import ProblemError, TooLargeError
from nextlabel.model.tables import known_keys
from nextlabel.solve.random_order import RandomOrder, Turn, best
from nextlabel.wording import counted

NumberPolicy = Literal["value", "uncertain", "uniform"]
POLICIES: tuple[NumberPolicy, ...] = ("value", "uncertain", "uniform")
#: States and arrivals of the exact optimum at most, and items of a problem.
MOST_STATES, MOST_ARRIVALS, MOST_ITEMS = 100_000, 200, 10_000_000


@dataclass(frozen=True, slots=True)
class Items:
    """``count`` items, each of whose numbers is known up to a standard deviation of ``sd``."""

    count: int
    sd: float


@dataclass(frozen=True, slots=True)
class NumberWorkers:
    """Workers whose numbers are off by ``sd``; ``supply`` labels of them can be had, None for as many as are bought."""

    sd: float
    supply: int | None = None


class Played(NamedTuple):
    """What a policy takes away of the squared error: mean, half-width of its 95% interval, and the error as drawn."""

    policy: str
    value: float
    half_width: float
    squared_error: float


@dataclass(frozen=True, slots=True)
class NumberProblem:
    """Items, workers and a budget.

    >>> problem = NumberProblem((Items(4, 2.0),), 8, (NumberWorkers(2.0),))
    >>> round(problem.bound(), 9), round(problem.exact(), 9)
    (10.666666667, 10.666666667)
    """

    tasks: tuple[Items, ...]
    budget: int
    workers: tuple[NumberWorkers, ...]

    def __post_init__(self) -> None:
        if not self.tasks or not self.workers:
            raise ProblemError("a problem of numbers needs items and workers.", "Give [[tasks]] and [[workers]].")
        if not 0 <= self.budget <= MOST_ITEMS:
            raise ProblemError(f"budget is {self.budget}.", f"Give a whole number from 0 to {MOST_ITEMS:,}.")
        for sd in (*(one.sd for one in self.tasks), *(one.sd for one in self.workers)):
            if not 0 < sd < math.inf:
                raise ProblemError(f"sd is {sd!r}, which is not a positive number.", "Give e.g. sd = 10.")
        for count in (*(one.count for one in self.tasks), *(w.supply for w in self.workers if w.supply is not None)):
            if not 0 <= count <= MOST_ITEMS:
                raise ProblemError(f"a count is {count!r}.", f"Give a whole number from 0 to {MOST_ITEMS:,}.")
        if len(self.workers) > 1 and any(one.supply is None for one in self.workers):
            raise ProblemError("several types of workers need a supply each.", "Give e.g. supply = 100 to every type.")

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> NumberProblem:
        """The problem of a file with ``[question] answer = "number"``."""
        known_keys(dict(table), ("question", "budget", "tasks", "workers"), "a question for numbers")
        known_keys(dict(table["question"]), ("answer",), "[question] of a question for numbers")
        budget, rows = table.get("budget"), dict[str, Any]()
        if isinstance(budget, bool) or not isinstance(budget, int):
            raise ProblemError("the problem has no budget that is a whole number.", "Give e.g. budget = 300.")
        for name, kind in (("tasks", Items), ("workers", NumberWorkers)):
            allowed = tuple(field.name for field in fields(kind))
            for entry in table.get(name, []):
                known_keys(dict(entry), allowed, f"[[{name}]] of a question for numbers")
                if any(key in allowed and key not in entry for key in ("count", "sd")):
                    needed = " or ".join(key for key in ("count", "sd") if key in allowed)
                    raise ProblemError(f"a [[{name}]] table lacks {needed}.", "Add it.")
                for key, value in entry.items():
                    if isinstance(value, bool) or not isinstance(value, int if key != "sd" else int | float):
                        raise ProblemError(f"{key} is {value!r}.", "Give a number; counts and supplies are whole ones.")
            rows[name] = tuple(kind(**entry) for entry in table.get(name, []))
        return cls(budget=budget, **rows)

    @property
    def items(self) -> int:
        """K, the number of items."""
        return sum(one.count for one in self.tasks)

    @property
    def precision(self) -> Floats:
        """(K,) 1 / v of each item."""
        return np.repeat([one.sd**-2.0 for one in self.tasks], [one.count for one in self.tasks])

    @property
    def supply(self) -> Ints:
        """(M,) labels that each type can give, at most the budget where there is one type without a limit."""
        return np.array([self.budget if one.supply is None else one.supply for one in self.workers], dtype=np.int64)

    @property
    def types(self) -> Floats:
        """(M,) precision of a label of each type."""
        return np.array([one.sd**-2.0 for one in self.workers])

    def bound(self) -> float:
        """The most squared error that any policy can take away in expectation; certified."""
        first = np.sort(self.precision)
        best = np.sort(np.repeat(self.types, np.minimum(self.supply, self.budget)))[::-1]
        return float((1.0 / first - 1.0 / poured(first, float(best[: self.budget].sum()))).sum())

    def exact(self, policy: NumberPolicy | None = None) -> float:
        """The optimum, or what a policy takes away, in expectation over the order in which workers come."""
        types, supply = self.types.tolist(), tuple(self.supply.tolist())
        if sum(supply) > MOST_ARRIVALS:
            raise TooLargeError(
                f"the supply has {sum(supply):,} labels.", f"Give a problem with at most {MOST_ARRIVALS}, or use bound."
            )

        def choose(turn: Turn) -> float:
            if policy is None:
                return best(turn)
            if policy == "uniform":
                return sum(map(turn.give, turn.tasks)) / len(turn.tasks)
            if policy == "value" and _waits(self.types, turn.supply, turn.m, turn.budget):
                return turn.wait()
            return turn.give(max(turn.tasks, key=lambda p: _gain(p, types[turn.m])))

        start = tuple(sorted(self.precision.tolist()))
        order = RandomOrder(
            lambda p: -1.0 / p, lambda p, m: ((1.0, p + types[m]),), [0.0] * len(types), MOST_STATES, choose
        )
        return float(order.value(start, supply, self.budget) + sum(1.0 / p for p in start))

    def simulate(self, policy: NumberPolicy, replications: int = 100, seed: int = 0) -> Played:
        """Play the policy on drawn orders, truths and labels."""
        found = np.array([_play(self, policy, np.random.default_rng((seed, r))) for r in range(replications)])
        half = (
            1.959963984540054 * float(found[:, 0].std(ddof=1)) / math.sqrt(replications)
            if replications > 1
            else math.inf
        )
        return Played(policy, float(found[:, 0].mean()), half, float(found[:, 1].mean()))


def poured(precision: Floats, water: float) -> Floats:
    """(K,) the precisions of items with so much more, spread so that the least of them is as large as can be."""
    if not len(precision):
        return precision
    first = np.sort(precision)
    levels = (water + np.cumsum(first)) / np.arange(1, len(first) + 1)  # were it over the k that are known least
    return np.asarray(np.maximum(precision, levels[int(np.flatnonzero(levels >= first)[-1])]))


def _gain(precision: float, label: float) -> float:
    return 1.0 / precision - 1.0 / (precision + label)


def _waits(types: Floats, left: tuple[int, ...] | Ints, m: int, budget: int) -> bool:
    """Whether better labels than those of type m are still to come for the whole budget."""
    return sum(int(n) for n, t in zip(left, types, strict=True) if t > types[m]) >= budget


def _play(problem: NumberProblem, policy: NumberPolicy, rng: np.random.Generator) -> tuple[float, float]:
    """The squared error taken away by the model's word, and the mean squared error of the estimates that were made."""
    precision, types = problem.precision, problem.types
    truth = rng.standard_normal(len(precision)) / np.sqrt(precision)
    left, budget, told = problem.supply, problem.budget, np.zeros(len(precision))
    now, heap = precision.copy(), [(p, k) for k, p in enumerate(precision.tolist())]
    heapify(heap)
    for m in rng.permutation(np.repeat(np.arange(len(types)), left)):
        if not budget or not len(now):
            break
        waits = policy == "value" and _waits(types, left, m, budget)
        left[m] -= 1
        if waits:
            continue
        k = int(rng.integers(len(now))) if policy == "uniform" else heap[0][1]
        told[k] += types[m] * (truth[k] + rng.standard_normal() / math.sqrt(types[m]))
        now[k] += types[m]
        if policy != "uniform":
            heapreplace(heap, (float(now[k]), k))
        budget -= 1
    return float((1.0 / precision - 1.0 / now).sum()), float(np.mean((told / now - truth) ** 2)) if len(now) else 0.0


def sentences(problem: NumberProblem, bound: float) -> Iterator[str]:
    """What the bound says, and what it rests on."""
    before = float((1.0 / problem.precision).sum()) / max(problem.items, 1)
    least = before - bound / max(problem.items, 1)
    yield (
        f"If workers' precisions are as given, no policy can bring the mean squared error of "
        f"{counted(problem.items, 'item')} below {least:.6g} in expectation (now {before:.6g}): certified."
    )
