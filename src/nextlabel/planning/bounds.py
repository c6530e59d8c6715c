"""The bounds of a plan: for every budget at once, and sharper ones where a deadline cuts campaigns short.

The curve of ``solve.curve`` counts the workers who come before the deadline, and not that labels in flight then are
lost. ``solve.deadline`` does, at prices by time; prices that are good for one budget give a bound at every
other. The plan has the least of them all.
Guarantee: upper bound for every budget, if workers are alike. Cost: a second for each budget that is solved for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.problem.problem import LARGEST, Problem
from nextlabel.problem.state import fresh_groups
from nextlabel.solve.curve import BoundCurve, bound_curve
from nextlabel.solve.deadline import MOST_CLASSES, DeadlineBound, deadline_bound
from nextlabel.solve.progress import Progress

#: Budgets whose prices are solved for, as shares of the most that is of use before the deadline.
SOLVED = (1.0, 0.5, 0.2)


@dataclass(frozen=True, slots=True)
class PlanBounds:
    """The least of several bounds, per task."""

    problem: Problem
    plain: BoundCurve
    timed: tuple[DeadlineBound, ...] = ()

    def value(self, budgets: Ints | Floats) -> Floats:
        """No policy has more with each of the budgets."""
        U = np.asarray(budgets, dtype=np.int64)
        least = self.plain.value(U)
        for one in self.timed:
            least = np.minimum(least, one.curve(U - one.labels_left))
        return least

    def price(self, budgets: Ints | Floats) -> Floats:
        """The slope of the bound in the budget, over all tasks."""
        if not self.timed:
            return self.plain.price(budgets)
        U = np.asarray(budgets, dtype=np.int64)
        return np.maximum(self.value(U + 1) - self.value(U), 0.0) * self.problem.tasks

    def budget_for(self, target: float) -> int | None:
        """The least budget whose bound reaches ``target`` a task. None: none does."""
        low = self.plain.budget_for(target)
        if low is None or not self.timed:
            return low
        high = max(useful_budget(self.problem), low)
        if float(self.value(np.array([high]))[0]) < target:
            return None
        while low < high:
            middle = (low + high) // 2
            reached = float(self.value(np.array([middle]))[0]) >= target
            low, high = (low, middle) if reached else (middle + 1, high)
        return low


def plan_bounds(problem: Problem, progress: Progress | None = None) -> PlanBounds:
    """Bounds for all budgets up to the problem's own."""
    plain = bound_curve(problem, progress)
    if not problem.finite or len(problem.classes) > MOST_CLASSES:
        return PlanBounds(problem, plain)
    most, fresh = min(useful_budget(problem), problem.budget), fresh_groups(problem.classes)
    budgets = sorted({max(round(share * most), 1) for share in SOLVED})
    return PlanBounds(problem, plain, tuple(deadline_bound(problem, fresh, budget) for budget in budgets))


def useful_budget(problem: Problem) -> int:
    """The largest budget worth a look: with a deadline more labels than workers can come."""
    if not problem.finite:
        return LARGEST
    return min(int(problem.mean_arrivals + 6 * problem.mean_arrivals**0.5) + 1, LARGEST)
