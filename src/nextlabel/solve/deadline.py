"""What no policy can pass before a deadline, from where the tasks stand, and values of one task at prices by time.

=========== ============= ======================================================================================
symbol      code          meaning
=========== ============= ======================================================================================
i_x, w_x    groups        belief node of task x and its labels in flight, tasks in groups
n           labels_left   labels that may still be given out
r(t), mu    problem       workers come as a Poisson process of rate r(t); a label takes Exp(mu)
T           problem       time until the deadline (``Problem.horizon``)
p(t)        price         price of a label that is given out at time t, at least 0
q(t)        comes_in      chance 1 - e^{-mu (T - t)} that it comes in before the deadline
c           label_cost    what a label costs, in the unit of the reward, paid when it comes in
=========== ============= ======================================================================================

    E[final reward - c (labels to come in)]  <=  sum_x V_x(i_x, w_x) - c f q(0) + int_0^inf E[min(n, N_y)] dy,

where V_x is the best value of task x alone for p(t) + c q(t) each label, f are the labels in flight, and N_y, a Poisson
number, the workers who come at times with p(t) > y (docs/theory.md, section 7). Prices that depend on the time need no
count of the workers still to come, so that the cost does not grow with the tasks and the labels.

Prices are those of ``solve.per_arrival``, where workers come evenly, moved one knot after another as long as that
lowers the bound. The bound on V_x is that of ``kernels.horizon``; ``timed_values``, for the martingale gap and for
policies that rank by them, has V itself at all layers of time, on lattices that end after C labels, with as many of
them in flight.
Guarantee: upper bound, whatever prices, steps and truncation, if rates are right and no label in flight lapses.
``slack`` is its distance from a plan of the relaxed problem with workers who come evenly: an estimate, not a bound.
``timed_values`` are of fourth order in the step, which resolves every rate.
Cost: a solve for the prices, then some 90 sweeps: a second or two for each class of tasks, whatever their number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import ceil, exp, inf
from time import perf_counter
from typing import Any

import numpy as np
from scipy.special import pdtr

from nextlabel.arrays import Floats
from nextlabel.errors import ProblemError
from nextlabel.kernels.horizon import backward_deadline, integrate
from nextlabel.model.lattice import after_labels
from nextlabel.model.problem import Problem, in_units
from nextlabel.model.tasks import Groups, check_groups, fresh_groups, whole
from nextlabel.solve.per_arrival import BatchPrices, PriceSolver
from nextlabel.solve.relaxed import no_delay_values
from nextlabel.solve.truncation import arrivals_by_time, expected_given, layered_times, make_cut

#: Steps of the search for prices, and at most: they are doubled until that takes off less than this share of the value.
STEPS, MOST_STEPS, STEP_TOLERANCE = 512, 8192, 2e-5
#: The prices found in batches are multiplied by factors at these times left, in lifetimes of a label; logarithms of the
#: factors move by these steps, one knot after another.
KNOTS = (0.0, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 12.8)
MOVES = (0.4, 0.24, 0.14, 0.08, 0.05)
#: Prices of the edge are rounded down to these steps of their logarithm.
LEVEL = 0.05
#: Classes of tasks that are there, at most: a solve takes as many times as long.
MOST_CLASSES = 16
#: A label that is given out so late that it comes in with a smaller chance says nothing about the price of one.
SURE = 1e-3
#: A price above 0, so that it has a logarithm.
LEAST_PRICE = 1e-12


@dataclass(frozen=True, slots=True)
class DeadlineBound:
    """Per task: at most ``upper`` at the deadline; ``slack`` is an estimate of what better prices could take off.

    ``price``: what a label that is given out now would have to add, over all tasks.
    """

    tasks: int
    labels_left: int
    mean_arrivals: float
    upper: float
    price: float
    slack: float
    steps: int
    seconds: float
    base: float = field(repr=False)
    prices: Floats = field(repr=False)
    come: Floats = field(repr=False)

    def curve(self, extra: Any) -> Floats:
        """``upper`` if there were ``extra`` more labels to give out, for an array of such numbers, at these prices."""
        left = self.labels_left + np.asarray(extra, dtype=np.int64)
        if np.any(left < 0):
            raise ProblemError("there are not so many labels left to take away.", f"Only {self.labels_left} are left.")
        return np.array([self.base + charged(self.prices, self.come, int(n)) for n in left]) / self.tasks


def deadline_bound(problem: Problem, groups: Sequence[Any], labels_left: int) -> DeadlineBound:
    """Bound what any policy can make of tasks that stand in ``groups`` before the problem's horizon, counted from now.

    The problem gives classes, rates and the cost of a label; its budget and its numbers of tasks do not matter.
    """
    begin = perf_counter()
    if not problem.finite:
        raise ProblemError("there is no deadline.", "Give a finite horizon, or use present_bound.")
    present = check_groups(groups, problem.classes)
    left = whole("labels left", labels_left, 0, "Give the number of labels that may still be given out.")
    used, entry = np.unique(present.entry, return_inverse=True)
    if len(used) > MOST_CLASSES:
        raise ProblemError(
            f"the tasks are of {len(used)} kinds, and at most {MOST_CLASSES} are allowed.", "Use present_bound."
        )
    present = present._replace(entry=entry.astype(np.int64))
    members = np.bincount(present.entry, present.members)
    classes = tuple(replace(problem.classes[int(c)], count=int(k)) for c, k in zip(used, members, strict=True))
    # Labels that were given before count for the truncation: a task's lattice begins with its first label.
    given = int((present.levels(problem.answers) + present.w) @ present.members)
    there, unit = in_units(replace(problem, classes=classes, budget=max(left + given, 1)))
    sweep = _Sweep(there, present, left)
    value, steps = sweep.best()
    upper = value.total
    return DeadlineBound(
        tasks=present.tasks,
        labels_left=left,
        mean_arrivals=there.mean_arrivals,
        upper=unit * upper / present.tasks,
        price=unit * sweep.price_now,
        slack=unit * max(upper - sweep.lower, 0.0) / present.tasks,
        steps=steps,
        seconds=perf_counter() - begin,
        base=unit * value.base,
        prices=unit * value.prices,
        come=value.come,
    )


@dataclass(frozen=True, slots=True)
class _Value:
    """A bound without and with the charge for its prices, step by step."""

    base: float
    prices: Floats
    come: Floats
    total: float


class _Sweep:
    """Prices, and the bound at multiples of them with more and more steps."""

    def __init__(self, problem: Problem, groups: Groups, left: int) -> None:
        self.problem, self.left = problem, left
        self.solver = PriceSolver(problem, closed=True)
        self.tasks, self.outside = self.solver.place(groups)
        self.in_flight = groups.in_flight
        self._knots, self._come = arrivals_by_time(problem)
        # With nothing to give out no label is bought at a price that none is worth.
        self._at, self._worth = np.zeros(1), np.full(1, 1.0 + float(self.solver.stack.spread.max()))
        self._edges: dict[int, Floats] = {}
        self.lower = -inf
        if left > 0:
            found = self.solver.solve(groups, left)
            self.lower = found.lower / self.solver.unit
            self._at, self._worth = per_label_in_time(problem, found, self.solver.unit)

    @property
    def price_now(self) -> float:
        """Price of a label that is given out now."""
        return float(self._worth[0] * self._comes_in(self.problem.horizon)) if self.left > 0 else 0.0

    def best(self) -> tuple[_Value, int]:
        """The least bound that was found, with the steps that it took."""
        steps, factors = STEPS, np.zeros(len(KNOTS))
        value = self._bound(factors, steps)
        for move in MOVES if self.left > 0 else ():
            for knot in range(len(KNOTS)):
                for way in (move, -move):
                    other = factors.copy()
                    other[knot] += way
                    trial = self._bound(other, steps)
                    if trial.total < value.total:
                        value, factors = trial, other
                        break
        scale = max(abs(value.total), float(self.tasks.sum()) * self.solver.sweeps.spread)
        while steps < MOST_STEPS:
            steps *= 2
            finer = self._bound(factors, steps)
            less = value.total - finer.total
            value = finer if less > 0 else value
            if less <= STEP_TOLERANCE * scale:
                break
        return value, steps

    def _comes_in(self, tau: Floats | float) -> Any:
        """Chance that a label given out with ``tau`` left comes in."""
        return -np.expm1(-self.problem.completion_rate * np.asarray(tau))

    def _bound(self, factors: Floats, steps: int) -> _Value:
        """The bound at the prices times e to the ``factors``, which are given at ``KNOTS``."""
        T, mu, cost = self.problem.horizon, self.problem.completion_rate, self.problem.label_cost
        tau = layered_times(T, steps, mu)
        chance = self._comes_in(tau)
        worth = np.interp(T - tau[1:], self._at, self._worth) * np.exp(np.interp(mu * tau[1:], KNOTS, factors))
        price = worth * chance[1:]
        paid = price + cost * chance[:-1]
        lowest = np.minimum.accumulate(paid / chance[1:])  # of a label that comes in, given out from then on
        stack, grid = self.solver.stack, self.solver.sweeps.grid
        levels, group = np.unique(np.floor(np.log(np.maximum(lowest, LEAST_PRICE)) / LEVEL), return_inverse=True)
        after = np.stack([self._after(int(level)) for level in levels], axis=1)
        V = np.empty((len(self.tasks), grid.states))
        backward_deadline(stack, grid, mu, tau, self._most_rate(tau), paid, group.astype(np.int64), after, V)
        above = self.solver.outside.worth(self.outside, float(lowest[-1]))[0] if len(self.outside.entry) else 0.0
        owed = cost * self.in_flight * float(chance[-1])
        come = np.diff(np.interp(T - tau, self._knots, self._come)[::-1])[::-1]
        base = float((self.tasks * V).sum()) + above - owed
        return _Value(base, price, come, base + charged(price, come, self.left))

    def _most_rate(self, tau: Floats) -> Floats:
        """The largest arrival rate within each step."""
        starts, rates = self.problem.rate_pieces
        at = self.problem.horizon - tau
        first = np.maximum(np.searchsorted(starts, at[1:], side="right") - 1, 0)
        last = np.maximum(np.searchsorted(starts, at[:-1], side="left") - 1, first)
        return np.array([rates[a : b + 1].max() for a, b in zip(first, last, strict=True)])

    def _after(self, level: int) -> Floats:
        """(B, W+1, nodes) what the edge is worth at a level of the price."""
        if level not in self._edges:
            stack, grid = self.solver.stack, self.solver.sweeps.grid
            classes = [stack.one(b) for b in range(len(self.tasks))]
            after = [after_labels(one, no_delay_values(one, exp(LEVEL * level)), grid.W) for one in classes]
            self._edges[level] = np.stack(after)[:, :, : int(stack.first[grid.C + 1])]
        return self._edges[level]


def per_label_in_time(problem: Problem, found: BatchPrices, unit: float = 1.0) -> tuple[Floats, Floats]:
    """Times, and prices there for each label that comes in, p(t) / q(t): they are smooth up to the deadline."""
    knots, come = arrivals_by_time(problem)
    at = np.interp(np.cumsum(found.size), come, knots)  # the workers of a batch come at its end
    chance = -np.expm1(-problem.completion_rate * (problem.horizon - at))
    sure = chance > SURE
    sure[0] = True
    worth = found.prices / unit / np.maximum(chance, SURE)
    return at[sure], np.maximum(worth[sure], 0.0)


def charged(price: Floats, come: Floats, left: int) -> float:
    """int E[min(n, N_y)] dy for prices of steps in which ``come`` workers are expected."""
    order = np.argsort(-price, kind="stable")
    return float(expected_given(left, np.cumsum(come[order])) @ -np.diff(price[order], append=0.0))


#: Layers, and steps between all of them at most: with more arrivals there is no martingale.
LAYERS, MOST_TIMED_STEPS = 384, 100_000
#: Labels of one task at most: states grow with the cube of it.
MOST_CAP = 16


@dataclass(frozen=True, slots=True)
class TimedValues:
    """Values at all layers, on the grid of ``solver``; in the unit of the problem's rewards."""

    solver: PriceSolver
    plan: BatchPrices
    tau: Floats
    price: Floats
    value: list[Floats]
    slope: list[Floats]
    charge: float

    @property
    def start(self) -> Floats:
        """V of a fresh task of each class with all the time left."""
        return np.array([one[-1, 0] for one in self.value])


