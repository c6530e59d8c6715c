"""What arrivals lost against the best they could have done: the Lagrangian martingale, by arrivals left or in time.

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

Without a deadline the term of an arrival is the sum over all tasks of what one more label could add at best, minus
A - lam of the label given (plus lam if none was), with A the advantage of one more label and lam the price of this
arrival (``solve.advantage``).

Before a deadline V solves the equation of ``deadline.integrate``. V_0 is the value without another label: each label in
flight comes in with the chance q = 1 - e^{-mu tau}. Tasks past the sweep have V = V_0. Given all that happens, sum_x V
grows at an arrival by A = V(w+1) - V(w) of the task that gets it, labels that come in are martingale steps, and between
events it falls by r sum_x max{0, A_x - p - c}. Hence

    E[reward - c labels] = sum_x V(start) + E[ sum over arrivals of p ] - E[G],
    G = sum over arrivals of { sum_x max{0, A_x - p - c} - (A - p - c) of the label given, or + p if none was }
        + sum_x (V - V_0) when the budget is spent.

Guarantee: exact up to the integration of V. Cost: a visit to each non-empty group for each arrival.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.kernels.jit import uncounted


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


_NONE, _NOWHERE = np.zeros((0, 0)), np.zeros((0, 0), dtype=np.int64)
#: Switches it off.
NO_TIMED_GAP = TimedGap(np.zeros(0), _NONE, np.zeros((0, 2, 0)), np.zeros(0), _NOWHERE, _NONE, 1.0, 0.0)


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


class GapTables(NamedTuple):
    """Tables of ``solve.advantage`` for the martingale estimate of the gap; no prices and no layers switch it off."""

    best: Floats  # (R, core)
    gain: Floats
    core: Ints  # (W + 1, nodes)
    past_best: Floats  # (2, W + 1, nodes)
    past_gain: Floats
    price: Floats  # (U,)
    timed: TimedGap  # before a deadline, in place of the rest


#: Switches the estimate of the gap off.
NO_GAP = GapTables(
    _NONE, _NONE, _NOWHERE, np.zeros((2, 0, 0)), np.zeros((2, 0, 0)), np.zeros(0), NO_TIMED_GAP
)  # fmt: skip


@uncounted
def lagrangian_loss(
    gap: GapTables, node: Ints, flight: Ints, active: Ints, count: Ints, n: int, price: float, chosen: int
) -> float:
    """sum over all tasks of what the arrival could add at best, minus A - lam of the label given; lam if none was."""
    loss = price if chosen < 0 else 0.0
    row = min(n, gap.best.shape[0]) - 1
    more = 0 if n == 1 else 1
    for g in range(active[-1]):
        s = active[g]
        w, i = flight[s], node[s]
        c = gap.core[w, i]
        best = gap.best[row, c] if c >= 0 else gap.past_best[more, w, i]
        loss += count[s] * best
        if s == chosen:
            loss -= (gap.gain[row, c] if c >= 0 else gap.past_gain[more, w, i]) - price
    return loss
