"""The default policy for workers who are alike: what a label adds at the price that clears, whatever the load.

    score = E[ V(i, w+1, n-1) - V(i, w, n-1) ]  over the price of the labels to come, which is not certain.

The relaxed problem is solved once for a *path* of prices, one for each arrival. Which multiple of that path clears, so
that the tasks as they stand would buy just the labels that are left, is found anew at every arrival, from values that
are tabulated at several levels (``kernels.choice``). At one level nearly all states that want a label tie where waiting
is free. But what tasks will still want is random, and so is the level: a state that is worth a label only while labels
are cheap falls behind one that is worth it at any price. With few labels in flight tasks are then ordered as by the
index; with many, waiting is not free, advantages differ, and prices decide as in ``lagrangian`` and ``resolve``. What
is still tied goes to the largest no-delay index, then to the lowest state.
With a deadline the labels left are those that workers will come for, and what is in flight then is lost. With more
kinds of tasks than tables can hold it is the index policy.

The values come from a problem no larger than it needs to be:

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
With a deadline as many labels are given out as workers are expected before it, and the labels left are the time left;
labels in flight at the deadline are lost. Rates that vary count through the workers that come, one after another.
Guarantee: without a deadline every value is an upper bound at its own prices (``kernels.sweep``) for the problem
that is swept; with one the edge takes no more labels. Cost: a solve for the path, then J sweeps.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.kernels.choice import LevelTables
from nextlabel.kernels.inputs import make_grid
from nextlabel.kernels.sweep import fill_edges, new_block, no_deadline, sweep_rows
from nextlabel.policies.base import Policy, ScoreTables, Setting
from nextlabel.policies.lagrangian import endless, no_delay_scores
from nextlabel.problem.problem import Problem, in_units
from nextlabel.problem.tasks import fresh_groups, stack_classes
from nextlabel.solve.per_arrival import PriceSolver
from nextlabel.solve.progress import Progress
from nextlabel.solve.truncation import Cut, arrivals_by_time, make_cut, state_columns

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
    given, rho, sure = labels_given(problem)
    scale = scale_of(problem, given, rho)
    arrivals = max(round(given / scale), 1)
    scale = given / arrivals
    found = PriceSolver(problem).solve(fresh_groups(problem.classes), problem.budget)
    left = (scale * (np.arange(arrivals, 0, -1.0) - 0.5) + 0.5) * (found.left / given)
    # Its numbers of tasks are rounded, which the truncation alone looks at.
    classes = tuple(replace(c, count=max(round(c.count / scale), 1)) for c in problem.classes)
    small = replace(
        problem, classes=classes, budget=arrivals, arrival_rate=rho / scale, completion_rate=1.0, horizon=inf
    )
    cut = make_cut(small, None, None)
    stack = stack_classes(classes, cut.depth, arrivals)
    grid = make_grid(stack.first, cut.cap, cut.flight)
    path = np.maximum(found.at(left), LEAST_PRICE * float(stack.spread.max()))
    level = np.geomspace(LOWEST, HIGHEST, LEVELS)
    rows = stored_rows(arrivals)
    value = np.empty((len(classes), len(rows), grid.states, LEVELS))
    labels = np.empty(value.shape[1:])
    steps = no_deadline(small.peak_rate, 1.0, grid.W)._replace(x=np.array([1.0 - sure]))
    paid = path[::-1, None] * level + small.label_cost
    for b in range(len(classes)):
        one, block = stack.one(b), new_block(grid.states, 1, LEVELS)
        fill_edges(one, grid, paid.min(axis=0), block)
        sweep_rows(one, grid, steps, paid, rows, sure < 1.0, block, value[b], labels)
        if progress is not None:
            progress((b + 1) / len(classes))
    total = scale * np.concatenate([[0.0], np.cumsum(path[::-1])])[rows]
    at = np.asarray(scale * rows, dtype=np.float64)
    return PriceLevels(at, level, value, total[:, None] * level, stack.first, stack.node_of, cut)


def labels_given(problem: Problem) -> tuple[float, float, float]:
    """Labels that will be given out, labels in flight meanwhile, and the chance that one in flight then comes in."""
    if not problem.finite:
        return float(problem.budget), problem.rho, 1.0
    mean, mu, T = problem.mean_arrivals, problem.completion_rate, problem.horizon
    given = min(float(problem.budget), max(mean, 1.0))
    knots, come = arrivals_by_time(problem)
    over = float(np.interp(given, come, knots))
    return given, max(mean, 1e-9) / (mu * T), float(-np.expm1(-mu * max(T - over, 0.0)))


def scale_of(problem: Problem, given: float, rho: float) -> float:
    """f: as large as the labels in flight, the arrivals and the states of the sweep make it."""
    cut = make_cut(problem, None, None)
    states = len(problem.classes) * (cut.flight + 1) * (cut.cap + 2) ** 2 // 4
    most = int(np.clip(MOST_WORK // states, LEAST_ARRIVALS, MOST_ARRIVALS))
    return max(1.0, rho / MOST_IN_FLIGHT, given / most)


def stored_rows(arrivals: int) -> Ints:
    """The numbers of arrivals left whose values are kept."""
    rows = list(range(min(DENSE, arrivals) + 1))
    while rows[-1] < arrivals:
        rows.append(min(rows[-1] + max(rows[-1] // STEPS, 1), arrivals))
    return np.array(rows, dtype=np.int64)


class Auto(Policy):
    """The largest advantage at the price that clears."""

    name = "auto"
    in_flight = "all of it"
    random_ties = False
    tied = 1e-7
    priced = True
    by_table = False
    planned_ahead = True
    follows_load = True

    def __init__(self, progress: Progress | None = None) -> None:
        self.progress = progress

    def scores(self, setting: Setting) -> list[ScoreTables]:
        """Values at several levels of the prices, of all classes in the first; the no-delay index for ties."""
        problem, unit = in_units(setting.problem)
        merged, kind = merge_classes(problem)
        priced = price_levels(merged, self.progress)
        static = no_delay_scores(endless(merged), setting, priced.cut)
        tables = level_tables(setting, priced, kind, unit)
        return [ScoreTables(unit * static[k], levels=tables if c == 0 else None) for c, k in enumerate(kind)]


def merge_classes(problem: Problem) -> tuple[Problem, Ints]:
    """The problem with classes that are alike made one, and the number of each class there."""
    number = {replace(c, count=1): 0 for c in problem.classes}
    number = {c: k for k, c in enumerate(number)}
    kind = np.array([number[replace(c, count=1)] for c in problem.classes], dtype=np.int64)
    counts = np.bincount(kind, [c.count for c in problem.classes])
    classes = tuple(replace(c, count=int(counts[k])) for c, k in number.items())
    return replace(problem, classes=classes), kind


def level_tables(setting: Setting, priced: PriceLevels, kind: Ints, unit: float) -> LevelTables:
    """The values of all classes side by side, and where each state of a task stands among them."""
    cap, flight = priced.cut.cap, priced.cut.flight
    kinds, _, states, _ = priced.value.shape
    grid = make_grid(priced.first, cap, flight)
    known = state_columns(grid, priced.node_of, setting.flight, setting.own, edge=True)
    up = np.full(states, -1, dtype=np.int64)
    for w in range(flight):
        inner = int(priced.first[cap - w])
        up[grid.off[w] : grid.off[w] + inner] = grid.off[w + 1] + np.arange(inner)
    return LevelTables(
        at=priced.at,
        level=priced.level,
        value=np.ascontiguousarray(unit * np.concatenate(list(priced.value), axis=1)),
        charge=unit * priced.charge,
        column=np.concatenate([np.where(known >= 0, known + k * states, -1) for k in kind], axis=1).ravel(),
        up=np.concatenate([np.where(up >= 0, up + k * states, -1) for k in range(kinds)]),
        cost=setting.problem.label_cost,
    )
