"""Re-solving: the Lagrangian policy with prices re-optimised from the tasks' actual states as the campaign runs.

Every ``every`` arrivals (K/20 by default) the relaxed problem is solved again from the states the tasks are in and the
arrivals left, starting from the prices in force; between two solves ties go to the largest deficit against the new
occupation measure (LP-update: Gast, Gaujal and Yan; Brown and Zhang).

With a horizon prices, advantages and plan are those of ``solve.batched`` for the time that is left, with workers who
come evenly: milliseconds for each solve.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.beliefs.lattice import LatticeStack
from nextlabel.policies.base import Policy, ScoreTables, Setting
from nextlabel.policies.lagrangian import endless, no_delay_scores, planned_by_arrival, relaxed_scores
from nextlabel.problem.problem import Problem, in_units
from nextlabel.solve.batched import BatchPrices, PriceSolver
from nextlabel.solve.bound import upper_bound
from nextlabel.solve.per_arrival import PricedProblem, optimise_prices
from nextlabel.solve.truncation import Cut, all_columns, core_columns, make_cut, make_timeline

#: Prices were good before; a few smooth iterations bring them up to date.
SCHEDULE = ((16, 6e-4, 6), (32, 2e-4, 6))
EVALUATIONS = 24
TOLERANCE = 1e-5


@dataclass(slots=True)
class Solved:
    """What one solve leaves to the next, in units of the reward: truncation, prices, tables that never change."""

    cut: Cut
    stack: LatticeStack
    prices: Floats
    spread: float
    columns: list[Ints]
    static: list[Floats]
    #: With a horizon: the solver, and what it found last.
    solver: PriceSolver | None = None
    last: BatchPrices | None = None


class Resolve(Policy):
    """Advantage at prices that follow the campaign."""

    name = "resolve"
    in_flight = "all of it"
    priced = True
    by_table = False
    planned_ahead = True
    live = False
    solves_again = True

    def __init__(self, every: int | None = None, tied: float = 1e-5, cap: int | None = None) -> None:
        self.every, self.tied, self.cap = every, tied, cap

    def interval(self, setting: Setting) -> int:
        """Arrivals between two solves."""
        return self.every or max(1, setting.problem.tasks // 20)

    def prepare(self, setting: Setting) -> Solved:
        """First prices and the tables that stay."""
        problem, _ = in_units(setting.problem)
        if problem.finite:
            return self._prepare_timed(setting, problem)
        bound = upper_bound(problem, "per-arrival", cap=self.cap)
        cut = make_cut(problem, bound.cap, bound.flight)
        priced = PricedProblem(problem, cut, make_timeline(problem))
        assert bound.prices is not None
        shape = (priced.stack.first, priced.stack.node_of, cut.cap, cut.flight, setting.flight, setting.own)
        return Solved(
            cut=cut,
            stack=priced.stack,
            prices=bound.prices,
            spread=float(priced.stack.spread.max()),
            columns=[all_columns(*shape) for _ in problem.classes],
            static=no_delay_scores(problem, setting, cut),
        )

    def update(
        self, setting: Setting, solved: Solved, occupied: list[Floats], left: int, time_left: float = inf
    ) -> list[ScoreTables]:
        """Tables for the next arrivals: ``occupied`` [c][w, node] counts the tasks of each class in each state."""
        whole, unit = in_units(setting.problem)
        if solved.solver is not None:
            return self._update_timed(setting, solved, occupied, left, time_left)
        problem = whole.with_budget(left)
        initial = self._initial(solved, occupied)
        priced = PricedProblem(problem, solved.cut, make_timeline(problem), initial, solved.stack)
        found = optimise_prices(priced, solved.prices[-left:], solved.spread, TOLERANCE, EVALUATIONS, schedule=SCHEDULE)
        solved.prices = found.prices
        measure = priced.measure(*found.plan)
        priced.backward(found.prices)
        return [one.times(unit) for one in relaxed_scores(setting, solved.cut, priced, measure, solved.static)]

    def _prepare_timed(self, setting: Setting, problem: Problem) -> Solved:
        """A solver for the time that is left, and the tables that stay."""
        solver = PriceSolver(problem, cap=self.cap, closed=True)
        grid, stack = solver.sweeps.grid, solver.stack
        shape = (stack.first, stack.node_of, grid.C, grid.W, setting.flight, setting.own)
        return Solved(
            cut=solver.cut,
            stack=stack,
            prices=np.zeros(0),
            spread=solver.sweeps.spread,
            columns=[core_columns(*shape) for _ in problem.classes],
            static=no_delay_scores(endless(problem), setting, solver.cut),
            solver=solver,
        )

    def _update_timed(
        self, setting: Setting, solved: Solved, occupied: list[Floats], left: int, time_left: float
    ) -> list[ScoreTables]:
        unit = in_units(setting.problem)[1]
        groups = [
            (c, i, w, int(table[w, i]))
            for c, table in enumerate(occupied)
            for w, i in zip(*np.nonzero(table), strict=True)
        ]
        time = min(time_left, setting.problem.horizon)
        assert solved.solver is not None
        solved.last = solved.solver.solve(tuple(np.array(groups, dtype=np.int64).T), left, solved.last, time_left=time)
        found = solved.last
        tables = [
            ScoreTables(
                static=solved.static[c],
                rows=found.advantage[c][None, :, None],
                core=solved.columns[c],
                planned=planned_by_arrival(found, c, left),
            )
            for c in range(len(occupied))
        ]
        return [one.times(unit) for one in tables]

    def scores(self, setting: Setting) -> list[ScoreTables]:
        """Tables of the start, all tasks fresh."""
        return self.update(setting, self.prepare(setting), self.fresh(setting), setting.problem.budget)

    def fresh(self, setting: Setting) -> list[Floats]:
        """[c][w, node] number of tasks in each state before the first label."""
        out = [np.zeros((setting.flight + 1, view.nodes)) for view in setting.views]
        for table, entry in zip(out, setting.problem.classes, strict=True):
            table[0, 0] = entry.count
        return out

    def _initial(self, solved: Solved, occupied: list[Floats]) -> Floats:
        """(classes, states) shares; tasks past the sweep's edge are left out, they are not worth another label."""
        rows = []
        for table, columns in zip(occupied, solved.columns, strict=True):
            inside = columns >= 0
            size = int(solved.columns[0].max()) + 1
            rows.append(np.bincount(columns[inside], table[inside], minlength=size) / table.sum())
        return np.stack(rows)
