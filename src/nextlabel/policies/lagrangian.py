"""The Lagrangian policy: advantage at the optimal prices per arrival, ties by deficit, then by index.

    score = A_l(i, w) = V(i, w+1) - V(i, w) after arrival l, at prices lam_1 .. lam_U of the per-arrival bound.

With free waiting nearly all useful states tie at exactly lam_l, so that the tie rule is the policy: among the states
within ``tied`` of the best advantage the next label goes to the one with the largest deficit, the number of labels that
the relaxed solution's occupation measure has given it by now minus those it got; then to the largest no-delay index
(Hawkins 2003; Adelman and Mersereau 2008; Hu and Frazier 2017; Brown and Smith 2020).

With a horizon prices depend on the time, not on the worker's number, and so do the advantages (``solve.deadline``);
the plan is that of ``solve.per_arrival``, with workers who come evenly.

``Resolve`` solves again every ``every`` arrivals (K/20 by default) from the states the tasks are in and the arrivals
left, starting from the prices in force; between two solves ties go to the largest deficit against the new occupation
measure (LP-update: Gast, Gaujal and Yan; Brown and Zhang). With a horizon it does so for the time that is left, in
milliseconds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.errors import ProblemError, TooLargeError
from nextlabel.kernels.inputs import Lattices
from nextlabel.model.problem import Problem, in_units
from nextlabel.policies.base import Policy, ScoreTables, Setting
from nextlabel.solve.bound import upper_bound
from nextlabel.solve.deadline import can_be_timed, timed_values
from nextlabel.solve.index_roots import IndexWork
from nextlabel.solve.per_arrival import MOST_NUMBERS, BatchPrices, PricedProblem, PriceSolver, optimise_prices
from nextlabel.solve.truncation import (
    Cut,
    differences,
    make_cut,
    make_timeline,
    over_own_lattice,
    state_columns,
)

#: The prices are good enough for a policy long before the bound's last digits.
TOLERANCE = 2e-5
EVALUATIONS = 800


class Lagrangian(Policy):
    """Advantage first, then deficit, then index."""

    name = "lagrangian"
    in_flight = "all of it"
    priced = True
    by_table = False
    planned_ahead = True
    live = False

    def __init__(self, tied: float = 1e-5, cap: int | None = None) -> None:
        self.tied, self.cap = tied, cap

    def scores(self, setting: Setting) -> list[ScoreTables]:
        """Solve the relaxed problem once; rows hold the advantages at every arrival."""
        problem, unit = in_units(setting.problem)
        if problem.finite:
            return [one.times(unit) for one in _timed_scores(setting, problem)]
        scalar = upper_bound(problem, cap=self.cap)
        cut = make_cut(problem, scalar.cap, scalar.flight)
        priced = PricedProblem(problem, cut, make_timeline(problem))
        spread = float(priced.stack.spread.max())
        start = np.full(problem.budget, scalar.price or 0.0)
        solution = optimise_prices(priced, start, spread, TOLERANCE, EVALUATIONS)
        measure = priced.measure(*solution.plan)
        priced.backward(solution.prices)
        found_scores = relaxed_scores(setting, cut, priced, measure, no_delay_scores(problem, setting, cut))
        return [one.times(unit) for one in found_scores]


def _timed_scores(setting: Setting, problem: Problem) -> list[ScoreTables]:
    """Advantages at all layers of time, and the plan of workers who come evenly."""
    if not can_be_timed(problem):
        what = "the lagrangian policy knows a horizon for at most 16 kinds of tasks and 100,000 arrivals."
        raise ProblemError(what, "Use auto.")
    solution = timed_values(problem)
    solver, grid = solution.solver, solution.solver.sweeps.grid
    cut = solver.cut
    core = state_columns(grid, solver.stack.node_of, setting.flight, setting.own, edge=False)
    static = no_delay_scores(endless(problem), setting, cut)
    return [
        ScoreTables(
            static=static[c],
            rows=np.ascontiguousarray(differences(solution.value[c], grid).T[None]),
            core=core,
            tau=solution.tau,
            planned=planned_by_arrival(solution.plan, c, problem.budget),
        )
        for c in range(len(static))
    ]


def planned_by_arrival(plan: BatchPrices, c: int, arrivals: int) -> Floats:
    """(arrivals, states) labels that the plan has given by each arrival, evenly within its batches."""
    total = np.concatenate([np.zeros((1, plan.planned.shape[2])), np.cumsum(plan.planned[c], axis=0)])
    if arrivals * total.shape[1] > MOST_NUMBERS:
        raise TooLargeError(
            f"a plan for {arrivals:,} arrivals and {total.shape[1]:,} states is too large.", "Use auto."
        )
    ends = np.append(0, np.cumsum(plan.size)).astype(np.float64)
    at = np.interp(np.arange(1, arrivals + 1), ends, np.arange(len(ends)))
    low = np.minimum(at.astype(np.int64), len(ends) - 2)
    share = (at - low)[:, None]
    return np.asarray((1.0 - share) * total[low] + share * total[low + 1], dtype=np.float64)


def endless(problem: Problem) -> Problem:
    """The problem without its deadline, which the no-delay index does not know."""
    return replace(problem, horizon=inf, arrival_rate=problem.peak_rate)


def no_delay_scores(problem: Problem, setting: Setting, cut: Cut) -> list[Floats]:
    """[c][w, node] the no-delay index of ``problem``: second key of ties, and the score past the cap."""
    deep = Cut(cut.cap, cut.flight, max(cut.depth, setting.depth))
    out = []
    for entry in problem.classes:
        work = IndexWork(problem, entry, deep, make_timeline(problem))
        stack = work.stack
        out.append(over_own_lattice(work.beyond(), stack.first, stack.node_of, setting.flight, setting.own))
    return out


def relaxed_scores(
    setting: Setting, cut: Cut, priced: PricedProblem, measure: Floats, static: list[Floats]
) -> list[ScoreTables]:
    """Advantages at the prices that ``priced`` was swept with, and the plan's cumulative labels."""
    stack = priced.stack
    core = state_columns(priced.sweeps.grid, stack.node_of, setting.flight, setting.own, edge=False)
    return [
        ScoreTables(
            static=static[c],
            rows=differences(priced.V[c, :-1, 0], priced.sweeps.grid)[:, :, None],
            core=core,
            planned=np.cumsum(measure[c], axis=0),
        )
        for c in range(len(static))
    ]


