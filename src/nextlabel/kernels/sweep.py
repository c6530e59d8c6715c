"""Sweeps of one task at many prices side by side, arrival by arrival: without a deadline, or with slack time.

Notation of ``no_delay``, for one class. A state is (i, w): belief node i, w labels in flight, number off[w] + i.

========= ========== ======================= ==============================================================
symbol    code       shape                   meaning
========= ========== ======================= ==============================================================
n         n          --                      arrivals left
lam       prices     (P,)                    a block of prices
x_k       x          (layers,)               chance that a label in flight after the last arrival is lost
V, N      V, N       (2, states, layers * P) values and labels bought; prices of a layer side by side; slot n % 2
--        value,     (R, states, P)          what the states on the edge are worth and buy, by arrivals left: 1, 2, ..
          labels                             and the last for all larger n
--        start      (layers,)               first layer of the stencil of layer k
--        arrived    (W + 1, layers, points) weights of M at the stencil: the first event is an arrival
--        returned   (W + 1, layers, points) weights of E: the first event is a label that comes in
========= ========== ======================= ==============================================================

With q = r + mu w, M = max{V(i,w,n-1), V(i,w+1,n-1) - lam} and E = sum_j p_j V(child_j, w-1, n):

    V(i,w,n) = (r M + mu w E) / q,    V(i,w,0) = x V(i,w-1,0) + (1 - x) sum_j p_j V(child_j, w-1, 0),    V(i,0,0) = R.

Everything is triangular: n or w falls. Without a deadline there is one layer, x = 0. With a deadline after the last
arrival y = tau - n / r is the slack time: what is left, on average, once the last arrival has come. It is a
martingale, and V depends on it through x = e^{-mu y}. So the layers are values of x, the same for all n. The first
event comes after a time s of density q e^{-q s}, and y falls by s; if it is an arrival, y rises by 1 / r. M and E are
taken as quadratic in x between three layers, and on 1, x and x^2 the mean is known:

    E[x'^j] = x^j c_j q / (q - j mu),    c_j = e^{-j mu / r} after an arrival, 1 after a label.

States on the edge (level + w = C, or w = W) are offered no label (``closed``: V is then a lower bound), or go on
without delay and without a deadline, which makes V an upper bound (``fill_edges``).
Every loop over prices is plain arithmetic on neighbouring numbers, which the compiler turns into vector instructions.
Two rows stay in the cache: a sweep keeps no more, and what needs row n looks at it before row n + 1 comes.
Guarantee: exact at x = 0 up to the edge; elsewhere the error of interpolating a function that is smooth in x but for
kinks where an action changes; needs r > 2 mu. Cost: 8 + 4 J flops per state, arrival and price without a deadline,
about a nanosecond; with layers about two each.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.kernels.inputs import Edge, Grid, Lattices
from nextlabel.kernels.jit import jit
from nextlabel.kernels.no_delay import EDGE_ROWS, fill_edge

#: Bytes that V and N of a block may take, to stay in the cache, and prices of a block.
BLOCK_BYTES, FEWEST, MOST = 1 << 20, 32, 128


class Stencils(NamedTuple):
    """The layers, and how the next row follows from the stencils of the last one."""

    x: Floats
    start: Ints
    arrived: Floats
    returned: Floats


class Block(NamedTuple):
    """Work space for a block of prices."""

    V: Floats
    N: Floats
    value: Floats
    labels: Floats


@jit
def no_deadline(r: float, mu: float, W: int) -> Stencils:
    """One layer: every label comes in."""
    arrived, returned = np.zeros((W + 1, 1, 1)), np.zeros((W + 1, 1, 1))
    for w in range(W + 1):
        q = r + mu * w
        arrived[w, 0, 0], returned[w, 0, 0] = r / q, mu * w / q
    return Stencils(np.zeros(1), np.zeros(1, dtype=np.int64), arrived, returned)


def prices_at_once(states: int, layers: int, most: int) -> int:
    """Prices of a block that stays in the cache, not above ``most``."""
    return min(max(BLOCK_BYTES // (32 * states * layers) // 8 * 8, FEWEST), MOST, most)


@jit
def new_block(states: int, layers: int, prices: int) -> Block:
    """Space for so many prices."""
    V, N = np.zeros((2, states, layers * prices)), np.zeros((2, states, layers * prices))
    return Block(V, N, np.zeros((EDGE_ROWS + 1, states, prices)), np.zeros((EDGE_ROWS + 1, states, prices)))


@jit
def fill_edges(lattices: Lattices, grid: Grid, prices: Floats, block: Block) -> None:
    """What the states on the edge are worth, and buy, when they go on without delay at each price."""
    shape = (1, block.value.shape[0], block.value.shape[1])
    edge = Edge(np.zeros(shape), np.zeros(shape))
    for p in range(prices.shape[0]):
        fill_edge(lattices, grid, prices[p], edge)
        block.value[:, :, p] = edge.value[0]
        block.labels[:, :, p] = edge.labels[0]


@jit
def last_row(lattices: Lattices, grid: Grid, x: Floats, P: int, block: Block) -> None:
    """V and N with no arrival left: each label in flight is lost with chance x."""
    first, child, reward, prob = lattices.first, lattices.child, lattices.reward[0], lattices.prob[0]
    V = block.V[0]
    block.N[0][:] = 0.0
    for w in range(grid.W + 1):
        o, down = grid.off[w], grid.off[w - 1] if w > 0 else 0
        for i in range(first[grid.C - w + 1]):
            for k in range(x.shape[0]):
                v = reward[i]
                if w > 0:
                    v = x[k] * V[down + i, k * P]
                    for j in range(child.shape[1]):
                        v += (1.0 - x[k]) * prob[i, j] * V[down + child[i, j], k * P]
                V[o + i, k * P : (k + 1) * P] = v


@jit
def add_children(child: Ints, prob: Floats, i: int, by: float, X: Floats, down: int, P: int, out: Floats) -> None:
    """out[p] += by * sum_j p_j X[down + child_j, p]."""
    for j in range(child.shape[1]):
        c, share = down + child[i, j], by * prob[i, j]
        for p in range(P):
            out[p] += share * X[c, p]


@jit
def mix_layers(arrived: Floats, returned: Floats, start: Ints, M: Floats, E: Floats, out: Floats) -> None:
    """out[k] = the weighted sums of M and E, (layers, P) each, over the stencil of layer k."""
    P = M.shape[1]
    for k in range(start.shape[0]):
        j = start[k]
        a, b, c = arrived[k, 0], arrived[k, 1], arrived[k, 2]
        d, e, f = returned[k, 0], returned[k, 1], returned[k, 2]
        A, B, C, D, E_, F, here = M[j], M[j + 1], M[j + 2], E[j], E[j + 1], E[j + 2], out[k * P : (k + 1) * P]
        for p in range(P):
            here[p] = a * A[p] + b * B[p] + c * C[p] + d * D[p] + e * E_[p] + f * F[p]


@jit
def next_row(
    lattices: Lattices, grid: Grid, steps: Stencils, prices: Floats, n: int, closed: bool, block: Block
) -> None:
    """V and N with n arrivals left, from those with n - 1 if there are any."""
    first, child, prob = lattices.first, lattices.child, lattices.prob[0]
    C, W, off = grid.C, grid.W, grid.off
    P, J, layers = prices.shape[0], child.shape[1], steps.start.shape[0]
    if n == 0:
        last_row(lattices, grid, steps.x, P, block)
        return
    slot = min(n, block.value.shape[0]) - 1
    size = layers * P
    V, N = block.V[n % 2], block.N[n % 2]
    V_last, N_last = block.V[1 - n % 2], block.N[1 - n % 2]
    price = np.empty(size)
    for k in range(layers):
        price[k * P : (k + 1) * P] = prices
    M, M_n, E, E_n = np.zeros(size), np.zeros(size), np.zeros(size), np.zeros(size)
    after, after_n = M.reshape((layers, P)), M_n.reshape((layers, P))
    back, back_n = E.reshape((layers, P)), E_n.reshape((layers, P))
    for w in range(W + 1):
        o, up, down = off[w], off[w + 1], off[w - 1] if w > 0 else 0
        whole = first[C - w + 1]
        open_ = first[C - w] if w < W else 0
        arrived, returned = steps.arrived[w], steps.returned[w]
        for i in range(whole if closed else open_):
            offered = i < open_
            s, u = o + i, up + i if offered else o + i
            V_s, V_u, N_s, N_u, to_V, to_N = V_last[s], V_last[u], N_last[s], N_last[u], V[s], N[s]
            x, y = arrived[0, 0], returned[0, 0]
            if layers > 1:
                to_V, to_N, x = M, M_n, 1.0
            if layers == 1 and offered and w > 0 and J == 2:  # the common case in one pass
                y_c, y_d = y * prob[i, 0], y * prob[i, 1]
                c, d = down + child[i, 0], down + child[i, 1]
                V_c, V_d, N_c, N_d = V[c], V[d], N[c], N[d]
                for p in range(P):
                    bought = V_u[p] - price[p]
                    takes = bought >= V_s[p]
                    to_V[p] = x * (bought if takes else V_s[p]) + y_c * V_c[p] + y_d * V_d[p]
                    to_N[p] = x * (1.0 + N_u[p] if takes else N_s[p]) + y_c * N_c[p] + y_d * N_d[p]
                continue
            for p in range(size):
                bought = V_u[p] - price[p]
                takes = offered and bought >= V_s[p]
                to_V[p] = x * (bought if takes else V_s[p])
                to_N[p] = x * (1.0 + N_u[p] if takes else N_s[p])
            if layers > 1:
                E[:], E_n[:] = 0.0, 0.0
                to_V, to_N, y = E, E_n, 1.0
            if w > 0:
                add_children(child, prob, i, y, V, down, size, to_V)
                add_children(child, prob, i, y, N, down, size, to_N)
            if layers > 1:
                mix_layers(arrived, returned, steps.start, after, back, V[s])
                mix_layers(arrived, returned, steps.start, after_n, back_n, N[s])
        for s in range(o + (whole if closed else open_), o + whole):
            for k in range(layers):
                for p in range(P):
                    V[s, k * P + p] = block.value[slot, s, p]
                    N[s, k * P + p] = block.labels[slot, s, p]


@jit
def sweep_rows(
    lattices: Lattices, grid: Grid, steps: Stencils, prices: Floats, kept: Ints, closed: bool, block: Block,
    V: Floats, N: Floats,
) -> None:  # fmt: skip
    """Rows ``kept``, rising, into V and N (rows, states, layers * P); prices[n - 1] are those with n arrivals left."""
    k = 0
    for n in range(kept[-1] + 1):
        next_row(lattices, grid, steps, prices[max(n - 1, 0)], n, closed, block)
        if kept[k] == n:
            V[k], N[k] = block.V[n % 2], block.N[n % 2]
            k += 1


@jit
def sweep_until(
    lattices: Lattices, grid: Grid, steps: Stencils, prices: Floats, U: int, enough: Floats, closed: bool,
    block: Block, out: Floats,
) -> None:  # fmt: skip
    """out (3, P): V, N and n of a fresh task with U arrivals left, or with the first n at which V is ``enough``.

    V grows with n towards a known limit.
    """
    out[2] = -1.0
    for n in range(U + 1):
        next_row(lattices, grid, steps, prices, n, closed, block)
        settled = True
        for p in range(prices.shape[0]):
            if out[2, p] < 0.0:
                if n == U or block.V[n % 2, 0, p] >= enough[p]:
                    out[0, p], out[1, p], out[2, p] = block.V[n % 2, 0, p], block.N[n % 2, 0, p], n
                else:
                    settled = False
        if settled:
            break
