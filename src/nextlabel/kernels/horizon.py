"""One task with a horizon at given prices: supersolutions, which are proved bounds, and values at prices by time.

Notation of ``priced``. ``backward_above``: the trapezoidal rule with a correction of third order per step, in which D
is the equation's right side f without prices and c = (f(Phi_0) - f(Phi_1)) / 2 (docs/theory.md, section 7):

    Phi_1 - Phi_0 = (h/2) (f(Phi_0) + f(Phi_1)) + (h^2/4) max{0, D(c)}.

Guarantee: upper bound for any step (no stability condition), error O(h^2). Cost: twice ``priced``.

Prices that depend on the time alone, whatever the number of workers still to come:

========= ========= ============== ======================================================================
symbol    code      shape          meaning
========= ========= ============== ======================================================================
tau       tau       (m + 1,)       time left, 0 = tau_0 < tau_1 .. < tau_m
p_k       price     (m,)           price of a label given within step k, from tau_k down to tau_{k-1} left
r_k       rate      (m,)           workers per unit of time within step k, at most
P^j S     after     (B, G, W+1, N) expected no-delay value after j more labels, at G prices
--        group     (m,)           which of the prices serves the edge in step k
Phi       V         (B, states)    at least the value with tau_m left
========= ========= ============== ======================================================================

    dV/dtau = r max{0, V(w+1) - p - V(w)} + mu w (sum_j p_j V(child_j, w-1) - V(w)),      V(., 0) = R,

which ``integrate`` solves by the rule of Runge and Kutta, states on the edge (level + w = C, or w = W) being offered no
label. ``backward_deadline`` bounds V: what happens within a step counts as if it had happened at its beginning, when
more time was left. States on the edge go on without delay: each of the labels in flight comes in with the chance 1 -
e^{-mu tau}.
Guarantee: Phi is an upper bound for any step, with an error of first order in it (docs/theory.md, section 7).
Cost: 12 + 2 J flops for each state and step, four times that for V, whatever the number of tasks and arrivals.
"""

from __future__ import annotations

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.kernels.inputs import Grid, Lattices, Steps
from nextlabel.kernels.jit import jit


@jit
def backward_above(lattices: Lattices, grid: Grid, steps: Steps, lam: Floats, edge: Floats, out: Floats) -> None:
    """out[b] = an upper bound on V(root, U arrivals, T left) of class b; ``edge`` (B, R, states) is worth that much."""
    child, prob, off, h = lattices.child, lattices.prob, grid.off, steps.h
    layers, U, J, states = h.shape[0], lam.shape[0], prob.shape[2], grid.up.shape[0]
    V, bend = np.zeros((2, layers, states)), np.zeros((2, layers, states))
    M_left, E_left = np.zeros(states), np.zeros(states)
    for b in range(lattices.reward.shape[0]):
        for n in range(U + 1):
            cur, prv = n % 2, (n - 1) % 2
            price = lam[U - n] if n > 0 else 0.0
            slot = min(max(n, 1), edge.shape[1]) - 1
            for k in range(layers):
                rate, step = 0.0 if n == 0 else steps.r[k], h[k]
                for s in range(states):
                    i, w, up = grid.node[s], grid.flight[s], grid.up[s]
                    if n > 0 and up < 0:
                        V[cur, k, s], bend[cur, k, s] = edge[b, slot, s], 0.0
                        continue
                    busy, down = steps.mu * w, off[w - 1] if w > 0 else 0
                    q = rate + busy
                    M, E, gain = 0.0, 0.0, 0.0
                    if n > 0:
                        gain = V[prv, k, up] - price - V[prv, k, s]
                        M = V[prv, k, s] + max(gain, 0.0)
                    for j in range(J if w > 0 else 0):
                        E += prob[b, i, j] * V[cur, k, down + child[i, j]]
                    if k == 0:
                        V[cur, 0, s] = lattices.reward[b, i]
                        M_left[s], E_left[s] = M, E
                        continue
                    left = V[cur, k - 1, s]
                    f_left = rate * (M_left[s] - left) + busy * (E_left[s] - left)
                    G = rate * M + busy * E
                    half = 2.0 / step
                    v = (half * left + f_left + G) / (half + q)
                    pull = 0.0
                    if n > 0:
                        c_stay, c_take = bend[prv, k, s], bend[prv, k, up]
                        before = V[prv, k - 1, up] - price - V[prv, k - 1, s]
                        sway = 0.25 * step * abs(c_take - c_stay)
                        if max(gain, before) + sway <= 0.0:
                            pull += rate * c_stay
                        elif min(gain, before) - sway >= 0.0:
                            pull += rate * c_take
                        else:
                            pull += rate * max(c_stay, c_take)
                    for j in range(J if w > 0 else 0):
                        pull += busy * prob[b, i, j] * bend[cur, k, down + child[i, j]]
                    if pull - 0.5 * q * (f_left - G + q * v) > 0.0:
                        push = 0.5 * step * (pull - 0.5 * q * (f_left - G))
                        v = (half * left + f_left + G + push) / (half + q + 0.25 * step * q * q)
                    bend[cur, k, s] = 0.5 * (f_left - G + q * v)
                    V[cur, k, s] = v
                    M_left[s], E_left[s] = M, E
        out[b] = V[U % 2, layers - 1, 0]


