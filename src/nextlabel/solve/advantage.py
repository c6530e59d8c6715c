"""Advantages V(w+1) - V(w) of one class at given prices, for the martingale estimate of the gap and for policies.

========= ========= ================= =================================================================
symbol    code      shape             meaning
========= ========= ================= =================================================================
A         rows      (n, states)       V(i,w+1,n-1) - V(i,w,n-1); with a common price the last row is the limit
--        core      (w, node)         column of a state in ``rows``, -1 where the sweep does not reach
A         static    (w, node)         E[S after w+1 labels] - E[S after w], where the sweep does not reach
V         value     --                V(root, U arrivals left)
========= ========= ================= =================================================================

Here the states on the edge go on without delay *and without limit*, so that V is a martingale along completions and
satisfies its recursion at every arrival, also past the cap. Guarantee: exact at the prices. Infinite horizon only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.beliefs.stack import LatticeStack
from nextlabel.kernels.backward import backward
from nextlabel.kernels.no_delay import no_delay, state_offsets
from nextlabel.problem.problem import Problem, TaskClass
from nextlabel.solve.core_states import core_columns, differences, over_own_lattice
from nextlabel.solve.relaxed import stack_classes
from nextlabel.solve.truncation import SETTLED, Cut, late_tail

#: Arrivals left that are swept at once before the limit is tried.
BLOCK = 64


@dataclass(frozen=True, slots=True)
class Advantage:
    """Advantages of one class over its own lattice."""

    static: Floats
    rows: Floats
    core: Ints
    value: float


def advantages(problem: Problem, entry: TaskClass, prices: Floats, cut: Cut, flight: int, depth: int) -> Advantage:
    """Advantages at ``prices`` (one for all arrivals, or U) over the lattice of ``depth`` with up to ``flight``."""
    stack = stack_classes([entry], max(cut.depth, depth), problem.budget)
    off = state_offsets(stack.first, cut.cap, cut.flight)
    lowest = float(prices.min())
    tail = late_tail(problem, stack.depth)
    S = np.empty((3, stack.nodes))
    no_delay(
        stack.first, stack.reward, stack.ceiling, stack.prob, stack.child, lowest, tail, S[0], S[1], S[2],
        np.empty((1, 4)),
    )  # fmt: skip
    free = _after_flight(S[0], stack, max(flight + 1, cut.flight))
    limit = np.concatenate([free[w, : off[w + 1] - off[w]] for w in range(cut.flight + 1)])
    if len(prices) > 1:
        V = _sweep(problem, stack, cut, prices, limit)
        value = float(V[-1, 0])
        V = V[:-1]
    else:
        V, value = _until_settled(problem, stack, cut, lowest, limit)
    static = np.diff(free[: flight + 2], axis=0)
    return Advantage(
        over_own_lattice(static, stack.first, stack.node_of, flight, depth),
        differences(V, stack.first, cut.cap, cut.flight),
        core_columns(stack.first, stack.node_of, cut.cap, cut.flight, flight, depth),
        value,
    )


def _until_settled(problem: Problem, stack: LatticeStack, cut: Cut, lam: float, limit: Floats) -> tuple[Floats, float]:
    """V for n - 1 = 0, 1, ... arrivals left until it is the limit everywhere, the limit itself last; and V at U."""
    rows = min(BLOCK, problem.budget)
    while True:
        V = _sweep(problem, stack, cut, np.full(rows, lam), limit)
        if rows == problem.budget:
            return V[:-1], float(V[-1, 0])
        if np.abs(limit - V[-1]).max() <= SETTLED:
            return np.vstack([V, limit]), float(limit[0])
        rows = min(2 * rows, problem.budget)


def _sweep(problem: Problem, stack: LatticeStack, cut: Cut, prices: Floats, limit: Floats) -> Floats:
    """V (arrivals left, states) with the edge at its limit whatever n."""
    V = np.zeros((1, len(prices) + 1, 1, len(limit)))
    edge = limit.reshape((1, 1, -1))
    backward(
        stack.first, stack.reward, stack.prob, stack.child, cut.cap, cut.flight, np.array([problem.arrival_rate]),
        np.zeros(1), problem.completion_rate, False, prices, 0.0, False, edge, edge, np.full(1, np.inf), V, V[:0],
    )  # fmt: skip
    return V[0, :, 0]


def _after_flight(values: Floats, stack: LatticeStack, flight: int) -> Floats:
    """(flight + 1, nodes) E[values after w more labels]; the last level keeps its value."""
    inner = int(stack.first[stack.depth])
    rows = [values.copy()]
    for _ in range(flight):
        row = rows[-1].copy()
        row[:inner] = np.sum(stack.prob[0, :inner] * rows[-1][stack.child[:inner]], axis=1)
        rows.append(row)
    return np.stack(rows)
