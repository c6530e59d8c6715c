"""Sweeps of one task at many prices side by side, arrival by arrival, whatever the deadline.

Notation of ``no_delay``, for one class. A state is (i, w): belief node i, w labels in flight, number off[w] + i.

========= ========== ======================= ==============================================================
symbol    code       shape                   meaning
========= ========== ======================= ==============================================================
n         n          --                      arrivals left
lam       prices     (P,)                    a block of prices
x_k       x          (layers,)               chance that a label in flight after the last arrival is lost
tau_k     tau        (layers,)               time left, 0 = tau_0 < tau_1 ..; none without a horizon
V, N      V, N       (2, states, layers * P) values and labels bought; prices of a layer side by side; slot n % 2
--        value,     (R, states, P)          what the states on the edge are worth and buy, by arrivals left: 1, 2, ..
          labels                             and the last for all larger n
--        start      (layers,)               first layer of the stencil of layer k
--        arrived    (W + 1, layers, points) weights of M at the stencil: the first event is an arrival
--        returned   (W + 1, layers, points) weights of E: the first event is a label that comes in
--        weights    (2, W + 1, layers, 4)   with a horizon: quadrature of the step into layer k, 1 with arrivals and 0
                                             when none is left
--        decay      (2, W + 1, layers)      e^{-qh}, likewise
========= ========== ======================= ==============================================================

With q = r + mu w, M = max{V(i,w,n-1), V(i,w+1,n-1) - lam} and E = sum_j p_j V(child_j, w-1, n):

    V(i,w,n) = (r M + mu w E) / q,    V(i,w,0) = x V(i,w-1,0) + (1 - x) sum_j p_j V(child_j, w-1, 0),    V(i,0,0) = R.

Everything is triangular: n or w falls. Without a deadline there is one layer, x = 0. With a deadline after the last
arrival V depends on the slack time y = tau - n / r, a martingale, through x = e^{-mu y}: layers are values of x, the
same for all n, between which M and E are quadratic in x (docs/theory.md, section 8).

With a horizon layers are times left, V(., tau = 0) = R, and one step of length h is, with G = r M + mu w E,

    V_k = e^{-q h} V_{k-1} + int_0^h e^{-q (h-s)} G(s) ds.

The integral of a cubic through four neighbouring layers is a weighted sum of four values. Stencils do not reach across
a jump of the arrival rate. V(n-1,w) and the advantage A = V(n-1,w+1) - lam - V(n-1,w) are interpolated, not the max of
them: where A changes sign inside a step its root is found and only the positive part is integrated.

States on the edge (level + w = C, or w = W) are offered no label (``closed``: V is then a lower bound), or go on
without delay and without a deadline, which makes V an upper bound (``fill_edges``).
Guarantee: exact at x = 0 up to the edge; elsewhere the error of interpolating a function that is smooth in x but for
kinks where an action changes; needs r > 2 mu. With a horizon the error is O(h^4) where V is smooth in time, O(h^3) at
the few times where an action changes. Cost: 8 + 4 J flops per state, arrival and price without a deadline, about a
nanosecond; with layers of slack time about two each, with layers of time about 30 flops each.

The index of every state is the greatest price at which 'assign' is still optimal:

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
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nextlabel.arrays import Bools, Floats, Ints
from nextlabel.kernels.inputs import TIED, TIED_VALUES, Edge, Grid, Lattices
from nextlabel.kernels.jit import jit, uncounted
from nextlabel.kernels.no_delay import EDGE_ROWS, fill_edge

#: Bytes that V and N of a block may take, to stay in the cache, and prices of a block.
BLOCK_BYTES, FEWEST, MOST = 1 << 20, 32, 128


class Stencils(NamedTuple):
    """The layers, and how the next row follows from the stencils of the last one."""

    x: Floats
    start: Ints
    arrived: Floats
    returned: Floats
    tau: Floats
    r: Floats
    mu: float
    weights: Floats
    decay: Floats


@jit
def stencils(x: Floats, start: Ints, arrived: Floats, returned: Floats) -> Stencils:
    """Those without a horizon."""
    none = np.zeros(0)
    return Stencils(x, start, arrived, returned, none, none, 0.0, np.zeros((2, 0, 0, 4)), np.zeros((2, 0, 0)))


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
    return stencils(np.zeros(1), np.zeros(1, dtype=np.int64), arrived, returned)


def prices_at_once(states: int, layers: int, most: int, fewest: int = FEWEST) -> int:
    """Prices of a block that stays in the cache, not above ``most``."""
    return min(max(BLOCK_BYTES // (32 * states * layers) // 8 * 8, fewest), MOST, most)


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
    child, prob, V = lattices.child, lattices.prob[0], block.V[0]
    block.N[0][:] = 0.0
    for s in range(grid.up.shape[0]):
        i, w = grid.node[s], grid.flight[s]
        for k in range(x.shape[0]):
            v = lattices.reward[0, i]
            if w > 0:
                down = grid.off[w - 1]
                v = x[k] * V[down + i, k * P]
                for j in range(child.shape[1]):
                    v += (1.0 - x[k]) * prob[i, j] * V[down + child[i, j], k * P]
            V[s, k * P : (k + 1) * P] = v


@jit
def add_children(lattices: Lattices, i: int, by: float, X: Floats, down: int, P: int, out: Floats) -> None:
    """out[p] += by * sum_j p_j X[down + child_j, p]."""
    for j in range(lattices.child.shape[1]):
        c, share = down + lattices.child[i, j], by * lattices.prob[0, i, j]
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


GAUSS_AT = np.array([-0.8611363115940526, -0.3399810435848563, 0.3399810435848563, 0.8611363115940526])
GAUSS_BY = np.array([0.3478548451374538, 0.6521451548625461, 0.6521451548625461, 0.3478548451374538])


@jit
def cubic(x: Floats, f: Floats, at: float) -> float:
    """The cubic through (x_i, f_i), i = 0 .. 3, at one point."""
    total = 0.0
    for i in range(4):
        term = f[i]
        for j in range(4):
            if j != i:
                term *= (at - x[j]) / (x[i] - x[j])
        total += term
    return total


@jit
def positive_part(x: Floats, A: Floats, L: Floats, h: float, q: float, rising: bool) -> tuple[float, float]:
    """int e^{-q(h-s)} A ds and the same of L over the part of [0, h] where A > 0; A has one root inside."""
    lo, hi = 0.0, h
    for _ in range(60):
        mid = 0.5 * (lo + hi)
        if (cubic(x, A, mid) > 0.0) == rising:
            hi = mid
        else:
            lo = mid
    a, b = (hi, h) if rising else (0.0, lo)
    value, labels = 0.0, 0.0
    for g in range(4):
        s = 0.5 * (a + b) + 0.5 * (b - a) * GAUSS_AT[g]
        by = 0.5 * (b - a) * GAUSS_BY[g] * np.exp(-q * (h - s))
        value += by * cubic(x, A, s)
        labels += by * cubic(x, L, s)
    return value, labels


@jit
def next_row_in_time(
    lattices: Lattices, grid: Grid, steps: Stencils, prices: Floats, n: int, closed: bool, block: Block
) -> None:
    """``next_row`` with a horizon."""
    P, kind, tau = prices.shape[0], 1 if n > 0 else 0, steps.tau
    slot, size = min(max(n, 1), block.value.shape[0]) - 1, tau.shape[0] * P
    V, N, V_last, N_last = block.V[n % 2], block.N[n % 2], block.V[1 - n % 2], block.N[1 - n % 2]
    A, L, E, E_n = np.zeros(size), np.zeros(size), np.zeros(size), np.zeros(size)
    x, advantage, labels = np.zeros(4), np.zeros(4), np.zeros(4)
    for s in range(grid.up.shape[0]):
        i, w, up = grid.node[s], grid.flight[s], grid.up[s]
        here, there, stay, stay_n = V[s], N[s], V_last[s], N_last[s]
        if up < 0 and n > 0 and not closed:
            for k in range(tau.shape[0]):
                for p in range(P):
                    here[k * P + p], there[k * P + p] = block.value[slot, s, p], block.labels[slot, s, p]
            continue
        by, fade, busy, offered = steps.weights[kind, w], steps.decay[kind, w], steps.mu * w, up >= 0 and n > 0
        if w > 0:
            E[:], E_n[:] = 0.0, 0.0
            add_children(lattices, i, 1.0, V, grid.off[w - 1], size, E)
            add_children(lattices, i, 1.0, N, grid.off[w - 1], size, E_n)
        if offered:
            more, more_n = V_last[up], N_last[up]
            for k in range(tau.shape[0]):
                for p in range(P):
                    c = k * P + p
                    A[c], L[c] = more[c] - prices[p] - stay[c], 1.0 + more_n[c] - stay_n[c]
        here[:P], there[:P] = lattices.reward[0, i], 0.0
        for k in range(1, tau.shape[0]):
            j, rate, h = steps.start[k] * P, steps.r[k] * kind, tau[k] - tau[k - 1]
            b0, b1, b2, b3, fall, now = by[k, 0], by[k, 1], by[k, 2], by[k, 3], fade[k], k * P
            for p in range(P):  # without a branch, so that prices are taken side by side
                c0, c1, c2, c3 = j + p, j + P + p, j + 2 * P + p, j + 3 * P + p
                v, v_n = fall * here[now - P + p], fall * there[now - P + p]
                v, v_n = v + b0 * busy * E[c0], v_n + b0 * busy * E_n[c0]
                v, v_n = v + b0 * rate * stay[c0], v_n + b0 * rate * stay_n[c0]
                v, v_n = v + b1 * busy * E[c1], v_n + b1 * busy * E_n[c1]
                v, v_n = v + b1 * rate * stay[c1], v_n + b1 * rate * stay_n[c1]
                v, v_n = v + b2 * busy * E[c2], v_n + b2 * busy * E_n[c2]
                v, v_n = v + b2 * rate * stay[c2], v_n + b2 * rate * stay_n[c2]
                v, v_n = v + b3 * busy * E[c3], v_n + b3 * busy * E_n[c3]
                v, v_n = v + b3 * rate * stay[c3], v_n + b3 * rate * stay_n[c3]
                here[now + p], there[now + p] = v, v_n
            for p in range(P if offered else 0):
                before, after = A[now - P + p], A[now + p]
                if before >= 0.0 and after >= 0.0:
                    for g in range(4):
                        here[now + p] += by[k, g] * rate * A[j + g * P + p]
                        there[now + p] += by[k, g] * rate * L[j + g * P + p]
                elif before > 0.0 or after > 0.0:
                    for g in range(4):
                        q, c = steps.start[k] + g, j + g * P + p
                        x[g], advantage[g], labels[g] = tau[q] - tau[k - 1], A[c], L[c]
                    gain, gain_n = positive_part(x, advantage, labels, h, rate + busy, after > 0.0)
                    here[now + p] += rate * gain
                    there[now + p] += rate * gain_n


@jit
def pass_row(
    lattices: Lattices, grid: Grid, w: int, x: float, y: float, price: Floats, V_last: Floats, N_last: Floats,
    V: Floats, N: Floats,
) -> int:  # fmt: skip
    """``next_row`` of the states with w labels in flight that are offered one, of two answers, without layers.

    They come first in their block; return how many there are.
    """
    child, prob, P = lattices.child, lattices.prob[0], price.shape[0]
    o, up, down = grid.off[w], grid.off[w + 1], grid.off[w - 1] if w > 0 else 0
    offered: int = lattices.first[grid.C - w]
    for i in range(offered):
        s, u, c, d = o + i, up + i, down + child[i, 0], down + child[i, 1]
        if w == 0:  # nothing in flight
            c = d = 0
        y_c, y_d = y * prob[i, 0], y * prob[i, 1]
        for p in range(P):
            bought = V_last[u, p] - price[p]
            waits = V_last[s, p]
            takes = bought >= waits
            V[s, p] = x * (bought if takes else waits) + y_c * V[c, p] + y_d * V[d, p]
            N[s, p] = x * (1.0 + N_last[u, p] if takes else N_last[s, p]) + y_c * N[c, p] + y_d * N[d, p]
    return offered


@jit
def next_row(
    lattices: Lattices, grid: Grid, steps: Stencils, prices: Floats, n: int, closed: bool, block: Block
) -> None:
    """V and N with n arrivals left, from those with n - 1 if there are any."""
    P, layers = prices.shape[0], steps.start.shape[0]
    if steps.tau.shape[0] > 0:
        next_row_in_time(lattices, grid, steps, prices, n, closed, block)
        return
    if n == 0:
        last_row(lattices, grid, steps.x, P, block)
        return
    slot, size = min(n, block.value.shape[0]) - 1, layers * P
    V, N, V_last, N_last = block.V[n % 2], block.N[n % 2], block.V[1 - n % 2], block.N[1 - n % 2]
    price = np.empty(size)
    for k in range(layers):
        price[k * P : (k + 1) * P] = prices
    M, M_n, E, E_n = np.zeros(size), np.zeros(size), np.zeros(size), np.zeros(size)
    after, after_n = M.reshape((layers, P)), M_n.reshape((layers, P))
    back, back_n = E.reshape((layers, P)), E_n.reshape((layers, P))
    quick = layers == 1 and lattices.child.shape[1] == 2
    for w in range(grid.W + 1):
        arrived, returned, done = steps.arrived[w], steps.returned[w], 0
        if quick and w < grid.W:
            done = pass_row(lattices, grid, w, arrived[0, 0], returned[0, 0], price, V_last, N_last, V, N)
        for s in range(grid.off[w] + done, grid.off[w + 1]):
            i, up = grid.node[s], grid.up[s]
            if up < 0 and not closed:
                for k in range(layers):
                    for p in range(P):
                        V[s, k * P + p], N[s, k * P + p] = block.value[slot, s, p], block.labels[slot, s, p]
                continue
            u = max(up, 0)
            V_s, V_u, N_s, N_u, to_V, to_N = V_last[s], V_last[u], N_last[s], N_last[u], V[s], N[s]
            x, y = arrived[0, 0], returned[0, 0]
            if layers > 1:
                to_V, to_N, x = M, M_n, 1.0
            for p in range(size):
                bought = V_u[p] - price[p]
                takes = up >= 0 and bought >= V_s[p]
                to_V[p] = x * (bought if takes else V_s[p])
                to_N[p] = x * (1.0 + N_u[p] if takes else N_s[p])
            if layers > 1:
                E[:], E_n[:] = 0.0, 0.0
                to_V, to_N, y = E, E_n, 1.0
            if w > 0:
                add_children(lattices, i, y, V, grid.off[w - 1], size, to_V)
                add_children(lattices, i, y, N, grid.off[w - 1], size, to_N)
            if layers > 1:
                mix_layers(arrived, returned, steps.start, after, back, V[s])
                mix_layers(arrived, returned, steps.start, after_n, back_n, N[s])


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
def sweep_demand(
    lattices: Lattices, grid: Grid, steps: Stencils, prices: Floats, kept: Ints, closed: bool, block: Block,
    V: Floats, S: Floats,
) -> None:  # fmt: skip
    """As ``sweep_rows``: V, and the variance S of the labels that a task will still take; past the edge it is 0.

    The mean of their square is Q(w,n) = (r [1 + 2 N + Q](w+1,n-1) + mu w sum_j p_j Q(child_j,w-1,n)) / q if it takes.
    """
    Q, P = np.zeros_like(block.N), prices.shape[1]
    k = 0
    for n in range(kept[-1] + 1):
        price, new, old = prices[max(n - 1, 0)], Q[n % 2], Q[1 - n % 2]
        N, V_last, N_last = block.N[n % 2], block.V[1 - n % 2], block.N[1 - n % 2]
        next_row(lattices, grid, steps, price, n, closed, block)
        for s in range(grid.up.shape[0] if n > 0 else 0):
            w, up = grid.flight[s], grid.up[s]
            if up < 0 and not closed:
                new[s] = N[s] ** 2
                continue
            x, y = steps.arrived[w, 0, 0], steps.returned[w, 0, 0]
            for p in range(P):
                takes = up >= 0 and V_last[up, p] - price[p] >= V_last[s, p]
                new[s, p] = x * (1.0 + 2.0 * N_last[up, p] + old[up, p] if takes else old[s, p])
            if w > 0:
                add_children(lattices, grid.node[s], y, new, grid.off[w - 1], P, new[s])
        if kept[k] == n:
            V[k], S[k] = block.V[n % 2], np.maximum(new - N**2, 0.0)
            k += 1


@jit
def sweep_until(
    lattices: Lattices, grid: Grid, steps: Stencils, prices: Floats, U: int, enough: Floats, closed: bool,
    block: Block, out: Floats,
) -> None:  # fmt: skip
    """out (3, P): V, N and n of a fresh task with U arrivals left, or with the first n at which V is ``enough``.

    V grows with n towards a limit; with all the time left, if there is a horizon.
    """
    out[2] = -1.0
    end = (steps.start.shape[0] - 1) * prices.shape[0]
    for n in range(U + 1):
        next_row(lattices, grid, steps, prices, n, closed, block)
        settled = True
        for p in range(prices.shape[0]):
            if out[2, p] < 0.0:
                if n == U or block.V[n % 2, 0, end + p] >= enough[p]:
                    out[0, p], out[1, p], out[2, p] = block.V[n % 2, 0, end + p], block.N[n % 2, 0, end + p], n
                else:
                    settled = False
        if settled:
            break


class Brackets(NamedTuple):
    """Where the roots are: ends[0..3] = g(lo), g'(lo), g(hi), g'(hi)."""

    lo: Floats
    hi: Floats
    ends: Floats


@jit
def sweep(lattices: Lattices, grid: Grid, steps: Stencils, lam: float, V: Floats, N: Floats) -> None:
    """V and N (rows, states, layers) of one class at one price for all arrivals; row n has n arrivals left."""
    rows, states, layers = V.shape
    block, prices = new_block(states, layers, 1), np.full((max(rows - 1, 1), 1), lam)
    fill_edges(lattices, grid, prices[0], block)
    no = layers < 1  # a literal False would have the sweeps compiled once more
    sweep_rows(lattices, grid, steps, prices, np.arange(rows), no, block, V, N)


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
    """Sweep at each of the falling ``prices`` and narrow the brackets, a block of prices side by side.

    Falling, so that the first price at which 'assign' is optimal is the greatest one tried. Row m of the brackets is
    about ``at[m]`` arrivals left, which V with one less decides; with slack time y, for a time left of
    y + (at[m] - 1) / r.
    """
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
            for s in range(grid.up.shape[0]):
                u = grid.up[s]
                for k in range(layers if u >= 0 else 0):
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
            for s in range(grid.up.shape[0]):
                u = grid.up[s]
                for p in range(1, some.shape[0] if u >= 0 else 1):
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