#: Prices were good before; a few smooth iterations bring them up to date.
AGAIN_SCHEDULE = ((16, 6e-4, 6), (32, 2e-4, 6))
AGAIN_EVALUATIONS = 24
AGAIN_TOLERANCE = 1e-5


@dataclass(slots=True)
class Solved:
    """What one solve leaves to the next, in units of the reward: truncation, prices, tables that never change."""

    cut: Cut
    stack: Lattices
    prices: Floats
    spread: float
    core: Ints
    static: list[Floats]
    #: With a horizon: the solver, and what it found last.
    solver: PriceSolver | None = None
    last: BatchPrices | None = None


class Resolve(Lagrangian):
    """Advantage at prices that follow the campaign."""

    name = "resolve"
    solves_again = True

    def __init__(self, every: int | None = None, tied: float = 1e-5, cap: int | None = None) -> None:
        super().__init__(tied, cap)
        self.every = every

    def interval(self, setting: Setting) -> int:
        """Arrivals between two solves."""
        return self.every or max(1, setting.problem.tasks // 20)

    def prepare(self, setting: Setting) -> Solved:
        """First prices and the tables that stay; with a horizon a solver for the time that is left."""
        problem, _ = in_units(setting.problem)
        solver = PriceSolver(problem, cap=self.cap, closed=True) if problem.finite else None
        if solver is not None:
            cut, stack, grid, prices = solver.cut, solver.stack, solver.sweeps.grid, np.zeros(0)
        else:
            bound = upper_bound(problem, "per-arrival", cap=self.cap)
            cut = make_cut(problem, bound.cap, bound.flight)
            priced = PricedProblem(problem, cut, make_timeline(problem))
            assert bound.prices is not None
            stack, grid, prices = priced.stack, priced.sweeps.grid, bound.prices
        static = no_delay_scores(endless(problem) if problem.finite else problem, setting, cut)
        core = state_columns(grid, stack.node_of, setting.flight, setting.own, edge=not problem.finite)
        return Solved(cut, stack, prices, float(stack.spread.max()), core, static, solver)

    def update(
        self, setting: Setting, solved: Solved, occupied: list[Floats], left: int, time_left: float = inf
    ) -> list[ScoreTables]:
        """Tables for the next arrivals: ``occupied`` [c][w, node] counts the tasks of each class in each state."""
        whole, unit = in_units(setting.problem)
        if solved.solver is not None:
            tables = _in_time(solved.solver, solved, occupied, left, min(time_left, setting.problem.horizon))
            return [one.times(unit) for one in tables]
        inside = solved.core >= 0  # tasks past the sweep's edge are left out, they are not worth another label
        size = int(solved.core.max()) + 1
        initial = [np.bincount(solved.core[inside], table[inside], size) / table.sum() for table in occupied]
        problem = whole.with_budget(left)
        priced = PricedProblem(problem, solved.cut, make_timeline(problem), np.stack(initial), solved.stack)
        solution = optimise_prices(
            priced, solved.prices[-left:], solved.spread, AGAIN_TOLERANCE, AGAIN_EVALUATIONS, schedule=AGAIN_SCHEDULE
        )
        solved.prices = solution.prices
        measure = priced.measure(*solution.plan)
        priced.backward(solution.prices)
        return [one.times(unit) for one in relaxed_scores(setting, solved.cut, priced, measure, solved.static)]

    def scores(self, setting: Setting) -> list[ScoreTables]:
        """Tables of the start, all tasks fresh."""
        return self.update(setting, self.prepare(setting), self.fresh(setting), setting.problem.budget)

    def fresh(self, setting: Setting) -> list[Floats]:
        """[c][w, node] number of tasks in each state before the first label."""
        out = [np.zeros((setting.flight + 1, view.nodes)) for view in setting.views]
        for table, entry in zip(out, setting.problem.classes, strict=True):
            table[0, 0] = entry.count
        return out


def _in_time(
    solver: PriceSolver, solved: Solved, occupied: list[Floats], left: int, time_left: float
) -> list[ScoreTables]:
    """Tables for the arrivals of the time that is left."""
    groups = [
        (c, i, w, int(table[w, i])) for c, table in enumerate(occupied) for w, i in zip(*np.nonzero(table), strict=True)
    ]
    states = tuple(np.array(groups, dtype=np.int64).T)
    solved.last = solution = solver.solve(states, left, solved.last, time_left=time_left)
    return [
        ScoreTables(
            static=solved.static[c],
            rows=solution.advantage[c][None, :, None],
            core=solved.core,
            planned=planned_by_arrival(solution, c, left),
        )
        for c in range(len(occupied))
    ]
