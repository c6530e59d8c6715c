"""Backward sweep of the single-task problem at given prices, infinite and finite horizon alike.

========= ========== ================= ================================================================
symbol    code       shape             meaning
========= ========== ================= ================================================================
(i, w)    s          --                state off[w] + i: belief node i, w labels in flight
n         n          --                arrivals left
tau_k     k          --                time left; infinite horizon: the one layer k = 0
lam_n     lam        (U,)              price of the arrival that finds n left: lam[U - n]
r, h      r, h       (layers,)         arrival rate and length of the step that ends in layer k
V         V          (B, slots, layers, states)   value; slot n % slots
-dV/dlam  N          same or empty     expected labels bought (scalar price)
========= ========== ================= ================================================================

With q = r + mu w, M = max{V(i,w,n-1), V(i,w+1,n-1) - lam_n} and E = sum_j p_j V(child_j, w-1, n):

    infinite horizon   V = G,                                        G = (r M + mu w E) / q
    finite horizon     V_k = now G_k + late G_{k-1} + hold V_{k-1},   V_0 = R.

In the second the first event within a step of length h comes at time u with density q e^{-q u}, and G is taken as
linear between the layers: hold = e^{-q h}, late = (1 - hold) / (q h) - hold, now = 1 - hold - late. All three are
chances: the event is moved to one end of its step or the other, and the chain can be run forward (``forward``) for its
occupation measure. Infinite horizon is the case of one layer. Everything is triangular: n, w or k falls.

States on the edge (level + w = C, or w = W) either are offered no label (``forbid``: V is then a lower bound) or are
worth what the caller says: ``edge``, the no-delay continuation at the lowest price, makes V an upper bound.

With eps > 0 the max is smoothed: max{0, A} becomes max over t in [0, 1] of t A - eps t^2, at most eps below it, whose
derivative t = clip(A / (2 eps), 0, 1) is a randomised decision. Many tasks that wait take a label with a small chance
each; with t near 0 they do so where A is near 0 too, so that next to nothing is lost.
Guarantee: exact for infinite horizon up to the edge; error O(h^2) with a finite one (``horizon`` is sharper), where N
is not filled.
Cost: about (4 + 2 J) flops and 3 reads per state, arrival and layer.
"""

from __future__ import annotations

import math

import numpy as np

from nextlabel.arrays import Floats
from nextlabel.kernels.inputs import Edge, Grid, Lattices, Steps
from nextlabel.kernels.jit import jit


@jit
def smooth_gain(A: float, eps: float) -> tuple[float, float]:
    """Smoothed max{0, A} and the share of the decision 'assign'."""
    if eps <= 0.0:
        if A >= 0.0:
            return A, 1.0
        return 0.0, 0.0
    t = min(max(A / (2.0 * eps), 0.0), 1.0)
    return t * (A - eps * t), t


@jit
def step_chances(q: float, h: float) -> tuple[float, float, float]:
    """Chances that the first event, of rate q, is moved to the start or to the end of a step, or does not come."""
    x = q * h
    if x <= 0.0:
        return 0.0, 0.0, 1.0
    mean = -math.expm1(-x) / x
    hold = math.exp(-x)
    return max(1.0 - mean, 0.0), max(mean - hold, 0.0), hold


@jit
def backward(
    lattices: Lattices, grid: Grid, steps: Steps, lam: Floats, eps: float, forbid: bool, edge: Edge, enough: Floats,
    V: Floats, N: Floats,
) -> int:  # fmt: skip
    """Fill V (and N) for n = 0 .. U; return the last n done (less than U when every root reached ``enough`` before).

    With one price for all, V grows with n towards a known limit: ``enough[b]`` is where to stop (inf: never).
    """
    first, child, reward, prob = lattices.first, lattices.child, lattices.reward, lattices.prob
    C, W, off = grid.C, grid.W, grid.off
    finite, mu, r, h = steps.finite, steps.mu, steps.r, steps.h
    B, slots, layers = V.shape[0], V.shape[1], V.shape[2]
    U: int = lam.shape[0]
    J = prob.shape[2]
    count = N.shape[0] > 0
    left = np.zeros((2, V.shape[3]))  # M and E of the layer before
    for n in range(U + 1):
        cur, prv = n % slots, (n - 1) % slots
        price = lam[U - n] if n > 0 else 0.0
        slot = min(max(n, 1), edge.value.shape[1]) - 1
        settled = True
        for b in range(B):
            for k in range(layers):
                terminal = finite and k == 0
                rate = 0.0 if n == 0 else r[k]
                for w in range(W + 1):
                    o, up = off[w], off[w + 1]
                    busy = mu * w
                    q = rate + busy
                    now, late, hold = step_chances(q, h[k]) if finite else (1.0, 0.0, 0.0)
                    whole = first[C - w + 1]
                    open_ = first[C - w] if w < W else 0
                    inner = whole if n == 0 or forbid or terminal else open_
                    down = off[w - 1] if w > 0 else 0
                    for i in range(inner):
                        M, M_n, E, E_n = 0.0, 0.0, 0.0, 0.0
                        if n > 0:
                            M = V[b, prv, k, o + i]
                            if count:
                                M_n = N[b, prv, k, o + i]
                            if i < open_:
                                gain, share = smooth_gain(V[b, prv, k, up + i] - price - M, eps)
                                M += gain
                                if count:
                                    M_n += share * (1.0 + N[b, prv, k, up + i] - M_n)
                        if w > 0:
                            for j in range(J):
                                c = down + child[i, j]
                                E += prob[b, i, j] * V[b, cur, k, c]
                                if count:
                                    E_n += prob[b, i, j] * N[b, cur, k, c]
                        if terminal or (q == 0.0 and not finite):
                            v, v_n = reward[b, i], 0.0
                        elif not finite:
                            v = (rate * M + busy * E) / q
                            v_n = (rate * M_n + busy * E_n) / q
                        else:
                            v, v_n = hold * V[b, cur, k - 1, o + i], 0.0
                            if q > 0.0:
                                v += now * ((rate * M + busy * E) / q)
                                v += late * ((rate * left[0, o + i] + busy * left[1, o + i]) / q)
                        if finite:
                            left[0, o + i], left[1, o + i] = M, E
                        V[b, cur, k, o + i] = v
                        if count:
                            N[b, cur, k, o + i] = v_n
                    for i in range(inner, whole):
                        V[b, cur, k, o + i] = edge.value[b, slot, o + i]
                        if count:
                            N[b, cur, k, o + i] = edge.labels[b, slot, o + i]
            settled = settled and V[b, cur, layers - 1, 0] >= enough[b]
        if settled:
            return n
    return U
