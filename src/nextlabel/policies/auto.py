"""The default policy for workers who are alike: of two rules, the one that does better on the problem at hand.

One is the index. The other knows what waiting costs, whatever the load:

    score = E[ V(i, w+1, n-1) - V(i, w, n-1) ]  over the price that will clear in the end, which is not certain.

The relaxed problem is solved once for a *path* of prices, one for each arrival. Which multiple of that path clears, so
that the tasks as they stand would buy just the labels that are left, is found anew at every arrival, from values that
are tabulated at several levels (``kernels.choice``). At one level nearly all states that want a label tie where waiting
is free. But what tasks will still take is random, with a variance that is tabulated too, and so is the level: a state
that is worth a label only while labels are cheap falls behind one that is worth it at any price (docs/theory.md,
section 12). What is still tied goes to the largest no-delay index, then to the lowest state.

Few labels before the end the normal law of that sum is poor, and where nothing is in flight the index is then better by
some hundredths of a percent. Which rule is better for a problem is measured: both play the same campaigns beforehand.
With a deadline the labels left are those that workers will come for, what is in flight then is lost, and nothing is
tried, because index tables take minutes. With more kinds of tasks than tables can hold it is the index policy.

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
that is swept; with one the edge takes no more labels.
Cost: a solve for the path, J sweeps, the index, and twice TRIED arrivals played.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.kernels.choice import LevelTables
from nextlabel.kernels.inputs import make_grid
from nextlabel.kernels.sweep import fill_edges, new_block, no_deadline, sweep_demand
from nextlabel.model.problem import Problem, in_units
from nextlabel.model.tasks import fresh_groups, stack_classes
from nextlabel.policies.base import Policy, ScoreTables, Setting
from nextlabel.policies.gap import gap_tables_at
from nextlabel.policies.index import Index
from nextlabel.policies.lagrangian import endless, no_delay_scores
from nextlabel.policies.rollout_arrays import Rollout, join_scores, make_problem_arrays
from nextlabel.solve.per_arrival import PriceSolver
from nextlabel.solve.progress import Progress
from nextlabel.solve.truncation import Cut, arrivals_by_time, make_cut, state_columns

#: Labels in flight and arrivals of the problem that is solved, at most; fewer arrivals if the states are many.
MOST_IN_FLIGHT, MOST_ARRIVALS, LEAST_ARRIVALS, MOST_WORK = 64.0, 1024, 96, 500_000
#: Levels, closest around 1, the most of their logarithm, and how much wider they are apart at the ends.
LEVELS, HIGHEST, WIDER = 32, 6.0, 3.0
#: Arrivals for which each rule is tried, in so many campaigns at least, and the seed.
TRIED, FEWEST, SEED = 200_000, 20, 1
#: A price that is 0 has no multiples: prices are at least this share of what labels can add to a task.
LEAST_PRICE = 1e-6
#: Rows of the tables: every one of the last DENSE arrivals, then at steps of 1/STEPS of the arrivals left.
DENSE, STEPS = 32, 16


@dataclass(frozen=True, slots=True)
class PriceLevels:
    """Values at several levels of the prices, and where states stand; in the unit of the problem's rewards."""

    small: Problem
    price: float
    at: Floats
    level: Floats
    value: Floats
    variance: Floats
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
    level = HIGHEST ** (np.sinh(WIDER * np.linspace(-1.0, 1.0, LEVELS)) / np.sinh(WIDER))
    rows = stored_rows(arrivals)
    value = np.empty((len(classes), len(rows), grid.states, LEVELS))
    variance = np.empty_like(value)
    steps = no_deadline(small.peak_rate, 1.0, grid.W)._replace(x=np.array([1.0 - sure]))
    paid = path[::-1, None] * level + small.label_cost
    for b in range(len(classes)):
        one, block = stack.one(b), new_block(grid.states, 1, LEVELS)
        fill_edges(one, grid, paid.min(axis=0), block)
        sweep_demand(one, grid, steps, paid, rows, sure < 1.0, block, value[b], variance[b])
        if progress is not None:
            progress((b + 1) / len(classes))
    total = scale * np.concatenate([[0.0], np.cumsum(path[::-1])])[rows]
    at = np.asarray(scale * rows, dtype=np.float64)
    return PriceLevels(
        small, float(path.mean()), at, level, value, variance, total[:, None] * level, stack.first, stack.node_of, cut
    )


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
    tied = 1e-7
    priced = True
    by_table = False
    planned_ahead = True
    follows_load = True

    def __init__(self, progress: Progress | None = None) -> None:
        self.progress = progress

    def scores(self, setting: Setting) -> list[ScoreTables]:
        """The tables of the rule that does better; before a deadline, those of the levels."""
        problem, unit = in_units(setting.problem)
        merged, kind = merge_classes(problem)
        priced = price_levels(merged, self.progress)
        levels = level_scores(setting, merged, priced, kind, unit)
        if problem.finite:
            return levels
        if max(problem.budget, problem.tasks) * FEWEST <= TRIED:
            index = Index().scores(setting)
            return index if self.is_behind(setting, unit * priced.price, levels, index) else levels
        scale = priced.at[-1] / priced.small.budget
        small = Setting.of(priced.small, setting.depth, setting.flight)
        priced = replace(priced, at=priced.at / scale, charge=priced.charge / scale)
        tried = level_scores(small, merged, priced, np.arange(len(merged.classes)), 1.0)
        behind = self.is_behind(small, priced.price, tried, Index().scores(small))
        return Index().scores(setting) if behind else levels

    def is_behind(self, setting: Setting, price: float, *rules: list[ScoreTables]) -> bool:
        """Whether the first rule has the larger mean gap to the bound at ``price`` where both have the same chances."""
        gap, _ = gap_tables_at(setting, np.array([price]))
        arrays = make_problem_arrays(setting, True)
        count = max(TRIED // max(setting.problem.budget, setting.problem.tasks, FEWEST), 1)
        plays = (Rollout(arrays, join_scores(setting, self, rule), gap=gap).play(SEED, 0, count)[0] for rule in rules)
        first, second = (float(out[:, 0, 3].mean()) for out in plays)
        return second < first - 1e-9 * abs(first)


def level_scores(setting: Setting, merged: Problem, priced: PriceLevels, kind: Ints, unit: float) -> list[ScoreTables]:
    """Values at several levels of the prices, of all classes in the first; the no-delay index for ties."""
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
    return LevelTables(
        at=priced.at,
        level=priced.level,
        value=np.ascontiguousarray(unit * np.concatenate(list(priced.value), axis=1)),
        variance=np.concatenate(list(priced.variance), axis=1),
        charge=unit * priced.charge,
        column=np.concatenate([np.where(known >= 0, known + k * states, -1) for k in kind], axis=1).ravel(),
        up=np.concatenate([np.where(grid.up >= 0, grid.up + k * states, -1) for k in range(kinds)]),
        cost=setting.problem.label_cost,
    )
