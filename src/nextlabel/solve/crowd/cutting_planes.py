"""Prices by cutting planes: for few types of workers, and for prices that are nearly known.

The plan that is best at some prices is a column of the master problem (``master``). Its prices are tried next, every
other time half-way to the best ones known, which keeps them from jumping about.

Guarantee: every value tried is that of a bound; the master's value is never above the least of them.
Cost: per round a linear program and the values at its prices; some tens of rounds for a few types.
"""

from __future__ import annotations

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.solve.crowd.master import Limits, Master, prefer_common_price, solve_master
from nextlabel.solve.crowd.single_task import LEAST_COST, SingleTask

#: Attempts to find equally good prices that charge all types alike.
SETTLING = 4


class CuttingPlanes:
    """The search; everything per task."""

    def __init__(self, task: SingleTask, limits: Limits, prices: Floats, V: Floats) -> None:
        self._task, self._limits = task, limits
        self.prices, self.V = prices, V
        self.best = np.inf
        self.rounds = 0
        self._plan = np.full(task.states, -1, dtype=np.int64)
        self.plans: list[Ints] = []
        self.rewards: list[float] = []
        self.labels: list[Floats] = []
        self.keep(self._plan)

    def keep(self, plan: Ints) -> None:
        """Add a plan to the master problem."""
        reward, used = self._task.follow(plan)
        self.rewards.append(reward)
        self.labels.append(used)
        self.plans.append(plan.copy())

    def run(self, tolerance: float, rounds: int) -> Master:
        """Try prices until none can be better by more than ``tolerance``; the master problem of the plans found."""
        wanted = self.prices
        told = float((self._task.mass * self._task.ceiling).sum())
        for k in range(rounds):
            self._try(wanted)
            self.rounds = k + 1
            master = self.master()
            if min(self.best, told) - master.value <= tolerance:
                break
            wanted = master.prices if k % 2 == 0 else 0.5 * (master.prices + self.prices)
        return self._settle(tolerance)

    def master(self) -> Master:
        """The master problem of the plans found so far."""
        return solve_master(np.array(self.rewards), np.array(self.labels), self._limits)

    def _try(self, prices: Floats) -> float:
        """Solve at these prices and add the plan; the value there."""
        prices = self._limits.valid(prices, LEAST_COST)
        self._task.solve(self._limits.costs(prices), self.V, self._plan)
        self.keep(self._plan)
        value = float((self._task.mass * self.V).sum()) + self._limits.pays(prices)
        if value < self.best:
            self.best, self.prices = value, prices
        return value

    def _settle(self, tolerance: float) -> Master:
        """Where several prices are as good, show those that charge most to labels of every type alike."""
        for _ in range(SETTLING):
            height = max(self.best, self.master().value)
            wanted = prefer_common_price(np.array(self.rewards), np.array(self.labels), self._limits, height)
            if wanted is None:
                break
            best = self.best
            value = self._try(wanted)
            if value <= best + 0.1 * tolerance:
                self.best, self.prices = value, self._limits.valid(wanted, LEAST_COST)
                break
        return self.master()
