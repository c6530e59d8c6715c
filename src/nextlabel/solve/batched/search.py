"""The search for the prices of batches: smoothed descent, the bound without smoothing, a feasible plan.

    B(lam) = sum_x V_x(lam) + sum_b lam_b m_b,      dB/dlam_b = m_b - (labels taken from b)

As ``per_arrival``, over batches. The smoothing at the end is always the same: the smoothed minimum moves little as the
tasks move on, so that from the prices of a moment ago a few steps lead to it.
Guarantee: ``value`` is B at ``best`` and ``lower`` the value of a plan that gives no batch more labels than it has
workers, in expectation. Cost: two sweeps over batches and states for each step.
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple

import numpy as np

from nextlabel.arrays import Floats
from nextlabel.kernels.batches import Batches, Plan, batch_backward, batch_forward
from nextlabel.kernels.inputs import Edge, Grid, Lattices
from nextlabel.solve.core_states import differences
from nextlabel.solve.descent import Step, descend
from nextlabel.solve.relaxed import no_delay_edge

#: Smoothing at the end of a search, as a share of what labels can add, and on the way there when no prices are known.
SMOOTHING = 6e-5
COLD = ((2e-3, 60), (6e-4, 60), (2e-4, 60), (SMOOTHING, 60))
#: Steps of a round from known prices, and rounds at most.
STEPS, ROUNDS = 8, 4
#: Prices are raised by these shares in search of a plan: if they are a little too high, labels are left over and go to
#: the tasks that are next; if they are too low, the last tasks find none.
RAISES = (0.0, 0.001, 0.002, 0.004, 0.01, 0.02, 0.04)
#: Halvings of the interval in which one price for all is looked for.
BISECTIONS = 20
#: No record of the plan is wanted.
NO_RECORD = np.empty((0, 0, 0))


class Sweeps(NamedTuple):
    """What sweeps over any batches take: lattices and grid, cost of a label, the most that labels add to a task."""

    lattices: Lattices
    grid: Grid
    tail: Floats
    cost: float
    spread: float
    closed: bool = False  # states on the edge are offered no label

    def edge(self, lowest: float) -> Edge:
        """States on the edge of the grid at the lowest price, its cost included."""
        if self.closed:
            nothing = np.full((len(self.lattices.reward), 1, self.grid.states), -inf)
            return Edge(nothing, nothing)
        return no_delay_edge(self.lattices, self.grid, lowest, self.tail)


class BatchSearch:
    """One search: the best prices so far, and the best feasible plan; ``tasks`` (classes, states) counts them."""

    def __init__(self, sweeps: Sweeps, batches: Batches, tasks: Floats) -> None:
        self.sweeps, self.batches, self.tasks = sweeps, batches, tasks
        M = len(batches.size)
        self.best, self.value, self.lower = np.zeros(M), inf, -inf
        self.given, self.planned = np.zeros(M), NO_RECORD
        self.evaluations = 0
        self._V = np.empty((len(tasks), M + 1, sweeps.grid.states))
        self._taken = np.zeros(M)
        self._scale = 1.0 / np.sqrt(batches.size)
        self._most = sweeps.spread * float(tasks.sum())

    def common_price(self) -> float:
        """The price at which the tasks together want as many labels as there are, if it is one for all."""
        low, high = 0.0, self.sweeps.spread
        for _ in range(BISECTIONS):
            price = 0.5 * (low + high)
            prices = np.full(len(self.best), price)
            self._backward(prices, 0.0)
            self._forward(prices, 0.0, False, NO_RECORD)
            low, high = (price, high) if self._taken.sum() > self.batches.size.sum() else (low, price)
        return high

    def begin(self, price: float, tolerance: float) -> None:
        """From one price for all, smooth at first."""
        prices = np.full(len(self.best), max(price, 0.0))
        for smoothing, steps in COLD:
            prices = self.descend(prices, smoothing * self.sweeps.spread, steps, [])
        self.follow(prices, tolerance)

    def follow(self, prices: Floats, tolerance: float) -> None:
        """From prices that are nearly right; ``tolerance`` as a share of the value, or of what labels can add."""
        eps = SMOOTHING * self.sweeps.spread
        memory: list[Step] = []
        for _ in range(ROUNDS):
            prices = self.descend(prices, eps, STEPS, memory)
            if self._account(prices, eps, tolerance):
                break

    def advantage(self) -> Floats:
        """(classes, states) V(w+1) - V(w) after the next batch, at the best prices."""
        self._backward(self.best, 0.0)
        grid = self.sweeps.grid
        return differences(self._V[:, len(self.best) - 1], self.sweeps.lattices.first, grid.C, grid.W)

    def descend(self, prices: Floats, eps: float, steps: int, memory: list[Step]) -> Floats:
        """Prices after so many steps on the smoothed B."""

        def objective(u: Floats) -> tuple[float, Floats]:
            value = self._backward(u * self._scale, eps)
            self._forward(u * self._scale, eps, False, NO_RECORD)
            return value, self._scale * (self.batches.size - self._taken)

        return descend(objective, prices / self._scale, steps, memory) * self._scale

    def _account(self, prices: Floats, eps: float, enough: float) -> bool:
        """The bound without smoothing, and feasible plans until one is near enough to it; whether one is."""
        value = self._backward(prices, 0.0)
        if value < self.value:
            self.value, self.best = value, prices
        enough *= max(abs(self.value), self._most)
        for more in RAISES:
            raised = prices * (1.0 + more)
            self._backward(raised, eps)
            planned = np.zeros((len(self.tasks), len(prices), self.tasks.shape[1]))
            lower = self._forward(raised, eps, True, planned)
            if lower > self.lower:
                self.lower, self.planned, self.given = lower, planned, self._taken.copy()
            if self.value - self.lower <= enough:
                return True
        return False

    def _backward(self, prices: Floats, eps: float) -> float:
        """Fill V; return B, smoothed if eps > 0."""
        self.evaluations += 1
        paid = prices + self.sweeps.cost
        lattices, grid, edge = self.sweeps.lattices, self.sweeps.grid, self.sweeps.edge(float(paid.min()))
        batch_backward(lattices, grid, self.batches, paid, eps, edge, self._V)
        return float((self.tasks * self._V[:, -1]).sum() + (prices * self.batches.size).sum())

    def _forward(self, prices: Floats, eps: float, feasible: bool, planned: Floats) -> float:
        """Fill the labels taken from each batch; return what the plan is worth."""
        cost = self.sweeps.cost
        out = Plan(self.tasks.copy(), self._taken, planned)
        batch_forward(
            self.sweeps.lattices, self.sweeps.grid, self.batches, prices + cost, cost, eps, feasible, self._V, out
        )
        return float((out.x * self._V[:, 0]).sum() - cost * self._taken.sum())
