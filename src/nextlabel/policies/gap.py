"""What each state could gain and what a label would add, at given prices: both make up the gap's martingale estimate.

========= ========== ================= =================================================================
symbol    code       shape             meaning
========= ========== ================= =================================================================
A - c     gain       (n, states)       V(i,w+1,n-1) - V(i,w,n-1), less the cost of a label
x - V     best       (n, states)       what the arrival that finds n left could add to V(i,w,n-1) at best
--        core       (w, node)         column of a state, -1 where the sweep does not reach (there ``past_*``)
V         value      --                V(root, U arrivals left)
========= ========== ================= =================================================================

    x(i,w,n) = V(i,w,n) + (mu w / r) [ V(i,w,n) - sum_j p_j V(child_j,w-1,n) ]

is the value that the recursion asks of an arrival. Off the edge x = max{V(w,n-1), V(w+1,n-1) - c - lam}, so best is
max{0, A - c - lam}; on the edge V is the no-delay value, which the recursion does not reach, and best is what it lacks.
Past the sweep V = E[S after w labels] while arrivals are left, and E[R after w labels] when none is.
Guarantee: B = E[reward] + E[sum over arrivals and tasks of best - (A - c - lam) of the label given] + unused prices,
exactly, for any policy and any truncation. With a common price the last row is the limit. Infinite horizon only.

Before a deadline V is that of prices by time (``solve.deadline``), for up to 16 classes.
"""

from __future__ import annotations

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.kernels.inputs import Grid, Lattices, make_grid
from nextlabel.kernels.rollout import NO_GAP, NO_TIMED_GAP, GapTables, TimedGap
from nextlabel.kernels.sweep import new_block, no_deadline, sweep_rows
from nextlabel.model.lattice import after_labels
from nextlabel.model.problem import Problem, in_units
from nextlabel.model.simplex import simplex
from nextlabel.model.tasks import TaskClass, counts_of, stack_classes
from nextlabel.policies.base import Setting
from nextlabel.policies.rollout_arrays import join_tables
from nextlabel.solve.bound import Bound
from nextlabel.solve.deadline import TimedValues, can_be_timed, timed_values
from nextlabel.solve.relaxed import no_delay_values
from nextlabel.solve.truncation import SETTLED, Cut, make_cut, over_own_lattice, state_columns

#: Arrivals left that are swept at once before the limit is tried.
BLOCK = 64


def gap_tables(setting: Setting, bound: Bound) -> tuple[GapTables, float]:
    """Tables at the bound's prices, and how much their own bound is above the one reported; none for many classes."""
    price = np.array([bound.price]) if bound.prices is None else bound.prices
    gap, own = gap_tables_at(setting, price, bound.cap, bound.flight)
    return gap, own - bound.value if own is not None else 0.0


def gap_tables_at(
    setting: Setting, price: Floats, cap: int | None = None, flight: int | None = None
) -> tuple[GapTables, float | None]:
    """Tables at any prices, and the bound that belongs to them; with a deadline at those of ``solve.deadline``."""
    problem, unit = in_units(setting.problem)
    if problem.finite:
        if not can_be_timed(problem):
            return NO_GAP, None
        timed = timed_values(problem)
        own = unit * (float(counts_of(problem.classes) @ timed.start) + timed.charge)
        return NO_GAP._replace(timed=_timed_gap(setting, timed, unit)), own
    cut = make_cut(problem, cap, flight)
    parts = [_advantages(problem, entry, price / unit, cut, setting) for entry in problem.classes]
    best, gain, cores, past_best, past_gain, values = zip(*parts, strict=True)
    both = [
        join_tables([one[0] for one in past], [table[:, :, None] for table in tables], cores)
        for past, tables in ((past_best, best), (past_gain, gain))
    ]
    rows, gains = (unit * np.ascontiguousarray(table[:, :, 0]) for _, table, _ in both)
    gap = GapTables(
        rows, gains, both[0][2], unit * np.concatenate(past_best, axis=2),
        unit * np.concatenate(past_gain, axis=2),
        np.broadcast_to(price, (problem.budget,)).astype(np.float64), NO_TIMED_GAP,
    )  # fmt: skip
    charged = float(price[0]) * problem.budget if len(price) == 1 else float(price.sum())
    return gap, sum(entry.count * unit * one for entry, one in zip(problem.classes, values, strict=True)) + charged


