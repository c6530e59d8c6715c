"""The upper bound for every budget at once, and what fixed numbers of labels per task are worth.

========= ============ ==========================================================================
symbol    code         meaning
========= ============ ==========================================================================
lam       lines        a grid of prices, falling (``price_search``)
S(lam)    lines        sum over tasks of the no-delay values at cost c + lam
L(lam)    lines        sum over tasks of the labels bought at that price, -dS/dlam
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

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import pdtrc

from nextlabel.arrays import Floats, Ints
from nextlabel.model.problem import Problem, in_units, refuse_workers
from nextlabel.model.simplex import deepest
from nextlabel.model.tasks import LARGEST, fresh_groups, many_lattices
from nextlabel.solve.grouping import group
from nextlabel.solve.present_bound import NoDelaySums
from nextlabel.solve.price_search import PriceLines, fine_prices, refine_corners, trace
from nextlabel.solve.progress import Progress
from nextlabel.solve.truncation import expected_given, no_delay_depth

#: Prices of the grid, for few classes and for many.
PRICES, FEW_PRICES, MANY = 200, 64, 256
REFINEMENTS = 2
#: A bound that is so much below a target reaches it.
ROUNDING = 1e-12
#: Labels of one task that are looked at, for few classes: low prices buy many.
DEEP = 256
#: ... and for many.
NOT_SO_DEEP = 96


@dataclass(frozen=True, slots=True)
class BoundCurve:
    """B(U) for every budget U, from lines S(lam) + lam A(U)."""

    problem: Problem
    lines: PriceLines

    def arrivals(self, budgets: Ints | Floats) -> Floats:
        """A(U)."""
        U = np.asarray(budgets, dtype=np.float64)
        if not self.problem.finite:
            return U
        return expected_given(U, self.problem.mean_arrivals)

    def value(self, budgets: Ints | Floats) -> Floats:
        """B(U), per task."""
        return self.lines.value(self.arrivals(budgets)) / self.problem.tasks

    def price(self, budgets: Ints | Floats) -> Floats:
        """The price of the bound at budget U: the slope of K B on the right of it, lam P(N > U)."""
        price = self.lines.price(self.arrivals(budgets))
        if self.problem.finite:
            price = price * pdtrc(np.asarray(budgets, dtype=np.float64), self.problem.mean_arrivals)
        return np.asarray(price, dtype=np.float64)

    def budget_for(self, target: float) -> int | None:
        """The least budget whose bound reaches ``target`` a task under the model. None: none does."""
        return least_budget(self.value, target, LARGEST)


def least_budget(value: Callable[[Ints], Floats], target: float, most: int) -> int | None:
    """The least budget at which a bound that rises with the budget reaches ``target``; None past ``most``."""
    least = bisect_left(range(most + 1), target - ROUNDING, key=lambda U: float(value(np.array([U]))[0]))
    return least if least <= most else None


def bound_curve(problem: Problem, progress: Progress | None = None) -> BoundCurve:
    """Evaluate the no-delay problem of all classes at a grid of prices; the problem's own budget limits the depth."""
    refuse_workers(problem, "the curve of bounds over budgets")
    original = problem
    problem, unit = in_units(problem)
    grouped = group(problem, least=MANY)
    above = 0.0
    if grouped is not None:
        problem, above = replace(problem, classes=grouped.upper), grouped.above
    few = len(problem.classes) <= MANY
    depth = min(no_delay_depth(problem), NOT_SO_DEEP)
    if few:
        depth = max(no_delay_depth(problem), min(DEEP, problem.budget, deepest(problem.answers)))
    sums = NoDelaySums(problem.classes, fresh_groups(problem.classes), depth, label_cost=problem.label_cost)
    lines = trace(sums, fine_prices(sums.top, PRICES if few else FEW_PRICES), progress)
    lines = refine_corners(sums, lines, REFINEMENTS if few else 0, 0.0)
    lines.sums[0] += above
    by_row = np.array([unit, 1.0, unit])[:, None]
    return BoundCurve(original, PriceLines(unit * lines.prices, by_row * lines.sums, unit * lines.scale))


def overlap_values(problem: Problem, labels: Ints) -> Floats:
    """Value per task of giving every task exactly m labels, m in ``labels``: E[R after m labels] - c m."""
    most = int(labels.max())
    total = np.zeros(most + 1)
    for counts, (first, child, reward, _, prob, _) in many_lattices(problem.classes, most):
        mass = np.zeros(reward.shape)
        mass[:, 0] = 1.0
        for m in range(most + 1):
            here = slice(int(first[m]), int(first[m + 1]))
            total[m] += float(counts @ (mass[:, here] * reward[:, here]).sum(axis=1))
            for i in range(here.start, here.stop) if m < most else ():
                for j in range(problem.answers):
                    mass[:, child[i, j]] += mass[:, i] * prob[:, i, j]
    return total[labels] / problem.tasks - problem.label_cost * labels


def ceiling_value(problem: Problem) -> float:
    """Value per task if the truth of every task were told."""
    return sum(float(counts @ one.ceiling[:, 0]) for counts, one in many_lattices(problem.classes, 0)) / problem.tasks
