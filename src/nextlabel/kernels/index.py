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
Cost: one backward sweep (values and labels) per price; without a horizon, and with time to spare, the prices of a block
are swept side by side.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nextlabel.arrays import Bools, Floats, Ints
from nextlabel.kernels.backward import backward
from nextlabel.kernels.horizon import backward_horizon
from nextlabel.kernels.inputs import Edge, Grid, Lattices, Steps, StepWeights
from nextlabel.kernels.jit import jit
from nextlabel.kernels.no_delay import EDGE_ROWS, fill_edge
from nextlabel.kernels.price_block import BlockRoom, fill_edges, next_row
from nextlabel.kernels.spare_block import SpareSteps, last_row, next_spare_row
from nextlabel.kernels.ties import TIED, TIED_VALUES


class Brackets(NamedTuple):
    """Where the roots are: ends[0..3] = g(lo), g'(lo), g(hi), g'(hi)."""

    lo: Floats
    hi: Floats
    ends: Floats


@jit
def sweep(
    lattices: Lattices, grid: Grid, steps: Steps, quadrature: StepWeights, tail: Floats, lam: float, V: Floats,
    N: Floats,
) -> None:  # fmt: skip
    """V and N (rows, states, layers) of one class at one price for all arrivals; row n has n arrivals left."""
    rows, states, layers = V.shape
    edge = Edge(np.zeros((1, EDGE_ROWS + 1, states)), np.zeros((1, EDGE_ROWS + 1, states)))
    lams = np.full(rows - 1, lam)
    fill_edge(lattices, grid, lam, tail, edge)
    no = layers < 1  # a literal False would have the sweeps compiled once more
    if layers > 1:
        backward_horizon(lattices, grid, steps, quadrature, lams, no, edge, V, N)
    else:
        flat = (1, rows, 1, states)
        backward(lattices, grid, steps, lams, 0.0, no, edge, np.full(1, np.inf), V.reshape(flat), N.reshape(flat))


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


@jit
def narrow_over_time(
    lattices: Lattices, grid: Grid, steps: Steps, quadrature: StepWeights, tail: Floats, prices: Floats, at: Ints,
    V: Floats, N: Floats, out: Brackets,
) -> None:  # fmt: skip
    """Sweep at each of the falling ``prices`` and narrow the brackets.

    Falling, so that the first price at which 'assign' is optimal is the greatest one tried.

    V and N (rows, states, layers) are work. Row m of lo and hi (knots, states, layers) is about ``at[m]`` arrivals
    left, which row at[m] - 1 of V decides.
    """
    lo, hi, ends = out
    knots, _, layers = lo.shape
    pairs = offered(lattices.first, grid)
    for p in range(prices.shape[0]):
        lam = prices[p]
        sweep(lattices, grid, steps, quadrature, tail, lam, V, N)
        for m in range(knots):
            n = at[m] - 1
            for s, u in pairs:
                for k in range(layers):
                    if lam <= lo[m, s, k] or lam >= hi[m, s, k]:
                        continue
                    g = V[n, u, k] - lam - V[n, s, k]
                    slope = N[n, s, k] - 1.0 - N[n, u, k]
                    if g >= -TIED_VALUES:
                        lo[m, s, k] = lam
                        ends[0, m, s, k] = g
                        ends[1, m, s, k] = slope
                    else:
                        hi[m, s, k] = lam
                        ends[2, m, s, k] = g
                        ends[3, m, s, k] = slope


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
    lattices: Lattices, grid: Grid, steps: Steps, prices: Floats, at: Ints, room: BlockRoom, out: Brackets
) -> None:
    """The same without a horizon, block by block of prices (``price_block``)."""
    lo, hi, ends = out
    pairs = offered(lattices.first, grid)
    P = room.V.shape[2]
    for start in range(0, prices.shape[0], P):
        block = prices[start : start + P]
        fill_edges(lattices, grid, block, room)
        m = 0
        for n in range(at[-1]):
            next_row(lattices, grid, steps, block, n, room)
            if at[m] != n + 1:
                continue
            V, N = room.V[n % 2], room.N[n % 2]
            for s, u in pairs:
                p = count_from(block, hi[m, s, 0])
                while p < block.shape[0] and block[p] > lo[m, s, 0]:
                    g = V[u, p] - block[p] - V[s, p]
                    slope = N[s, p] - 1.0 - N[u, p]
                    if g >= -TIED_VALUES:
                        lo[m, s, 0] = block[p]
                        ends[0, m, s, 0] = g
                        ends[1, m, s, 0] = slope
                    else:
                        hi[m, s, 0] = block[p]
                        ends[2, m, s, 0] = g
                        ends[3, m, s, 0] = slope
                    p += 1
            m += 1


class Openings(NamedTuple):
    """Where 'assign' may be optimal above the roots: intervals that are not ruled out, prices at which it is."""

    open_: Bools  # (P,) interval from prices[p] up to prices[p - 1]
    higher: Floats  # (n, states, layers) greatest price tried at which it is optimal, 0 if none is above the root


