"""Sweeps at many prices side by side for a deadline that comes after the last arrival: layers of time to spare.

Notation of ``price_block``. With n arrivals and time tau left, y = tau - n / r is the time to spare: what is left, on
average, once the last arrival has come. It is a martingale, and V depends on it through the chance e^{-mu y} that a
label is not back in time. So the layers are values x_k of x = e^{-mu y}, the same for all n; x = 0 is no deadline.

========= ========== =================== ==============================================================
symbol    code       shape               meaning
========= ========== =================== ==============================================================
x_k       x          (layers,)           falling to 0: the time to spare rises
V, N      V, N       (2, states, layers * P)  prices of a layer side by side, layer after layer; slot n % 2
--        start      (layers,)           first layer of the stencil of layer k
--        arrived    (W + 1, layers, 3)  weights of M at the stencil: the first event is an arrival
--        returned   (W + 1, layers, 3)  weights of E: the first event is a label that comes in
========= ========== =================== ==============================================================

The first event comes after a time s of density q e^{-q s}, q = r + mu w, and y falls by s; if it is an arrival, y rises
by 1 / r. M and E are taken as quadratic in x between three layers, and on 1, x and x^2 the mean is known:

    E[x'^j] = x^j c_j q / (q - j mu),    c_j = e^{-j mu / r} after an arrival, 1 after a label.

With no arrival left each label in flight is lost with chance x, and V is exact. States on the edge are worth what they
are without a deadline.
Guarantee: at x = 0 the numbers of ``price_block``; elsewhere the error of interpolating a function that is smooth in x
but for kinks where an action changes. Needs r > 2 mu.
Cost: 24 + 4 J flops per state, arrival, layer and price, about two nanoseconds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.kernels.inputs import Grid, Lattices
from nextlabel.kernels.jit import jit
from nextlabel.kernels.no_delay import EDGE_ROWS
from nextlabel.kernels.price_block import BlockRoom

#: Bytes that V and N of a block may take, and prices of a block.
BLOCK_BYTES, FEWEST, MOST = 1 << 20, 32, 128


class SpareSteps(NamedTuple):
    """The layers, and how the next row follows from the stencils of the last one."""

    x: Floats
    start: Ints
    arrived: Floats
    returned: Floats


def make_spare_room(nodes: int, states: int, layers: int, most: int) -> BlockRoom:
    """Space for blocks of prices, with room for all layers in V and N."""
    prices = min(max(BLOCK_BYTES // (32 * states * layers) // 8 * 8, FEWEST), MOST, most)
    V, N = np.zeros((2, 2, states, layers * prices))
    S, L = np.zeros((2, nodes, prices))
    value, labels = np.zeros((2, EDGE_ROWS + 1, states, prices))
    return BlockRoom(V, N, S, L, value, labels)


@jit
def last_row(lattices: Lattices, grid: Grid, x: Floats, P: int, room: BlockRoom) -> None:
    """V and N with no arrival left: each label in flight is lost with chance x."""
    first, child, reward, prob = lattices.first, lattices.child, lattices.reward[0], lattices.prob[0]
    V = room.V[0]
    room.N[0][:] = 0.0
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
def next_spare_row(lattices: Lattices, grid: Grid, steps: SpareSteps, prices: Floats, n: int, room: BlockRoom) -> None:
    """V and N with n > 0 arrivals left, from those with n - 1."""
    first, child, prob = lattices.first, lattices.child, lattices.prob[0]
    C, W, off = grid.C, grid.W, grid.off
    slot = min(n, room.value.shape[0]) - 1
    P, J, layers = prices.shape[0], child.shape[1], steps.start.shape[0]
    size = layers * P
    V, N = room.V[n % 2], room.N[n % 2]
    V_last, N_last = room.V[1 - n % 2], room.N[1 - n % 2]
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
        for i in range(open_):
            s, u = o + i, up + i
            V_s, V_u, N_s, N_u = V_last[s], V_last[u], N_last[s], N_last[u]
            for p in range(size):
                bought = V_u[p] - price[p]
                takes = bought >= V_s[p]
                M[p] = bought if takes else V_s[p]
                M_n[p] = 1.0 + N_u[p] if takes else N_s[p]
            if w > 0:
                c, share = down + child[i, 0], prob[i, 0]
                V_s, N_s = V[c], N[c]
                if J == 2:  # the common case in one pass
                    d, other = down + child[i, 1], prob[i, 1]
                    V_u, N_u = V[d], N[d]
                    for p in range(size):
                        E[p] = share * V_s[p] + other * V_u[p]
                        E_n[p] = share * N_s[p] + other * N_u[p]
                else:
                    for p in range(size):
                        E[p] = share * V_s[p]
                        E_n[p] = share * N_s[p]
                    for j in range(1, J):
                        c, share = down + child[i, j], prob[i, j]
                        V_s, N_s = V[c], N[c]
                        for p in range(size):
                            E[p] += share * V_s[p]
                            E_n[p] += share * N_s[p]
            mix_layers(arrived, returned, steps.start, after, back, V[s])
            mix_layers(arrived, returned, steps.start, after_n, back_n, N[s])
        for s in range(o + open_, o + whole):
            for k in range(layers):
                for p in range(P):
                    V[s, k * P + p] = room.value[slot, s, p]
                    N[s, k * P + p] = room.labels[slot, s, p]