@jit
def grown(x: float, b: float, E: float, busy: float, r: float, h: float) -> float:
    """At least x after a time h in which it grows by busy (E - x) + r max{0, b - x}."""
    hold = np.exp(-busy * h)
    waiting: float = hold * x + (1.0 - hold) * E
    if r <= 0.0:
        return waiting
    if x >= b:
        return max(waiting, b) if b > E else waiting
    both = np.exp(-(busy + r) * h)
    share = (1.0 - both) / (busy + r)
    taking: float = both * x + share * (busy * E + r * b)
    if taking <= b:
        return taking
    reached: float = hold * b + (1.0 - hold) * E
    return reached


@jit
def backward_deadline(
    lattices: Lattices, grid: Grid, mu: float, tau: Floats, rate: Floats, price: Floats, group: Ints, after: Floats,
    V: Floats,
) -> None:  # fmt: skip
    """Fill V (B, states) with Phi at tau_m."""
    first, child, prob = lattices.first, lattices.child, lattices.prob
    C, W, off = grid.C, grid.W, grid.off
    B, J = V.shape[0], prob.shape[2]
    chance = np.zeros((W + 1, W + 1))
    chance[0, 0] = 1.0
    for b in range(B):
        V[b] = lattices.reward[b][grid.node]
        for k in range(price.shape[0]):
            h, p = tau[k + 1] - tau[k], price[k]
            q = -np.expm1(-mu * tau[k + 1])
            for w in range(1, W + 1):  # chance[w, j]: j of w labels in flight come in
                chance[w, w] = q * chance[w - 1, w - 1]
                for j in range(w - 1, 0, -1):
                    chance[w, j] = q * chance[w - 1, j - 1] + (1.0 - q) * chance[w - 1, j]
                chance[w, 0] = (1.0 - q) * chance[w - 1, 0]
            for given in range(C, -1, -1):
                for w in range(min(given, W) + 1):
                    o, up = off[w], off[w + 1]
                    for i in range(first[given - w], first[given - w + 1]):
                        if given == C or w == W:
                            worth = 0.0
                            for j in range(w + 1):
                                worth += chance[w, j] * after[b, group[k], j, i]
                            V[b, o + i] = worth
                            continue
                        mean = 0.0
                        if w > 0:
                            for j in range(J):
                                mean += prob[b, i, j] * V[b, off[w - 1] + child[i, j]]
                        V[b, o + i] = grown(V[b, o + i], V[b, up + i] - p, mean, mu * w, rate[k], h)


@jit
def slopes(lattices: Lattices, b: int, grid: Grid, mu: float, r: float, p: float, V: Floats, out: Floats) -> None:
    """out = dV/dtau of class b; states on the edge are offered no label."""
    child, prob = lattices.child, lattices.prob
    for s in range(grid.up.shape[0]):
        i, w, up, rise = grid.node[s], grid.flight[s], grid.up[s], 0.0
        if w > 0:
            mean = 0.0
            for j in range(prob.shape[2]):
                mean += prob[b, i, j] * V[grid.off[w - 1] + child[i, j]]
            rise = mu * w * (mean - V[s])
        if up >= 0:
            rise += r * max(0.0, V[up] - p - V[s])
        out[s] = rise


@jit
def integrate(
    lattices: Lattices, b: int, grid: Grid, mu: float, tau: Floats, rate: Floats, price: Floats, parts: int,
    value: Floats, slope: Floats,
) -> None:  # fmt: skip
    """Fill value (m, states) and slope (m, 2, states) of class b by the rule of Runge and Kutta.

    From layer to layer it takes ``parts`` steps.
    """
    states = value.shape[1]
    value[0] = lattices.reward[b][grid.node]
    V, k1, k2, k3, k4 = value[0].copy(), np.zeros(states), np.zeros(states), np.zeros(states), np.zeros(states)
    for k in range(1, tau.shape[0]):
        h = (tau[k] - tau[k - 1]) / parts
        r = rate[k - 1]
        for part in range(parts):
            before = price[k - 1] + (price[k] - price[k - 1]) * part / parts
            after = price[k - 1] + (price[k] - price[k - 1]) * (part + 1) / parts
            slopes(lattices, b, grid, mu, r, before, V, k1)
            if part == 0:
                slope[k - 1, 0] = k1
            slopes(lattices, b, grid, mu, r, 0.5 * (before + after), V + 0.5 * h * k1, k2)
            slopes(lattices, b, grid, mu, r, 0.5 * (before + after), V + 0.5 * h * k2, k3)
            slopes(lattices, b, grid, mu, r, after, V + h * k3, k4)
            V += h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
        value[k] = V
        slopes(lattices, b, grid, mu, r, price[k], V, slope[k - 1, 1])