@jit
def rule_out(
    lattices: Lattices, grid: Grid, steps: Steps, quadrature: StepWeights, tail: Floats, prices: Floats, linked: Bools,
    at: Ints, root: Floats, tolerance: float, room: Floats, out: Openings,
) -> None:  # fmt: skip
    """Rule out that 'assign' is optimal between two of the falling ``prices``, more than ``tolerance`` above the root.

    V is convex in the price. So between prices a < b V(w+1) is at most its chord and V(w) at least its two tangents,
    and g is at most their difference, which is concave with one kink: its maximum is at the kink or at an end. An
    interval is left open if that maximum is a tie or more for some state. Only intervals with ``linked[p]`` are judged.
    ``room`` (4, rows, states, layers) is work: V and N at the last price and at this one.
    """
    knots, _, layers = root.shape
    pairs = offered(lattices.first, grid)
    for p in range(prices.shape[0]):
        now, last = p % 2, 1 - p % 2
        V, N, Vb, Nb = room[now], room[2 + now], room[last], room[2 + last]
        a = prices[p]
        sweep(lattices, grid, steps, quadrature, tail, a, V, N)
        if p == 0 or not linked[p]:
            continue
        b = prices[p - 1]
        for m in range(knots):
            n = at[m] - 1
            for s, u in pairs:
                for k in range(layers):
                    low = max(a, root[m, s, k] + tolerance)
                    if low >= b:
                        continue
                    if low == a and V[n, u, k] - a - V[n, s, k] > TIED:
                        out.higher[m, s, k] = max(out.higher[m, s, k], a)
                    rise = (Vb[n, u, k] - V[n, u, k]) / (b - a)
                    bend = N[n, s, k] - Nb[n, s, k]
                    kink = low
                    if bend > 0.0:
                        kink = (V[n, s, k] - Vb[n, s, k] + N[n, s, k] * a - Nb[n, s, k] * b) / bend
                    for point in (low, min(max(kink, low), b), b):
                        below = max(V[n, s, k] - N[n, s, k] * (point - a), Vb[n, s, k] + Nb[n, s, k] * (b - point))
                        if V[n, u, k] + rise * (point - a) - point - below > TIED:
                            out.open_[p] = True


@jit
def count_reopenings(
    lattices: Lattices, grid: Grid, steps: Steps, quadrature: StepWeights, tail: Floats, prices: Floats,
    V: Floats, N: Floats, closed: Bools, where: Ints,
) -> int:  # fmt: skip
    """How often a state that waits at a lower price assigns at a higher one; prices rise; 0 if indexable on the grid.

    ``closed`` (rows, states, layers) starts False; where[0..3] gets (n - 1, state, layer, price number) of the first.
    """
    first, C, W, off = lattices.first, grid.C, grid.W, grid.off
    rows, _, layers = closed.shape
    found = 0
    for p in range(prices.shape[0]):
        lam = prices[p]
        sweep(lattices, grid, steps, quadrature, tail, lam, V, N)
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


@jit
def gittins(
    first: Ints, reward: Floats, prob: Floats, child: Ints, levels: int, S: Floats, labels: Floats, out: Floats
) -> None:
    """out[i] = max over stopping times tau >= 1 of E[R_tau - R_i] / E[tau] on the lattice: the index without delay.

    Dinkelbach's iteration: at price lam the best plan that buys at least one label gives the next lam; it climbs to the
    maximum in a few steps. The last level stops. Nodes of level < ``levels`` are done.
    """
    J = prob.shape[1]
    D = first.shape[0] - 2
    for m in range(min(levels, D)):
        for root in range(first[m], first[m + 1]):
            lam = 0.0
            for _ in range(100):
                for i in range(first[D + 1] - 1, first[m + 1] - 1, -1):
                    S[i] = reward[i]
                    labels[i] = 0.0
                    if i < first[D]:
                        go, bought = -lam, 1.0
                        for j in range(J):
                            go += prob[i, j] * S[child[i, j]]
                            bought += prob[i, j] * labels[child[i, j]]
                        if go > S[i]:
                            S[i] = go
                            labels[i] = bought
                gain, bought = -lam - reward[root], 1.0
                for j in range(J):
                    gain += prob[root, j] * S[child[root, j]]
                    bought += prob[root, j] * labels[child[root, j]]
                if gain <= 1e-15:
                    break
                lam += gain / bought
            out[root] = lam


@jit
def narrow_spare(
    lattices: Lattices, grid: Grid, steps: SpareSteps, prices: Floats, at: Ints, room: BlockRoom, out: Brackets
) -> None:
    """The same with layers of time to spare y (``spare_block``): row m is for a time left of y + (at[m] - 1) / r."""
    lo, hi, ends = out
    pairs = offered(lattices.first, grid)
    P, layers = room.S.shape[1], steps.x.shape[0]
    for start in range(0, prices.shape[0], P):
        block = prices[start : start + P]
        size = block.shape[0]
        fill_edges(lattices, grid, block, room)
        m = 0
        for n in range(at[-1]):
            if n == 0:
                last_row(lattices, grid, steps.x, size, room)
            else:
                next_spare_row(lattices, grid, steps, block, n, room)
            if at[m] != n + 1:
                continue
            V, N = room.V[n % 2], room.N[n % 2]
            for s, u in pairs:
                for k in range(layers):
                    p = count_from(block, hi[m, s, k])
                    while p < size and block[p] > lo[m, s, k]:
                        c = k * size + p
                        g = V[u, c] - block[p] - V[s, c]
                        slope = N[s, c] - 1.0 - N[u, c]
                        if g >= -TIED_VALUES:
                            lo[m, s, k] = block[p]
                            ends[0, m, s, k] = g
                            ends[1, m, s, k] = slope
                        else:
                            hi[m, s, k] = block[p]
                            ends[2, m, s, k] = g
                            ends[3, m, s, k] = slope
                        p += 1
            m += 1