def can_be_timed(problem: Problem) -> bool:
    """Whether there are few enough kinds of tasks, and few enough arrivals, for values by time."""
    if not problem.finite or len(problem.classes) > MOST_CLASSES:
        return False
    return _steps(problem, MOST_CAP) <= MOST_TIMED_STEPS


@lru_cache(maxsize=2)
def timed_values(problem: Problem) -> TimedValues:
    """Solve for prices and values of ``problem``, whose rewards are in units (``reward_unit``)."""
    cap = min(make_cut(problem, None, None).cap, MOST_CAP)
    solver = PriceSolver(problem, cap=cap, flight=cap, closed=True)
    plan = solver.solve(fresh_groups(problem.classes), problem.budget)
    T, mu = problem.horizon, problem.completion_rate
    starts, rates = problem.rate_pieces
    even = layered_times(T, LAYERS, mu)
    tau = np.union1d(even, T - starts[1:])
    tau = tau[np.append(True, np.diff(tau) > 1e-12 * T)]
    tau[-1] = T
    at, worth = per_label_in_time(problem, plan, solver.unit)
    price = np.interp(T - tau, at, worth) * -np.expm1(-mu * tau)
    middle = T - 0.5 * (tau[1:] + tau[:-1])
    rate = rates[np.searchsorted(starts, middle, side="right") - 1]
    fastest = float(rates.max()) + mu * cap
    parts = max(1, ceil(float(np.diff(tau).max()) * fastest))
    stack, grid = solver.stack, solver.sweeps.grid
    values, slopes = [], []
    for b in range(len(problem.classes)):
        value, slope = np.zeros((len(tau), grid.states)), np.zeros((len(tau), 2, grid.states))
        integrate(stack, b, grid, mu, tau, rate, price + problem.label_cost, parts, value, slope)
        values.append(value)
        slopes.append(slope)
    return TimedValues(solver, plan, tau, price, values, slopes, _charge(problem, tau, price, rate))


def _steps(problem: Problem, cap: int) -> float:
    """Steps of the integration, at least."""
    return float(problem.horizon * (problem.peak_rate + problem.completion_rate * cap))


def _charge(problem: Problem, tau: Floats, price: Floats, rate: Floats) -> float:
    """int r(t) p(t) P(fewer than U workers before t) dt, by Gauss' rule between layers."""
    at, by = np.polynomial.legendre.leggauss(6)
    knots, come = arrivals_by_time(problem)
    share = 0.5 * (1.0 + at)
    h = np.diff(tau)
    left = tau[:-1, None] + h[:, None] * share
    paid = price[:-1, None] + np.diff(price)[:, None] * share
    before = np.interp(problem.horizon - left, knots, come)
    return float((0.5 * h[:, None] * by * rate[:, None] * paid * pdtr(problem.budget - 1, before)).sum())
