"""A provable upper bound on the finite-horizon value: a supersolution of second order.

Write the single-task equation as V' = f(V), V(0) = R, with

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
Guarantee: upper bound for any step (no stability condition), error O(h^2). Cost: twice ``backward``.
"""

from __future__ import annotations

import numpy as np

from nextlabel.arrays import Floats
from nextlabel.kernels.inputs import Grid, Lattices, Steps
from nextlabel.kernels.jit import jit


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