def _advantages(
    problem: Problem, entry: TaskClass, prices: Floats, cut: Cut, setting: Setting
) -> tuple[Floats, Floats, Ints, Floats, Floats, float]:
    """Best and gain at ``prices`` (one for all arrivals, or U), core, both past the sweep, and the value of one class.

    They are over the class's own lattice; past the sweep (2, w, node): one arrival left, and more.
    """
    flight, own = setting.flight, simplex(entry.answers, setting.depth)[0]
    stack = stack_classes([entry], max(cut.depth, setting.depth), problem.budget)
    grid = make_grid(stack.first, cut.cap, cut.flight)
    cost = problem.label_cost
    lowest = float(prices.min()) + cost
    most = max(flight, cut.flight) + 1
    free = after_labels(stack, no_delay_values(stack, lowest), most)
    ended = after_labels(stack, stack.reward[0], most)
    limit = free[grid.flight, grid.node]
    if len(prices) > 1:
        V = _sweep(problem, stack, grid, prices + cost, limit)
        value = float(V[-1, 0])
    else:
        V, value = _until_settled(problem, stack, grid, lowest, limit)
    best, gain = _rows(problem, stack, grid, V, free, ended)
    past_best = np.stack([free - ended, np.zeros_like(free)])[:, : flight + 1]
    past_gain = np.stack([np.diff(ended, axis=0), np.diff(free, axis=0)])[:, : flight + 1] - cost
    past = [
        np.stack([over_own_lattice(one, stack.first, stack.node_of, flight, own) for one in tables])
        for tables in (past_best, past_gain)
    ]
    core = state_columns(grid, stack.node_of, flight, own, edge=True)
    return best, gain - cost, core, past[0], past[1], value


def _rows(
    problem: Problem, stack: Lattices, grid: Grid, V: Floats, free: Floats, ended: Floats
) -> tuple[Floats, Floats]:
    """best and gain for n = 1, 2, ... arrivals left from V with n = 0, 1, ...; the edge leads past the sweep."""
    past, inside, back = grid.up < 0, grid.up >= 0, np.flatnonzero(grid.flight > 0)
    gain, best = np.empty((len(V) - 1, V.shape[1])), V[1:] - V[:-1]
    after = free[grid.flight + 1, grid.node] - V[:-1]
    after[0] = ended[grid.flight + 1, grid.node] - V[0]
    gain[:, past] = after[:, past]
    gain[:, inside] = V[:-1, grid.up[inside]] - V[:-1, inside]
    node, w = grid.node[back], grid.flight[back]
    down = (grid.off[w - 1])[:, None] + stack.child[node]
    mean = (stack.prob[0, node] * V[1:, down]).sum(axis=2)
    best[:, back] += w / problem.rho * (V[1:, back] - mean)
    return np.maximum(best, 0.0), gain


def _until_settled(problem: Problem, stack: Lattices, grid: Grid, lam: float, limit: Floats) -> tuple[Floats, float]:
    """V for n = 0, 1, ... arrivals left until it is the limit everywhere, the limit itself last; and V at U."""
    rows = min(BLOCK, problem.budget)
    while True:
        V = _sweep(problem, stack, grid, np.full(rows, lam), limit)
        if rows == problem.budget:
            return V, float(V[-1, 0])
        if np.abs(limit - V[-1]).max() <= SETTLED:
            return np.vstack([V, limit, limit]), float(limit[0])
        rows = min(2 * rows, problem.budget)


def _sweep(problem: Problem, stack: Lattices, grid: Grid, prices: Floats, limit: Floats) -> Floats:
    """V (arrivals left, states) with the edge at its limit whatever n."""
    rows, block = np.arange(len(prices) + 1), new_block(grid.states, 1, 1)
    block.value[:] = limit[:, None]
    V, N = np.empty((2, len(rows), grid.states, 1))
    steps = no_deadline(problem.peak_rate, problem.completion_rate, grid.W)
    sweep_rows(stack, grid, steps, np.ascontiguousarray(prices[::-1, None]), rows, False, block, V, N)
    return V[:, :, 0]


def _timed_gap(setting: Setting, solution: TimedValues, unit: float) -> TimedGap:
    """Values by time of all classes, at the prices of ``solution``."""
    stack, grid, cost = solution.solver.stack, solution.solver.sweeps.grid, setting.problem.label_cost
    known = state_columns(grid, stack.node_of, setting.flight + 1, setting.own, edge=True)
    columns = [np.where(known >= 0, known + b * grid.states, -1) for b in range(len(solution.value))]
    return TimedGap(
        tau=solution.tau,
        value=np.ascontiguousarray(unit * np.concatenate(solution.value, axis=1)),
        slope=np.ascontiguousarray(unit * np.concatenate(solution.slope, axis=2)),
        price=unit * solution.price + cost,
        column=np.concatenate(columns, axis=1),
        worth=np.concatenate([view.after_flight(view.lattice.reward, more=1) for view in setting.views], axis=1),
        mu=setting.problem.completion_rate,
        cost=cost,
    )
