"""The relaxed problem at one common price: sum of single-task values and labels, over all classes.

========= ======= ==========================================================
symbol    code    meaning
========= ======= ==========================================================
lam       price   price of a label, the same for every arrival
V_x       value   sum over tasks of the single-task values at that price
N_x       labels  sum over tasks of the expected labels bought (-dV/dlam)
========= ======= ==========================================================

Infinite horizon: the no-delay value is the answer wherever its distance from V (``no_delay``'s late mass times the
spread) is under SETTLED; other classes are swept arrival by arrival. Finite horizon: always swept, over time layers.
Guarantee: ``value`` is never below the true sum, ``slack`` bounds how far above it may be for settled classes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from os import cpu_count
from typing import TypeVar

import numpy as np

from nextlabel.arrays import Floats
from nextlabel.kernels.inputs import Edge, Grid, Lattices, make_grid
from nextlabel.kernels.no_delay import EDGE_ROWS, fill_edge, no_delay
from nextlabel.kernels.sweep import fill_edges, new_block, sweep_until
from nextlabel.model.problem import Problem
from nextlabel.model.tasks import TaskClass, counts_of, many_lattices, stack_classes
from nextlabel.solve.progress import Progress
from nextlabel.solve.truncation import SETTLED, Cut, Timeline, late_tail, make_stencils

Item = TypeVar("Item")
Result = TypeVar("Result")

#: Classes handled by one kernel call.
CHUNK = 32


def chunks(classes: Sequence[TaskClass]) -> list[Sequence[TaskClass]]:
    """The classes in pieces of CHUNK."""
    return [classes[i : i + CHUNK] for i in range(0, len(classes), CHUNK)]


def no_delay_values(one: Lattices, lam: float) -> Floats:
    """(nodes,) S of one class at price ``lam``."""
    work = np.empty((3, one.reward.shape[1]))
    no_delay(one, lam, np.zeros(len(one.first) - 1), work, np.empty((1, 4)))
    return np.asarray(work[0])


def highest_price(classes: Sequence[TaskClass]) -> float:
    """The most that labels can add to a fresh task, in expectation: nobody buys above it."""
    return max(float((roots.ceiling[:, 0] - roots.reward[:, 0]).max()) for _, roots in many_lattices(classes, 0))


def no_delay_edge(lattices: Lattices, grid: Grid, lam: float) -> Edge:
    """Value and labels of the states on the edge when they go on without delay at price ``lam``."""
    shape = (len(lattices.reward), EDGE_ROWS + 1, grid.states)
    edge = Edge(np.zeros(shape), np.zeros(shape))
    fill_edge(lattices, grid, lam, edge)
    return edge


def on_all_cores(
    work: Callable[[Item], Result], items: Sequence[Item], progress: Progress | None = None
) -> Iterator[Result]:
    """``work`` of each item, in their order; threads are enough, for kernels hold no lock, and one item needs none."""
    with nullcontext() if len(items) == 1 else ThreadPoolExecutor(max(1, min(len(items), cpu_count() or 1))) as pool:
        for done, result in enumerate(map(work, items) if pool is None else pool.map(work, items), start=1):
            yield result
            if progress is not None:
                progress(done / len(items))


class RelaxedProblem:
    """Evaluates the relaxed problem at common prices, a chunk of classes at a time, on all cores."""

    def __init__(
        self, problem: Problem, cut: Cut, timeline: Timeline, *, forbid: bool = False, top: float | None = None
    ) -> None:
        """``top``: the price above which nobody buys, if it is known already."""
        self.problem = problem
        self.tasks = problem.tasks
        self.top = highest_price(problem.classes) if top is None else top
        self.cut = cut
        self.timeline = timeline
        self.forbid = forbid
        self.swept = 0
        self._tail = late_tail(problem, cut.depth)
        self._steps = make_stencils(problem, timeline, cut.flight)
        self._pieces = chunks(problem.classes)
        # A single chunk keeps its lattices from price to price; many would not fit and are made again.
        self._kept = stack_classes(problem.classes, cut.depth, problem.budget) if len(self._pieces) == 1 else None

    def at(self, prices: Floats, progress: Progress | None = None) -> Floats:
        """(3, P) V, N and slack at every price, the cost of a label on top, in one pass over the classes."""
        grid = prices + self.problem.label_cost
        total = np.zeros((3, len(grid)))
        for part in on_all_cores(lambda piece: self._chunk(piece, grid), self._pieces, progress):
            total += part
        return total

    def _chunk(self, classes: Sequence[TaskClass], prices: Floats) -> Floats:
        stack = self._kept if self._kept is not None else stack_classes(classes, self.cut.depth, self.problem.budget)
        counts, spread = counts_of(classes), stack.spread
        total = np.zeros((3, len(prices)))
        todo = np.ones((len(prices), len(classes)), dtype=bool)
        limit = np.full(todo.shape, np.inf)
        if not self.timeline.finite and not self.forbid:
            out, work = np.empty((len(classes), 4)), np.empty((3, stack.nodes))
            for p, lam in enumerate(prices):
                no_delay(stack, lam, self._tail, work, out)
                limit[p] = out[:, 0]
                done = spread * (out[:, 2] + out[:, 3] * self._tail[-1]) <= SETTLED
                todo[p] = ~done
                # A lattice as deep as the budget ends in rewards, not in ceilings: nothing is lost at its rim.
                rim = 0.0 if self.cut.depth >= self.problem.budget else out[done, 3]
                slack = counts[done] @ (spread[done] * (out[done, 2] + rim))
                total[:, p] = counts[done] @ out[done, 0], counts[done] @ out[done, 1], slack
        if not todo.any():
            return total
        grid = make_grid(stack.first, self.cut.cap, self.cut.flight)
        for b in np.flatnonzero(todo.any(axis=0)).tolist():
            some = todo[:, b]
            total[:2, some] += counts[b] * self._sweep(stack.one(b), grid, prices[some], limit[some, b])
        return total

    def _sweep(self, one: Lattices, grid: Grid, prices: Floats, limit: Floats) -> Floats:
        """(2, P) value and labels of one class; without a horizon the value grows with the arrivals to its limit."""
        self.swept += 1
        line = self.timeline
        block, out = new_block(grid.states, line.layers, len(prices)), np.empty((3, len(prices)))
        if not self.forbid:
            fill_edges(one, grid, prices, block)
        sweep_until(one, grid, self._steps, prices, line.arrivals, limit - SETTLED, self.forbid, block, out)
        # A sweep that stopped early is within SETTLED of its limit from below; the limit is the side to be on.
        out[0] = np.where(out[2] < line.arrivals, limit, out[0])
        return out[:2]
