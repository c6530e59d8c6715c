"""Prices by cutting planes: for few types of workers, and for prices that are nearly known.

====== ======== =========== ==================================================================
symbol code     shape       meaning
====== ======== =========== ==================================================================
R_k    rewards  (P,)        what the tasks are worth in the end under plan k, per task
L_km   labels   (P, M)      labels of type m that plan k takes, per task
U, N   U, N     (), (M,)    labels in all and of each type, per task; may be infinite
w_k    weights  (P,)        share of the tasks that follow plan k
====== ======== =========== ==================================================================

The plan that is best at some prices is a column of the master problem, a linear program for SciPy's HiGHS:

    min over lam, nu >= 0 of   max_k { R_k - sum_m (lam + nu_m + cost_m) L_km } + lam U + sum_m nu_m N_m
    = max over w of  sum_k w_k (R_k - cost L_k),   sum_k w_k L_k <= N,   sum_k w_k sum_m L_km <= U,   sum_k w_k = 1.

Its prices are tried next, every other time half-way to the best ones known, which keeps them from jumping about. Both
the certified bound and the policy ``crowd`` search this way.
Guarantee: every value tried is that of a bound; the master's value is never above the least of them, for each plan is
one of all. Cost: per round a linear program and the values at its prices; some tens of rounds for a few types.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol

import numpy as np
from scipy.optimize import linprog

from nextlabel.arrays import Floats, Ints
from nextlabel.errors import SolverError


class Limits(NamedTuple):
    """Labels in all and by type, per task, and what a label of each type costs beside its price."""

    U: float
    N: Floats
    cost: Floats

    def costs(self, prices: Floats) -> Floats:
        """What a label of each type costs at prices [lam, nu_1 ...]."""
        return np.asarray(prices[0] + prices[1:] + self.cost, dtype=np.float64)

    def pays(self, prices: Floats) -> float:
        """lam U + nu N; what is unlimited has no price."""
        amounts = np.append(self.U, self.N)
        finite = np.isfinite(amounts)
        return float((prices[finite] * amounts[finite]).sum())

    def valid(self, prices: Floats, least: float) -> Floats:
        """The prices, 0 for what is unlimited; that of a label is at least ``least`` where labels are limited."""
        amounts = np.append(self.U, self.N)
        prices = np.where(np.isfinite(amounts), np.maximum(prices, 0.0), 0.0)
        if np.isfinite(self.U):
            prices[0] = max(float(prices[0]), least)
        return np.asarray(prices, dtype=np.float64)


class Master(NamedTuple):
    """Prices [lam, nu_1 ...], the least value they can have over the plans known, and the weights of these."""

    prices: Floats
    value: float
    weights: Floats


def solve_master(rewards: Floats, labels: Floats, limits: Limits) -> Master:
    """The best prices against the plans known."""
    rows, right = _rows(rewards, labels, limits)
    worth, ends = _objective(limits)
    solution = linprog(worth, A_ub=-rows, b_ub=-right, bounds=ends, method="highs")
    if solution.status != 0:
        raise SolverError(f"the linear program of the prices was not solved: {solution.message}", "Report this.")
    return Master(np.maximum(solution.x[1:], 0.0), float(solution.fun), np.maximum(-solution.ineqlin.marginals, 0.0))


def prefer_common_price(rewards: Floats, labels: Floats, limits: Limits, value: float) -> Floats | None:
    """Of all prices as good as ``value`` against the plans known, those with the least to pay for single types."""
    rows, right = _rows(rewards, labels, limits)
    worth, ends = _objective(limits)
    single = np.concatenate([[0.0, 0.0], np.where(np.isfinite(limits.N), 1.0, 0.0)])
    solution = linprog(
        single, A_ub=np.vstack([-rows, worth]), b_ub=np.append(-right, value), bounds=ends, method="highs"
    )
    return np.maximum(solution.x[1:], 0.0) if solution.status == 0 else None


def _rows(rewards: Floats, labels: Floats, limits: Limits) -> tuple[Floats, Floats]:
    rows = np.column_stack([np.ones(len(rewards)), labels.sum(axis=1), labels])
    right = rewards - (labels * limits.cost).sum(axis=1)
    return rows, right


def _objective(limits: Limits) -> tuple[Floats, list[tuple[float | None, float | None]]]:
    amounts = np.concatenate([[limits.U], limits.N])
    bounded = np.isfinite(amounts)
    ends: list[tuple[float | None, float | None]] = [(None, None)]
    ends += [(0.0, None if finite else 0.0) for finite in bounded]
    return np.concatenate([[1.0], np.where(bounded, amounts, 0.0)]), ends


#: Attempts to find equally good prices that charge all types alike.
SETTLING = 4


#: Rounds in which the gap does not shrink by a tenth: the linear program has no more digits.
STALLED = 40


class PricedTask(Protocol):
    """One task as the search sees it: ``mass`` (S,) is the share of the tasks that begin in each state."""

    @property
    def mass(self) -> Floats:
        """x_0."""
        ...

    def solve(self, cost: Floats, V: Floats, plan: Ints) -> None:
        """Values and plan at these costs of a label by type, in place, from the values given."""
        ...

    def follow(self, plan: Ints) -> tuple[float, Floats]:
        """What tasks that follow the plan are worth in the end, and the labels by type they take."""
        ...


def shares_of(plan: Ints, types: int) -> Floats:
    """(types, S) 1 where a plan takes a label of a type."""
    return np.asarray(plan == np.arange(types)[:, None], dtype=np.float64)


class CuttingPlanes:
    """The search; everything per task. ``least`` is the price of a label at least."""

    def __init__(
        self, task: PricedTask, limits: Limits, V: Floats, plans: Iterable[Ints] = (), least: float = 0.0
    ) -> None:
        self._task, self._limits, self._least = task, limits, least
        self.V, self.best, self.rounds = V, np.inf, 0
        self.prices = np.zeros(len(limits.N) + 1)
        self._plan = np.full(len(V), -1, dtype=np.int64)
        self.plans: list[Ints] = []
        self.rewards: list[float] = []
        self.labels: list[Floats] = []
        for plan in (self._plan, *plans):
            self._keep(plan)

    def run(self, tolerance: float, rounds: int, first: Floats | None = None, told: float = np.inf) -> Master:
        """Try prices until none can be better by more than ``tolerance`` or the search stalls; the master problem then.

        ``first`` are the first prices tried, by default the master's own; nobody is worth more than ``told``.
        """
        wanted = self.master().prices if first is None else first
        least, since = np.inf, 0
        for k in range(rounds):
            self._try(wanted)
            self.rounds = k + 1
            master = self.master()
            gap = min(self.best, told) - master.value
            if gap < 0.9 * least:
                least, since = gap, k
            if gap <= tolerance or k - since >= STALLED:
                break
            half_way = k % 2 == (0 if first is None else 1)
            wanted = 0.5 * (master.prices + self.prices) if half_way else master.prices
        return master

    def master(self) -> Master:
        """The master problem of the plans found so far."""
        return solve_master(np.array(self.rewards), np.array(self.labels), self._limits)

    def settle(self, tolerance: float) -> Master:
        """Where several prices are as good, show those that charge most to labels of every type alike."""
        for _ in range(SETTLING):
            height = max(self.best, self.master().value)
            wanted = prefer_common_price(np.array(self.rewards), np.array(self.labels), self._limits, height)
            if wanted is None:
                break
            best = self.best
            value = self._try(wanted)
            if value <= best + 0.1 * tolerance:
                self.best, self.prices = value, self._limits.valid(wanted, self._least)
                break
        return self.master()

    def _keep(self, plan: Ints) -> None:
        """Add a plan to the master problem."""
        reward, used = self._task.follow(plan)
        self.rewards.append(reward)
        self.labels.append(used)
        self.plans.append(plan.copy())

    def _try(self, prices: Floats) -> float:
        """Solve at these prices and add the plan; the value there."""
        prices = self._limits.valid(prices, self._least)
        self._task.solve(self._limits.costs(prices), self.V, self._plan)
        self._keep(self._plan)
        value = float((self._task.mass * self.V).sum()) + self._limits.pays(prices)
        if value < self.best:
            self.best, self.prices = value, prices
        return value
