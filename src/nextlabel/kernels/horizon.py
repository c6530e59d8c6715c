"""Backward sweep for a finite horizon, fourth order in time: variation of constants with cubic interpolation.

Notation of ``backward``. For a state of rate q = r + mu w, with G = r max{V(n-1,w), V(n-1,w+1) - lam} + mu w E known at
all times before V is (n falls, or w falls), one step of length h is

    V_k = e^{-q h} V_{k-1} + int_0^h e^{-q (h-s)} G(s) ds,

and the integral of a cubic through four neighbouring layers is a weighted sum of four values (``weights``, made once).
The arrival rate is constant over a step, and r[k] is that of the step into layer k; stencils do not reach across a
jump of it.

V(n-1,w) and the advantage A = V(n-1,w+1) - lam - V(n-1,w) are interpolated, not the max of them: where A changes sign
inside a step its root is found and only the positive part is integrated.

V and N are (slots, states, layers): time is the fast axis here.

Guarantee: error O(h^4) where V is smooth in time, O(h^3) at the few times where an action changes.
Cost: about 30 flops per state, arrival and layer.
"""

from __future__ import annotations

import numpy as np

from nextlabel.arrays import Floats
from nextlabel.kernels.inputs import Edge, Grid, Lattices, Steps, StepWeights
from nextlabel.kernels.jit import jit

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
def backward_horizon(
    lattices: Lattices, grid: Grid, steps: Steps, quadrature: StepWeights, lam: Floats, forbid: bool, edge: Edge,
    V: Floats, N: Floats,
) -> None:  # fmt: skip
    """Fill V and N of the one class of ``lattices`` for n = 0 .. U (slot n % slots)."""
    first, child, reward, prob = lattices.first, lattices.child, lattices.reward[0], lattices.prob[0]
    C, W, off = grid.C, grid.W, grid.off
    mu, tau, r = steps.mu, steps.tau, steps.r
    weights, decay, start = quadrature.weights, quadrature.decay, quadrature.start
    edge_value, edge_labels = edge.value[0], edge.labels[0]
    slots, _, layers = V.shape
    U = lam.shape[0]
    J = prob.shape[1]
    E, E_n = np.zeros(layers), np.zeros(layers)
    A, L = np.zeros(layers), np.zeros(layers)
    x = np.zeros(4)
    for n in range(U + 1):
        cur, prv = n % slots, (n - 1) % slots
        price = lam[U - n] if n > 0 else 0.0
        slot = min(max(n, 1), edge_value.shape[0]) - 1
        with_arrivals = 1 if n > 0 else 0
        for w in range(W + 1):
            o, up = off[w], off[w + 1]
            busy = mu * w
            by, fade = weights[with_arrivals, w], decay[with_arrivals, w]
            whole = first[C - w + 1]
            open_ = first[C - w] if w < W else 0
            inner = whole if n == 0 or forbid else open_
            for i in range(inner):
                s = o + i
                for k in range(layers):
                    E[k], E_n[k] = 0.0, 0.0
                if w > 0:
                    for j in range(J):
                        c, p = off[w - 1] + child[i, j], prob[i, j]
                        for k in range(layers):
                            E[k] += p * V[cur, c, k]
                            E_n[k] += p * N[cur, c, k]
                offered = n > 0 and i < open_
                if offered:
                    for k in range(layers):
                        A[k] = V[prv, up + i, k] - price - V[prv, s, k]
                        L[k] = 1.0 + N[prv, up + i, k] - N[prv, s, k]
                V[cur, s, 0] = reward[i]
                N[cur, s, 0] = 0.0
                for k in range(1, layers):
                    v, v_n = fade[k] * V[cur, s, k - 1], fade[k] * N[cur, s, k - 1]
                    j0 = start[k]
                    rate = r[k] * with_arrivals
                    for g in range(4):
                        b = by[k, g]
                        v += b * busy * E[j0 + g]
                        v_n += b * busy * E_n[j0 + g]
                        if n > 0:
                            v += b * rate * V[prv, s, j0 + g]
                            v_n += b * rate * N[prv, s, j0 + g]
                    if offered:
                        if A[k - 1] >= 0.0 and A[k] >= 0.0:
                            for g in range(4):
                                v += by[k, g] * rate * A[j0 + g]
                                v_n += by[k, g] * rate * L[j0 + g]
                        elif A[k - 1] > 0.0 or A[k] > 0.0:
                            for g in range(4):
                                x[g] = tau[j0 + g] - tau[k - 1]
                            more, more_n = positive_part(
                                x, A[j0 : j0 + 4], L[j0 : j0 + 4], tau[k] - tau[k - 1], rate + busy, A[k] > 0.0
                            )
                            v += rate * more
                            v_n += rate * more_n
                    V[cur, s, k] = v
                    N[cur, s, k] = v_n
            for i in range(inner, whole):
                for k in range(layers):
                    V[cur, o + i, k] = edge_value[slot, o + i]
                    N[cur, o + i, k] = edge_labels[slot, o + i]
