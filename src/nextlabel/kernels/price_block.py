"""Sweeps of the single-task problem at many prices side by side, infinite horizon: the prices are the innermost axis.

Notation of ``backward`` and ``no_delay``, for one class.

========= ========== =================== ==============================================================
symbol    code       shape               meaning
========= ========== =================== ==============================================================
lam       prices     (P,)                a block of prices, at most as many as the work space has columns
V, N      V, N       (2, states, P)      values and labels bought with n arrivals left; slot n % 2
S, L      S, L       (nodes, P)          the same of the no-delay problem
--        value,     (R, states, P)      what the states on the edge are worth and buy, by arrivals left: 1, 2, ..
          labels                         and the last for all larger n
========= ========== =================== ==============================================================

Every loop over prices is plain arithmetic on neighbouring numbers, which the compiler turns into vector instructions.
Two rows of V and N stay in the cache: a sweep keeps no more, and what needs row n looks at it before row n + 1 comes.
Guarantee: the numbers of ``backward`` with ``fill_edge``, up to rounding. Cost: 8 + 4 J flops and 16 (3 + J) bytes read
per state, arrival and price, about a nanosecond.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.kernels.inputs import Grid, Lattices, Steps
from nextlabel.kernels.jit import jit
from nextlabel.kernels.no_delay import EDGE_ROWS

#: Bytes that V and N of a block may take, to stay in the cache, and prices of a block.
BLOCK_BYTES, FEWEST, MOST = 1 << 20, 16, 128


class BlockRoom(NamedTuple):
    """Work space for blocks of prices."""

    V: Floats
    N: Floats
    S: Floats
    L: Floats
    value: Floats
    labels: Floats


def make_block_room(nodes: int, states: int, most: int) -> BlockRoom:
    """Space for blocks as large as the cache allows, but not above ``most`` prices."""
    prices = min(max(BLOCK_BYTES // (32 * states) // 8 * 8, FEWEST), MOST, most)
    V, N = np.zeros((2, 2, states, prices))
    S, L = np.zeros((2, nodes, prices))
    value, labels = np.zeros((2, EDGE_ROWS + 1, states, prices))
    return BlockRoom(V, N, S, L, value, labels)


@jit
def add_children(child: Ints, prob: Floats, i: int, by: float, X: Floats, before: int, P: int, out: Floats) -> None:
    """out[p] += by * sum_j p_j X[before + child_j, p]."""
    for j in range(child.shape[1]):
        c, share = before + child[i, j], by * prob[i, j]
        for p in range(P):
            out[p] += share * X[c, p]


@jit
def edge_means(lattices: Lattices, grid: Grid, P: int, X: Floats, work: Floats, out: Floats) -> None:
    """E[X after the w labels in flight] for the states on the edge: level + w = C, or w = W."""
    first, child, prob = lattices.first, lattices.child, lattices.prob[0]
    C, W, off = grid.C, grid.W, grid.off
    mean = np.empty(P)
    for i in range(first[C + 1]):
        for p in range(P):
            work[i, p] = X[i, p]
    for w in range(W + 1):
        if w > 0:
            for i in range(first[C - w + 1]):  # children come later: they are still those of one label less
                mean[:] = 0.0
                add_children(child, prob, i, 1.0, work, 0, P, mean)
                for p in range(P):
                    work[i, p] = mean[p]
        for i in range(0 if w == W else first[C - w], first[C - w + 1]):
            for p in range(P):
                out[off[w] + i, p] = work[i, p]


@jit
def fill_edges(lattices: Lattices, grid: Grid, prices: Floats, room: BlockRoom) -> None:
    """What the states on the edge are worth, and buy, when they go on without delay (``no_delay.fill_edge``)."""
    first, child = lattices.first, lattices.child
    reward, ceiling, prob = lattices.reward[0], lattices.ceiling[0], lattices.prob[0]
    S, L, value, labels = room.S, room.L, room.value, room.labels
    P, C, D = prices.shape[0], grid.C, first.shape[0] - 2
    limited = value.shape[0] - 1
    deepest = min(D, C + limited)
    go, bought = np.empty(P), np.empty(P)
    work = np.empty((first[C + 1], P))
    for i in range(first[deepest + 1]):
        # A lattice that ends before the limit does must end high, or the edge would be a plain cap.
        for p in range(P):
            S[i, p] = ceiling[i] if i >= first[D] else reward[i]
            L[i, p] = 0.0
    for n in range(limited):
        for i in range(first[deepest]):  # levels rise, so that the children are still those of n - 1
            go[:], bought[:] = 0.0, 1.0
            add_children(child, prob, i, 1.0, S, 0, P, go)
            add_children(child, prob, i, 1.0, L, 0, P, bought)
            for p in range(P):
                better = go[p] - prices[p] > S[i, p]
                S[i, p] = go[p] - prices[p] if better else S[i, p]
                L[i, p] = bought[p] if better else L[i, p]
        edge_means(lattices, grid, P, S, work, value[n])
        edge_means(lattices, grid, P, L, work, labels[n])
    for i in range(first[D], first[D + 1]):
        for p in range(P):
            S[i, p], L[i, p] = ceiling[i], 0.0
    for i in range(first[D] - 1, -1, -1):
        most = ceiling[i] - reward[i]  # where one label costs more than all of them could add, none is bought
        go[:], bought[:] = 0.0, 1.0
        if most > prices[P - 1]:
            add_children(child, prob, i, 1.0, S, 0, P, go)
            add_children(child, prob, i, 1.0, L, 0, P, bought)
        for p in range(P):
            better = (go[p] - prices[p] > reward[i]) and (most > prices[p])
            S[i, p] = go[p] - prices[p] if better else reward[i]
            L[i, p] = bought[p] if better else 0.0
    edge_means(lattices, grid, P, S, work, value[limited])
    edge_means(lattices, grid, P, L, work, labels[limited])


@jit
def next_row(lattices: Lattices, grid: Grid, steps: Steps, prices: Floats, n: int, room: BlockRoom) -> None:
    """V and N with n arrivals left, from those with n - 1."""
    first, child, reward, prob = lattices.first, lattices.child, lattices.reward[0], lattices.prob[0]
    C, W, off = grid.C, grid.W, grid.off
    V, N, V_last, N_last = room.V[n % 2], room.N[n % 2], room.V[1 - n % 2], room.N[1 - n % 2]
    slot = min(max(n, 1), room.value.shape[0]) - 1
    P, J = prices.shape[0], child.shape[1]
    rate = steps.r[0] if n > 0 else 0.0
    for w in range(W + 1):
        o, up = off[w], off[w + 1]
        down = off[w - 1] if w > 0 else 0
        whole = first[C - w + 1]
        open_ = first[C - w] if w < W else 0
        q = rate + steps.mu * w
        x, y = (rate / q, steps.mu * w / q) if q > 0.0 else (0.0, 0.0)
        for i in range(whole if n == 0 else open_):
            s, u = o + i, up + i
            if n > 0 and w > 0 and J == 2:  # the common case in one pass
                c, d = down + child[i, 0], down + child[i, 1]
                y_c, y_d = y * prob[i, 0], y * prob[i, 1]
                for p in range(P):
                    bought = V_last[u, p] - prices[p]
                    takes = bought >= V_last[s, p]
                    V[s, p] = x * (bought if takes else V_last[s, p]) + y_c * V[c, p] + y_d * V[d, p]
                    N[s, p] = x * (1.0 + N_last[u, p] if takes else N_last[s, p]) + y_c * N[c, p] + y_d * N[d, p]
                continue
            if n > 0:
                for p in range(P):
                    bought = V_last[u, p] - prices[p]
                    takes = bought >= V_last[s, p]
                    V[s, p] = x * (bought if takes else V_last[s, p])
                    N[s, p] = x * (1.0 + N_last[u, p] if takes else N_last[s, p])
            else:
                for p in range(P):
                    V[s, p] = reward[i] if w == 0 else 0.0
                    N[s, p] = 0.0
            if w > 0:
                add_children(child, prob, i, y, V, down, P, V[s])
                add_children(child, prob, i, y, N, down, P, N[s])
        if n > 0:
            for s in range(o + open_, o + whole):
                for p in range(P):
                    V[s, p] = room.value[slot, s, p]
                    N[s, p] = room.labels[slot, s, p]
