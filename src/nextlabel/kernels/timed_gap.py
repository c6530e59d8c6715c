"""What arrivals before a deadline lost against the best they could have done: the Lagrangian martingale in time.

========= ========= ============== ======================================================================
symbol    code      shape          meaning
========= ========= ============== ======================================================================
tau       tau       (m,)           time left at the layers, rising from 0
V(s,tau)  value     (m, C)         value of a task in state s at prices p(tau), of all classes side by side
dV/dtau   slope     (m, 2, C)      at both ends of the step from layer k to k + 1: it jumps where r does
p + c     price     (m,)           price of a label given with tau left and its cost; linear in between
--        column    (W + 2, N)     column of state [w, node], -1 where V is V_0
V_0       worth     (W + 2, N)     P^j R: what the task is worth after j more labels
========= ========= ============== ======================================================================

    dV/dtau = r max{0, V(w+1) - p - c - V(w)} + mu w (sum_j p_j V(child_j, w-1) - V(w)),      V(., 0) = R.

V_0 is the value without another label: each label in flight comes in with the chance q = 1 - e^{-mu tau}. Tasks past
the sweep have V = V_0. Given all that happens, sum_x V grows at an arrival by A = V(w+1) - V(w) of the task that gets
it, labels that come in are martingale steps, and between events it falls by r sum_x max{0, A_x - p - c}. Hence

    E[reward - c labels] = sum_x V(start) + E[ sum over arrivals of p ] - E[G],
    G = sum over arrivals of { sum_x max{0, A_x - p - c} - (A - p - c) of the label given, or + p if none was }
        + sum_x (V - V_0) when the budget is spent.

Guarantee: exact up to the integration of V. Cost: a visit to each non-empty group for each arrival.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.kernels.inputs import Grid, Lattices
from nextlabel.kernels.jit import jit
from nextlabel.kernels.uncounted import uncounted


class TimedGap(NamedTuple):
    """Tables of the martingale in time; no layers switch it off."""

    tau: Floats
    value: Floats
    slope: Floats
    price: Floats
    column: Ints
    worth: Floats
    mu: float
    cost: float


def no_timed_gap() -> TimedGap:
    """Switches it off."""
    none = np.zeros((0, 0))
    return TimedGap(
        np.zeros(0), none, np.zeros((0, 2, 0)), np.zeros(0), np.zeros((0, 0), dtype=np.int64), none, 1.0, 0.0
    )


@jit
def slopes(lattices: Lattices, b: int, grid: Grid, mu: float, r: float, p: float, V: Floats, out: Floats) -> None:
    """out = dV/dtau of class b; states on the edge are offered no label."""
    first, child, prob = lattices.first, lattices.child, lattices.prob
    C, W, off = grid.C, grid.W, grid.off
    for w in range(W + 1):
        o, up, open_ = off[w], off[w + 1], first[C - w] if w < W else 0
        for i in range(first[C - w + 1]):
            rise = 0.0
            if w > 0:
                mean = 0.0
                for j in range(prob.shape[2]):
                    mean += prob[b, i, j] * V[off[w - 1] + child[i, j]]
                rise = mu * w * (mean - V[o + i])
            if i < open_:
                rise += r * max(0.0, V[up + i] - p - V[o + i])
            out[o + i] = rise


@jit
def integrate(
    lattices: Lattices, b: int, grid: Grid, mu: float, tau: Floats, rate: Floats, price: Floats, parts: int,
    value: Floats, slope: Floats,
) -> None:  # fmt: skip
    """Fill value (m, states) and slope (m, 2, states) of class b by the rule of Runge and Kutta.

    From layer to layer it takes ``parts`` steps.
    """
    first, reward = lattices.first, lattices.reward
    states = value.shape[1]
    for w in range(grid.W + 1):
        for i in range(first[grid.C - w + 1]):
            value[0, grid.off[w] + i] = reward[b, i]
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


@uncounted
def worth_of(gap: TimedGap, w: int, i: int, q: float) -> float:
    """V_0 of state [w, i]: each of the w labels in flight comes in with the chance q."""
    if 1.0 - q < 1e-12:
        sure: float = gap.worth[w, i]
        return sure
    chance = (1.0 - q) ** w
    worth: float = chance * gap.worth[0, i]
    for j in range(w):
        chance *= (w - j) / (j + 1.0) * q / (1.0 - q)
        worth += chance * gap.worth[j + 1, i]
    return worth


@uncounted
def value_of(gap: TimedGap, w: int, i: int, k: int, u: float, q: float) -> float:
    """V of state [w, i] between layers k and k + 1, by the cubic through values and slopes."""
    c = gap.column[w, i]
    if c < 0:
        return worth_of(gap, w, i, q)
    h = gap.tau[k + 1] - gap.tau[k]
    value: float = (
        (1.0 + 2.0 * u) * (1.0 - u) ** 2 * gap.value[k, c]
        + u * (1.0 - u) ** 2 * h * gap.slope[k, 0, c]
        + u * u * (3.0 - 2.0 * u) * gap.value[k + 1, c]
        - u * u * (1.0 - u) * h * gap.slope[k, 1, c]
    )
    return value


@uncounted
def timed_loss(gap: TimedGap, node: Ints, flight: Ints, active: Ints, count: Ints, tau: float, chosen: int) -> float:
    """What the arrival with ``tau`` left lost; ``chosen`` is the state that it got, -1 for none."""
    k = min(max(np.searchsorted(gap.tau, tau, side="right") - 1, 0), gap.tau.shape[0] - 2)
    u = (tau - gap.tau[k]) / (gap.tau[k + 1] - gap.tau[k])
    q = -np.expm1(-gap.mu * tau)
    price = gap.price[k] + u * (gap.price[k + 1] - gap.price[k])
    loss = price - gap.cost if chosen < 0 else 0.0
    for g in range(active[-1]):
        s = active[g]
        w, i = flight[s], node[s]
        inside = gap.column[w, i] >= 0 and gap.column[w + 1, i] >= 0
        if not inside and s != chosen:
            continue
        gain = value_of(gap, w + 1, i, k, u, q) - value_of(gap, w, i, k, u, q) - price
        if inside and gain > 0.0:
            loss += count[s] * gain
        if s == chosen:
            loss -= gain
    return loss


@uncounted
def spent_loss(gap: TimedGap, node: Ints, flight: Ints, active: Ints, count: Ints, tau: float) -> float:
    """sum_x V - V_0 with ``tau`` left, when the last label was given out."""
    k = min(max(np.searchsorted(gap.tau, tau, side="right") - 1, 0), gap.tau.shape[0] - 2)
    u = (tau - gap.tau[k]) / (gap.tau[k + 1] - gap.tau[k])
    q = -np.expm1(-gap.mu * tau)
    loss = 0.0
    for g in range(active[-1]):
        s = active[g]
        w, i = flight[s], node[s]
        if gap.column[w, i] >= 0:
            loss += count[s] * (value_of(gap, w, i, k, u, q) - worth_of(gap, w, i, q))
    return loss
