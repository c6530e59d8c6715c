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
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.beliefs.simplex import simplex
from nextlabel.kernels.inputs import Lattices, make_grid
from nextlabel.kernels.sweep import new_block, no_deadline, sweep_rows
from nextlabel.problem.problem import Problem
from nextlabel.problem.tasks import TaskClass
from nextlabel.solve.relaxed import after_labels, no_delay_values, stack_classes
from nextlabel.solve.truncation import SETTLED, Cut, over_own_lattice, state_columns

#: Arrivals left that are swept at once before the limit is tried.
BLOCK = 64


@dataclass(frozen=True, slots=True)
class Advantage:
    """Tables of one class over its own lattice; ``past_*`` (2, w, node): one arrival left, and more."""

    best: Floats
    gain: Floats
    core: Ints
    past_best: Floats
    past_gain: Floats
    value: float

    def times(self, factor: float) -> Advantage:
        """The tables in another unit."""
        return Advantage(
            factor * self.best, factor * self.gain, self.core, factor * self.past_best, factor * self.past_gain,
            factor * self.value,
        )  # fmt: skip


def advantages(problem: Problem, entry: TaskClass, prices: Floats, cut: Cut, flight: int, depth: int) -> Advantage:
    """Tables at ``prices`` (one for all arrivals, or U) over the lattice of ``depth`` with up to ``flight``."""
    own = simplex(entry.answers, depth)[0]
    stack = stack_classes([entry], max(cut.depth, depth), problem.budget)
    off = make_grid(stack.first, cut.cap, cut.flight).off
    cost = problem.label_cost
    lowest = float(prices.min()) + cost
    most = max(flight, cut.flight) + 1
    free = after_labels(stack, no_delay_values(stack, lowest), most)
    ended = after_labels(stack, stack.reward[0], most)
    limit = np.concatenate([free[w, : off[w + 1] - off[w]] for w in range(cut.flight + 1)])
    if len(prices) > 1:
        V = _sweep(problem, stack, cut, prices + cost, limit)
        value = float(V[-1, 0])
    else:
        V, value = _until_settled(problem, stack, cut, lowest, limit)
    best, gain = _rows(problem, stack, cut, off, V, free, ended)
    past_best = np.stack([free - ended, np.zeros_like(free)])[:, : flight + 1]
    gain -= cost
    past_gain = np.stack([np.diff(ended, axis=0), np.diff(free, axis=0)])[:, : flight + 1] - cost
    return Advantage(
        best,
        gain,
        state_columns(make_grid(stack.first, cut.cap, cut.flight), stack.node_of, flight, own, edge=True),
        np.stack([over_own_lattice(t, stack.first, stack.node_of, flight, own) for t in past_best]),
        np.stack([over_own_lattice(t, stack.first, stack.node_of, flight, own) for t in past_gain]),
        value,
    )


def _rows(
    problem: Problem, stack: Lattices, cut: Cut, off: Ints, V: Floats, free: Floats, ended: Floats
) -> tuple[Floats, Floats]:
    """best and gain for n = 1, 2, ... arrivals left from V with n = 0, 1, ...; the edge leads past the sweep."""
    gain = np.zeros((len(V) - 1, V.shape[1]))
    best = np.zeros_like(gain)
    for w in range(cut.flight + 1):
        here = slice(int(off[w]), int(off[w + 1]))
        nodes = int(off[w + 1] - off[w])
        inner = int(stack.first[cut.cap - w]) if w < cut.flight else 0
        gain[:, here] = free[w + 1, :nodes] - V[:-1, here]
        gain[0, here] = ended[w + 1, :nodes] - V[0, here]
        if w < cut.flight:
            up = int(off[w + 1])
            gain[:, int(off[w]) : int(off[w]) + inner] = (
                V[:-1, up : up + inner] - V[:-1, int(off[w]) : int(off[w]) + inner]
            )
        best[:, here] = V[1:, here] - V[:-1, here]
        if w > 0:
            below = V[1:, int(off[w - 1]) : int(off[w])]
            after = np.zeros((len(V) - 1, nodes))
            for j in range(stack.prob.shape[2]):
                after += stack.prob[0, :nodes, j] * below[:, stack.child[:nodes, j]]
            best[:, here] += w / problem.rho * (V[1:, here] - after)
    return np.maximum(best, 0.0), gain


def _until_settled(problem: Problem, stack: Lattices, cut: Cut, lam: float, limit: Floats) -> tuple[Floats, float]:
    """V for n = 0, 1, ... arrivals left until it is the limit everywhere, the limit itself last; and V at U."""
    rows = min(BLOCK, problem.budget)
    while True:
        V = _sweep(problem, stack, cut, np.full(rows, lam), limit)
        if rows == problem.budget:
            return V, float(V[-1, 0])
        if np.abs(limit - V[-1]).max() <= SETTLED:
            return np.vstack([V, limit, limit]), float(limit[0])
        rows = min(2 * rows, problem.budget)


def _sweep(problem: Problem, stack: Lattices, cut: Cut, prices: Floats, limit: Floats) -> Floats:
    """V (arrivals left, states) with the edge at its limit whatever n."""
    grid, rows = make_grid(stack.first, cut.cap, cut.flight), np.arange(len(prices) + 1)
    block = new_block(grid.states, 1, 1)
    block.value[:] = limit[:, None]
    V, N = np.empty((2, len(rows), grid.states, 1))
    steps = no_deadline(problem.peak_rate, problem.completion_rate, grid.W)
    sweep_rows(stack, grid, steps, np.ascontiguousarray(prices[::-1, None]), rows, False, block, V, N)
    return V[:, :, 0]
