"""The upper bound for every budget at once, and what fixed numbers of labels per task are worth.

========= ============ ==========================================================================
symbol    code         meaning
========= ============ ==========================================================================
lam       prices       a grid of prices, falling
S(lam)    values       sum over tasks of the no-delay values at cost c + lam
L(lam)    labels       sum over tasks of the labels bought at that price, -dS/dlam
A(U)      arrivals     E[workers who come, at most U]; U itself when T is infinite
========= ============ ==========================================================================

    V*(U) <= B(U) = min over the grid of S(lam) + lam A(U)       for every U,

because S(lam) bounds the single-task values for any number of arrivals and any horizon (docs/theory.md). The minimum of
straight lines in A is concave in A. Its slope in A is the price at the minimum, hence the slope in U

    B(U + 1) - B(U) ~ lam(U) P(N > U),       N the workers who come before T; lam(U) itself when T is infinite:

the price of the bound. It is not proved to be above what one more label adds to the best policy.
Guarantee: upper bound for every U, whatever the grid. It is the bound of ``bound`` up to the grid where delay does not
matter, and looser with a short horizon. Cost: one pass over the classes for all prices.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import pdtr, pdtrc

from nextlabel.arrays import Floats, Ints
from nextlabel.beliefs.simplex import deepest
from nextlabel.kernels.no_delay import no_delay
from nextlabel.problem.problem import Problem, TaskClass
from nextlabel.problem.units import in_units, reward_unit
from nextlabel.solve.relaxed import ENDLESS, chunks, counts_of, stack_classes
from nextlabel.solve.truncation import no_delay_depth

#: Prices of the grid, for few classes and for many; the lowest as a share of the highest.
PRICES, FEW_PRICES, MANY = 200, 64, 256
LOWEST = 1e-5
REFINEMENTS = 2
#: Labels of one task that are looked at, for few classes: low prices buy many.
DEEP = 256


@dataclass(frozen=True, slots=True)
class BoundCurve:
    """B(U) for every budget U, from lines S(lam) + lam A(U)."""

    problem: Problem
    prices: Floats
    values: Floats
    labels: Floats

    def arrivals(self, budgets: Ints | Floats) -> Floats:
        """A(U)."""
        U = np.asarray(budgets, dtype=np.float64)
        if not self.problem.finite:
            return U
        mean = self.problem.mean_arrivals
        # E[min(U, N)] = mean P(N <= U - 2) + U P(N >= U) for a Poisson number N of arrivals
        few = np.where(U >= 2, mean * pdtr(np.maximum(U - 2, 0), mean), 0.0)
        return np.asarray(few + np.where(U >= 1, U * pdtrc(np.maximum(U - 1, 0), mean), 0.0), dtype=np.float64)

    def value(self, budgets: Ints | Floats) -> Floats:
        """B(U), per task."""
        A = self.arrivals(budgets)
        lines = self.values[:, None] + self.prices[:, None] * A
        return np.asarray(lines.min(axis=0) / self.problem.tasks, dtype=np.float64)

    def price(self, budgets: Ints | Floats) -> Floats:
        """The price of the bound at budget U: the slope of K B on the right of it, lam P(N > U)."""
        A = self.arrivals(budgets)
        lines = self.values[:, None] + self.prices[:, None] * A
        least = lines <= lines.min(axis=0) + 1e-12 * reward_unit(self.problem) * self.problem.tasks
        price = np.where(least, self.prices[:, None], np.inf).min(axis=0)
        if self.problem.finite:
            price = price * pdtrc(np.asarray(budgets, dtype=np.float64), self.problem.mean_arrivals)
        return np.asarray(price, dtype=np.float64)

    def budget_for(self, target: float) -> int | None:
        """The least budget whose bound reaches ``target`` a task: no policy gets there with less. None: none does."""
        wanted = target * self.problem.tasks
        # B(U) >= wanted iff every line is: A >= (wanted - S) / lam for all prices above 0, and S >= wanted at price 0.
        short = self.values < wanted
        if np.any(short & (self.prices <= 0.0)):
            return None
        if not short.any():
            return 0
        least = float(((wanted - self.values[short]) / self.prices[short]).max())
        if not self.problem.finite:
            return int(np.ceil(least - 1e-9))
        if least >= self.problem.mean_arrivals:
            return None
        low, high = 0, int(np.ceil(self.problem.mean_arrivals + 40 * self.problem.mean_arrivals**0.5 + 40))
        while low < high:
            mid = (low + high) // 2
            low, high = (low, mid) if float(self.arrivals(np.array([mid]))[0]) >= least else (mid + 1, high)
        return low


def bound_curve(problem: Problem) -> BoundCurve:
    """Evaluate the no-delay problem of all classes at a grid of prices; the problem's own budget limits the depth."""
    original = problem
    problem, unit = in_units(problem)
    pieces = chunks(problem.classes)
    depth = no_delay_depth(problem)
    if len(problem.classes) <= MANY:
        depth = max(depth, min(DEEP, problem.budget, deepest(problem.answers)))
    top = max(float(stack_classes(piece, 1, ENDLESS).spread.max()) for piece in pieces)
    count = PRICES if len(problem.classes) <= MANY else FEW_PRICES
    prices = np.append(top * np.geomspace(1.0, LOWEST, count), 0.0)

    def evaluate(some: Floats) -> Floats:
        totals = np.zeros((2, len(some)))
        for piece in pieces:
            totals += _chunk(piece, depth, some + problem.label_cost)
        return totals

    totals = evaluate(prices)
    for _ in range(REFINEMENTS if len(problem.classes) <= MANY else 0):
        # S is convex and piecewise linear: where the tangents of neighbours meet there is a corner, or nearly.
        more = _corners(prices, totals)
        prices, totals = np.concatenate([prices, more]), np.concatenate([totals, evaluate(more)], axis=1)
        falling = np.argsort(-prices, kind="stable")
        prices, totals = prices[falling], totals[:, falling]
    return BoundCurve(original, unit * prices, unit * totals[0], totals[1])


