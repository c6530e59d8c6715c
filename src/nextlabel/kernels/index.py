"""Index roots: for every state the greatest price at which 'assign' is still optimal.

========= ======= ====================== ============================================================
symbol    code    shape                  meaning
========= ======= ====================== ============================================================
g         g       --                     V(i,w+1,n-1; lam) - lam - V(i,w,n-1; lam)
lam*      --      (n, states, layers)    the greatest root of g: assign at lam* and below, wait above
[lo, hi]  lo, hi  (n, states, layers)    bracket: g(lo) >= -TIED_VALUES > g(hi), hi the next price tried above lo
========= ======= ====================== ============================================================

One sweep at one price tells g and its slope for every state at once, so the brackets of all states shrink together.
Ties count as 'assign': with many arrivals left, taking the label now or after the one in flight often ties exactly.
Guarantee: lo <= lam* <= hi whenever g has one sign change; the roots are exact where g is linear on the bracket. A
root above lo is missed if 'assign' is optimal only between two prices that were tried; ``rule_out`` proves that there
is none.
Cost: one backward sweep (values and labels) per price; without a horizon, and with slack time, the prices of a block
are swept side by side.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nextlabel.arrays import Bools, Floats, Ints
from nextlabel.kernels.horizon import backward_horizon
from nextlabel.kernels.inputs import TIED, TIED_VALUES, Edge, Grid, Lattices, Steps, StepWeights
from nextlabel.kernels.jit import jit, uncounted
from nextlabel.kernels.no_delay import EDGE_ROWS, fill_edge
from nextlabel.kernels.sweep import Block, Stencils, fill_edges, new_block, next_row, no_deadline, sweep_rows


class Brackets(NamedTuple):
    """Where the roots are: ends[0..3] = g(lo), g'(lo), g(hi), g'(hi)."""

    lo: Floats
    hi: Floats
    ends: Floats


@jit
def sweep(
    lattices: Lattices, grid: Grid, steps: Steps, quadrature: StepWeights, lam: float, V: Floats, N: Floats
) -> None:
    """V and N (rows, states, layers) of one class at one price for all arrivals; row n has n arrivals left."""
    rows, states, layers = V.shape
    no = layers < 1  # a literal False would have the sweeps compiled once more
    if layers > 1:
        edge = Edge(np.zeros((1, EDGE_ROWS + 1, states)), np.zeros((1, EDGE_ROWS + 1, states)))
        fill_edge(lattices, grid, lam, edge)
        backward_horizon(lattices, grid, steps, quadrature, np.full(rows - 1, lam), no, edge, V, N)
    else:
        block, prices, always = (
            new_block(states, 1, 1),
            np.full((max(rows - 1, 1), 1), lam),
            no_deadline(steps.r[0], steps.mu, grid.W),
        )
        fill_edges(lattices, grid, prices[0], block)
        sweep_rows(lattices, grid, always, prices, np.arange(rows), no, block, V, N)


@jit
def offered(first: Ints, grid: Grid) -> Ints:
    """(states, 2) every state that can be offered a label, and the state with one label more in flight."""
    C, W, off = grid.C, grid.W, grid.off
    total = 0
    for w in range(W):
        total += first[C - w]
    pairs = np.empty((total, 2), dtype=np.int64)
    at = 0
    for w in range(W):
        for i in range(first[C - w]):
            pairs[at, 0], pairs[at, 1] = off[w] + i, off[w + 1] + i
            at += 1
    return pairs


@uncounted
def judge(lam: float, g: float, slope: float, m: int, s: int, k: int, out: Brackets) -> None:
    """Narrow the bracket of one state by the gain g of 'assign' at the price lam."""
    if g >= -TIED_VALUES:
        out.lo[m, s, k] = lam
        out.ends[0, m, s, k], out.ends[1, m, s, k] = g, slope
    else:
        out.hi[m, s, k] = lam
        out.ends[2, m, s, k], out.ends[3, m, s, k] = g, slope


@jit
def narrow_over_time(
    lattices: Lattices, grid: Grid, steps: Steps, quadrature: StepWeights, prices: Floats, at: Ints, V: Floats,
    N: Floats, out: Brackets,
) -> None:  # fmt: skip
    """Sweep at each of the falling ``prices`` and narrow the brackets.

    Falling, so that the first price at which 'assign' is optimal is the greatest one tried.

    V and N (rows, states, layers) are work. Row m of lo and hi (knots, states, layers) is about ``at[m]`` arrivals
    left, which row at[m] - 1 of V decides.
    """
    pairs = offered(lattices.first, grid)
    for lam in prices:
        sweep(lattices, grid, steps, quadrature, lam, V, N)
        for m in range(at.shape[0]):
            n = at[m] - 1
            for s, u in pairs:
                for k in range(V.shape[2]):
                    if out.lo[m, s, k] < lam < out.hi[m, s, k]:
                        judge(lam, V[n, u, k] - lam - V[n, s, k], N[n, s, k] - 1.0 - N[n, u, k], m, s, k, out)


@jit
def count_from(falling: Floats, bound: float) -> int:
    """How many of the falling numbers are not below ``bound``."""
    low, high = 0, falling.shape[0]
    while low < high:
        middle = (low + high) // 2
        if falling[middle] >= bound:
            low = middle + 1
        else:
            high = middle
    return low


@jit
def narrow(
    lattices: Lattices, grid: Grid, steps: Stencils, prices: Floats, at: Ints, block: Block, out: Brackets
) -> None:
    """The same without a horizon, or with layers of slack time, a block of prices side by side (``kernels.sweep``).

    With slack time y row m is for a time left of y + (at[m] - 1) / r.
    """
    pairs = offered(lattices.first, grid)
    P, layers = block.value.shape[2], steps.x.shape[0]
    no = layers < 1
    for start in range(0, prices.shape[0], P):
        some = prices[start : start + P]
        size = some.shape[0]
        fill_edges(lattices, grid, some, block)
        m = 0
        for n in range(at[-1]):
            next_row(lattices, grid, steps, some, n, no, block)
            if at[m] != n + 1:
                continue
            V, N = block.V[n % 2], block.N[n % 2]
            for s, u in pairs:
                for k in range(layers):
                    p = count_from(some, out.hi[m, s, k])
                    while p < size and some[p] > out.lo[m, s, k]:
                        c = k * size + p
                        judge(some[p], V[u, c] - some[p] - V[s, c], N[s, c] - 1.0 - N[u, c], m, s, k, out)
                        p += 1
            m += 1


class Openings(NamedTuple):
    """Where 'assign' may be optimal above the roots: intervals that are not ruled out, prices at which it is."""

    open_: Bools  # (P,) interval from prices[p] up to prices[p - 1]
    higher: Floats  # (n, states) greatest price tried at which it is optimal, 0 if none is above the root


@jit
def rule_out(
    lattices: Lattices, grid: Grid, steps: Stencils, prices: Floats, linked: Bools, at: Ints, root: Floats,
    tolerance: float, block: Block, out: Openings,
) -> None:  # fmt: skip
    """Rule out that 'assign' is optimal between two of the falling ``prices``, more than ``tolerance`` above the root.

    V is convex in the price. So between prices a < b V(w+1) is at most its chord and V(w) at least its two tangents,
    and g is at most their difference, which is concave with one kink: its maximum is at the kink or at an end. An
    interval is left open if that maximum is a tie or more for some state. Only intervals with ``linked[p]`` are judged.
    Without a horizon; a block of prices begins with the last one of the block before.
    """
    pairs = offered(lattices.first, grid)
    P = block.value.shape[2]
    no = P < 1
    for start in range(0, prices.shape[0] - 1, P - 1):
        some = prices[start : start + P]
        fill_edges(lattices, grid, some, block)
        m = 0
        for n in range(at[-1]):
            next_row(lattices, grid, steps, some, n, no, block)
            if at[m] != n + 1:
                continue
            V, N = block.V[n % 2], block.N[n % 2]
            for s, u in pairs:
                for p in range(1, some.shape[0]):
                    a, b = some[p], some[p - 1]
                    low = max(a, root[m, s] + tolerance)
                    if low >= b or not linked[start + p]:
                        continue
                    if low == a and V[u, p] - a - V[s, p] > TIED:
                        out.higher[m, s] = max(out.higher[m, s], a)
                    rise = (V[u, p - 1] - V[u, p]) / (b - a)
                    bend = N[s, p] - N[s, p - 1]
                    kink = low
                    if bend > 0.0:
                        kink = (V[s, p] - V[s, p - 1] + N[s, p] * a - N[s, p - 1] * b) / bend
                    for point in (low, min(max(kink, low), b), b):
                        below = max(V[s, p] - N[s, p] * (point - a), V[s, p - 1] + N[s, p - 1] * (b - point))
                        if V[u, p] + rise * (point - a) - point - below > TIED:
                            out.open_[start + p] = True
            m += 1


@jit
def count_reopenings(
    lattices: Lattices, grid: Grid, steps: Steps, quadrature: StepWeights, prices: Floats, V: Floats, N: Floats,
    closed: Bools, where: Ints,
) -> int:  # fmt: skip
    """How often a state that waits at a lower price assigns at a higher one; prices rise; 0 if indexable on the grid.

    ``closed`` (rows, states, layers) starts False; where[0..3] gets (n - 1, state, layer, price number) of the first.
    """
    first, C, W, off = lattices.first, grid.C, grid.W, grid.off
    rows, _, layers = closed.shape
    found = 0
    for p in range(prices.shape[0]):
        lam = prices[p]
        sweep(lattices, grid, steps, quadrature, lam, V, N)
        for n in range(rows):
            for w in range(W):
                # Only states whose look-ahead of n + 1 labels stays off the edge: there V is the model's own.
                for i in range(first[max(C - w - n, 0)] if w + n < W else 0):
                    s = off[w] + i
                    for k in range(layers):
                        g = V[n, off[w + 1] + i, k] - lam - V[n, s, k]
                        if g < -TIED:
                            closed[n, s, k] = True
                        elif g > TIED and closed[n, s, k]:
                            if found == 0:
                                where[0], where[1], where[2], where[3] = n, s, k, p
                            found += 1
    return found
