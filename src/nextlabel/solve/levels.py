"""Values of one task at several levels of the prices, on a problem no larger than it needs to be.

========= ========= ============= ==================================================================================
symbol    code      shape         meaning
========= ========= ============= ==================================================================================
lam_l     path      (U/f,)        prices of the relaxed problem from fresh tasks, one for each arrival
k_j       level     (J,)          LEVELS multiples of them, evenly spaced in the logarithm
f         scale     --            arrivals of the problem for one of the problem that is solved
V_j(s,n)  value     (c, R, C, J)  value of a task of class c with n arrivals left, at prices k_j lam
========= ========= ============= ==================================================================================

With many labels in flight a task sees so many arrivals that their number left matters only through the time left,
n / r. So tasks are swept as if there were K/f of them, U/f arrivals and r/f labels in flight; f = 1 where there are few
arrivals and few labels in flight. Values are kept for every n up to DENSE f, then at steps of n/STEPS.
Guarantee: every value is an upper bound at its own prices (``kernels.backward``) for the problem that is swept.
Cost: a solve for the path (``solve.batched``), then J sweeps.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.problem.groups import fresh_groups
from nextlabel.problem.problem import Problem
from nextlabel.solve.batched.prices import PriceSolver
from nextlabel.solve.per_arrival import PricedProblem
from nextlabel.solve.progress import Progress
from nextlabel.solve.timeline import make_timeline
from nextlabel.solve.truncation import Cut, make_cut

#: Labels in flight and arrivals of the problem that is solved, at most; fewer arrivals if the states are many.
MOST_IN_FLIGHT, MOST_ARRIVALS, LEAST_ARRIVALS, MOST_WORK = 64.0, 1024, 96, 500_000
#: Levels, from the lowest to the highest multiple of the path.
LEVELS, LOWEST, HIGHEST = 32, 0.1, 6.0
#: A price that is 0 has no multiples: prices are at least this share of what labels can add to a task.
LEAST_PRICE = 1e-6
#: Rows of the tables: every one of the last DENSE arrivals, then at steps of 1/STEPS of the arrivals left.
DENSE, STEPS = 32, 16


@dataclass(frozen=True, slots=True)
class PriceLevels:
    """Values at several levels of the prices, and where states stand; in the unit of the problem's rewards."""

    at: Floats
    level: Floats
    value: Floats
    charge: Floats
    first: Ints
    node_of: Ints
    cut: Cut


def price_levels(problem: Problem, progress: Progress | None = None) -> PriceLevels:
    """Solve for the path of the prices, then for the values at each level of it."""
    small, scale = smaller(problem)
    found = PriceSolver(problem).solve(fresh_groups(problem.classes), problem.budget)
    cut = make_cut(small, None, None)
    priced = PricedProblem(small, cut, make_timeline(small))
    spread = float(priced.stack.spread.max())
    left = scale * (np.arange(small.budget, 0, -1.0) - 0.5) + 0.5
    path = np.maximum(found.at(left), LEAST_PRICE * spread)
    level = np.geomspace(LOWEST, HIGHEST, LEVELS)
    rows = stored_rows(small.budget)
    value = np.empty((len(problem.classes), len(rows), priced.states, LEVELS))
    for j, multiple in enumerate(level):
        if progress is not None:
            progress(j / LEVELS)
        priced.backward(multiple * path)
        value[:, :, :, j] = priced.V[:, rows, 0]
    total = scale * np.concatenate([[0.0], np.cumsum(path[::-1])])[rows]
    stack = priced.stack
    return PriceLevels(
        np.asarray(scale * rows, dtype=np.float64),
        level,
        value,
        total[:, None] * level,
        stack.first,
        stack.node_of,
        cut,
    )


def smaller(problem: Problem) -> tuple[Problem, float]:
    """The problem that is swept instead, and the scale; its tasks are rounded, which only its truncation sees."""
    cut = make_cut(problem, None, None)
    states = len(problem.classes) * (cut.flight + 1) * (cut.cap + 2) ** 2 // 4
    most = int(np.clip(MOST_WORK // states, LEAST_ARRIVALS, MOST_ARRIVALS))
    scale = max(1.0, problem.rho / MOST_IN_FLIGHT, problem.budget / most)
    arrivals = max(round(problem.budget / scale), 1)
    scale = problem.budget / arrivals
    classes = tuple(replace(c, count=max(round(c.count / scale), 1)) for c in problem.classes)
    small = replace(problem, classes=classes, budget=arrivals, arrival_rate=problem.rho / scale, completion_rate=1.0)
    return small, scale


def stored_rows(arrivals: int) -> Ints:
    """The numbers of arrivals left whose values are kept."""
    rows = list(range(min(DENSE, arrivals) + 1))
    while rows[-1] < arrivals:
        rows.append(min(rows[-1] + max(rows[-1] // STEPS, 1), arrivals))
    return np.array(rows, dtype=np.int64)
