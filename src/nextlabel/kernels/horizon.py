"""One task with a horizon at given prices: a sweep of fourth order in time, and a supersolution, a proved bound.

Notation of ``priced``. For a state of rate q = r + mu w, with G = r max{V(n-1,w), V(n-1,w+1) - lam} + mu w E known at
all times before V is (n falls, or w falls), one step of length h is

    V_k = e^{-q h} V_{k-1} + int_0^h e^{-q (h-s)} G(s) ds.

``backward_horizon``: the integral of a cubic through four neighbouring layers is a weighted sum of four values
(``weights``, made once). Stencils do not reach across a jump of the arrival rate. V(n-1,w) and the advantage A =
V(n-1,w+1) - lam - V(n-1,w) are interpolated, not the max of them: where A changes sign inside a step its root is found
and only the positive part is integrated. V and N are (slots, states, layers): time is the fast axis.
Guarantee: error O(h^4) where V is smooth in time, O(h^3) at the few times where an action changes.
Cost: about 30 flops per state, arrival and layer.

``backward_above``: write the equation as V' = f(V), V(0) = R, with

    f_s(V) = r [ max{V(i,w,n-1), V(i,w+1,n-1) - lam} - V_s ] + mu w [ sum_j p_j V(child_j,w-1,n) - V_s ].

Each f_s is convex along lines and nondecreasing in the other components, so any continuous Phi with Phi(0) >= R and
Phi' >= f(Phi) has Phi >= V (comparison theorem). On a step of length h take, with u in [0, 1],

    Phi = (1-u) Phi_0 + u Phi_1 + u (1-u) h c,      c = (f(Phi_0) - f(Phi_1)) / 2.

Convexity and u(1-u) <= 1/4 give f(Phi) <= (1-u) f(Phi_0) + u f(Phi_1) + u (1-u) h D(c), where D is f without prices,
D_s(c) = r [max{c_stay, c_assign} - c_s] + mu w [sum_j p_j c_child - c_s]. The linear terms cancel against Phi', and
Phi' >= f(Phi) holds as soon as

    Phi_1 - Phi_0 = (h/2) (f(Phi_0) + f(Phi_1)) + (h^2/4) max{0, D(c)}:

the trapezoidal rule and a correction of third order per step. Where the advantage A keeps its sign by more than
(h/4) |c| on both ends, max{c_stay, c_assign} is the c of the better action.
Guarantee: upper bound for any step (no stability condition), error O(h^2). Cost: twice ``priced``.
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


@jit
def backward_above(lattices: Lattices, grid: Grid, steps: Steps, lam: Floats, edge: Floats, out: Floats) -> None:
    """out[b] = an upper bound on V(root, U arrivals, T left) of class b; ``edge`` (B, R, states) is worth that much."""
    first, child, reward, prob = lattices.first, lattices.child, lattices.reward, lattices.prob
    C, W, off = grid.C, grid.W, grid.off
    mu, h, r = steps.mu, steps.h, steps.r
    B = reward.shape[0]
    layers = h.shape[0]
    U = lam.shape[0]
    J = prob.shape[2]
    states = off[W + 1]
    V = np.zeros((2, layers, states))
    bend = np.zeros((2, layers, states))
    M_left = np.zeros(states)
    E_left = np.zeros(states)
    for b in range(B):
        for n in range(U + 1):
            cur, prv = n % 2, (n - 1) % 2
            price = lam[U - n] if n > 0 else 0.0
            slot = min(max(n, 1), edge.shape[1]) - 1
            for k in range(layers):
                rate = 0.0 if n == 0 else r[k]
                step = h[k]
                for w in range(W + 1):
                    o, up = off[w], off[w + 1]
                    busy = mu * w
                    q = rate + busy
                    whole = first[C - w + 1]
                    inner = whole if n == 0 else (first[C - w] if w < W else 0)
                    down = off[w - 1] if w > 0 else 0
                    for i in range(inner):
                        s = o + i
                        M, E, gain = 0.0, 0.0, 0.0
                        if n > 0:
                            gain = V[prv, k, up + i] - price - V[prv, k, s]
                            M = V[prv, k, s] + max(gain, 0.0)
                        if w > 0:
                            for j in range(J):
                                E += prob[b, i, j] * V[cur, k, down + child[i, j]]
                        if k == 0:
                            V[cur, 0, s] = reward[b, i]
                            M_left[s], E_left[s] = M, E
                            continue
                        left = V[cur, k - 1, s]
                        f_left = rate * (M_left[s] - left) + busy * (E_left[s] - left)
                        G = rate * M + busy * E
                        half = 2.0 / step
                        v = (half * left + f_left + G) / (half + q)
                        pull = 0.0
                        if n > 0:
                            c_stay, c_take = bend[prv, k, s], bend[prv, k, up + i]
                            before = V[prv, k - 1, up + i] - price - V[prv, k - 1, s]
                            sway = 0.25 * step * abs(c_take - c_stay)
                            if max(gain, before) + sway <= 0.0:
                                pull += rate * c_stay
                            elif min(gain, before) - sway >= 0.0:
                                pull += rate * c_take
                            else:
                                pull += rate * max(c_stay, c_take)
                        if w > 0:
                            for j in range(J):
                                pull += busy * prob[b, i, j] * bend[cur, k, down + child[i, j]]
                        if pull - 0.5 * q * (f_left - G + q * v) > 0.0:
                            push = 0.5 * step * (pull - 0.5 * q * (f_left - G))
                            v = (half * left + f_left + G + push) / (half + q + 0.25 * step * q * q)
                        bend[cur, k, s] = 0.5 * (f_left - G + q * v)
                        V[cur, k, s] = v
                        M_left[s], E_left[s] = M, E
                    for i in range(inner, whole):
                        V[cur, k, o + i] = edge[b, slot, o + i]
                        bend[cur, k, o + i] = 0.0
        out[b] = V[U % 2, layers - 1, 0]