def _corners(prices: Floats, totals: Floats) -> Floats:
    """Prices at which the tangents of neighbouring prices meet."""
    values, slopes = totals[0], -totals[1]
    rise = slopes[:-1] - slopes[1:]
    bent = rise > 1e-12
    at = (values[1:] - values[:-1] + slopes[:-1] * prices[:-1] - slopes[1:] * prices[1:])[bent] / rise[bent]
    return np.asarray(np.clip(at, prices[1:][bent], prices[:-1][bent]), dtype=np.float64)


def _chunk(classes: Sequence[TaskClass], depth: int, prices: Floats) -> Floats:
    """sum of S and of L over the tasks of some classes, at every price."""
    stack = stack_classes(classes, depth, ENDLESS)
    counts = counts_of(classes)
    out, work = np.empty((len(classes), 4)), np.empty((3, stack.nodes))
    totals = np.zeros((2, len(prices)))
    for p, lam in enumerate(prices):
        no_delay(stack.arrays, float(lam), np.zeros(depth + 1), work, out)
        totals[:, p] = counts @ out[:, 0], counts @ out[:, 1]
    return totals


def overlap_values(problem: Problem, labels: Ints) -> Floats:
    """Value per task of giving every task exactly m labels, m in ``labels``: E[R after m labels] - c m."""
    most = int(labels.max())
    total = np.zeros(most + 1)
    for entry in problem.classes:
        lattice = entry.lattice(most)
        values = lattice.reward
        first = lattice.first
        mass = np.zeros(lattice.nodes)
        mass[0] = 1.0
        for m in range(most + 1):
            here = slice(int(first[m]), int(first[m + 1]))
            total[m] += entry.count * float(mass[here] @ values[here])
            if m < most:
                for j in range(lattice.answers):
                    np.add.at(mass, lattice.child[here, j], mass[here] * lattice.prob[here, j])
    return total[labels] / problem.tasks - problem.label_cost * labels
