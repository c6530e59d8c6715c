"""Prices by an interior-point method on the whole linear program: for many types of workers, to the last digits.

====== ======= ============ ==================================================================
symbol code    shape        meaning
====== ======= ============ ==================================================================
z      z       (M+1+S,)     nu, lam, V: kept strictly feasible, so that every iterate is a bound
s, x   s, x    (rows,)      slacks and multipliers (``kernels.crowd_interior``)
mu     mu      ()           mean of s x: what is left to gain, per row
====== ======= ============ ==================================================================

    min  sum_i x_0(i) V_i + lam U + sum_m nu_m N_m
    subject to    V >= R,    V >= T_m V - lam - nu_m - cost_m for every m,    lam >= 0,    nu >= 0

Mehrotra's predictor and corrector. The multipliers of the labels are tasks that take them: state by state, their shares
are a plan that draws the next type by lot, whose value is the lower bound. SciPy's HiGHS, given the same program, takes
0.3 to 7 times as long: twice from 64 types on where labels are plenty, seven times with three answers, which is why
this method stays.
Guarantee: the plan is feasible for the relaxation on the grid, so that value and lower bound are proved apart from it.
Cost: 40 to 80 iterations, whatever the number of types; see ``kernels.crowd_interior`` for one of them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nextlabel.arrays import Floats
from nextlabel.kernels.crowd_bellman import push
from nextlabel.kernels.crowd_interior import (
    directions,
    factor,
    longest_step,
    normal_matrix,
    slacks,
    solve_factored,
    transposed,
)
from nextlabel.solve.crowd.cutting_planes import Limits
from nextlabel.solve.crowd.single_task import MOST_LABELS, SingleTask

ITERATIONS = 150
#: Every state begins with so many tasks at least: the values of states that nobody enters would be free.
EVERYWHERE = 1e-10
#: The share of the way to the boundary that is taken, and the share of a plan below which a type is not wanted.
BOUNDARY, LEAST_SHARE = 0.995, 1e-9
#: Products s x are drawn to within this factor of their target, in at most so many corrections of a step, each of which
#: looks this much farther and must gain at least a tenth of that.
SPREAD, CORRECTIONS, FARTHER = 10.0, 3, 0.3
#: Labels that a type or the budget can give are at most this many per task: more are never wanted.
PLENTY = 1e3


class Solved(NamedTuple):
    """Prices, values near the optimum, and a plan per task: what it is worth and its labels by type."""

    prices: Floats
    V: Floats
    lower: float
    used: Floats


class _Step(NamedTuple):
    """A direction of z, s and x, and how far it can be gone."""

    z: Floats
    s: Floats
    x: Floats
    far_s: float
    far_x: float


def solve_interior(task: SingleTask, limits: Limits, tolerance: float) -> Solved:
    """Prices whose value is within about ``tolerance`` of the least, per task."""
    M, S = len(task.channel), task.states
    rows = S + M * S + M + 1
    b = np.concatenate([np.minimum(limits.N, PLENTY), [min(limits.U, PLENTY)], task.mass + EVERYWHERE])
    top = float(task.ceiling.max())
    room = max(1e-3, top - float(task.chain.stop.min()))
    z = best = np.concatenate([np.full(M, 0.04 * room), [0.2 * room], np.full(S, top + 0.1 * room)])
    x = flow = np.full(rows, 1.0 / (1 + M))
    s, out = np.empty(rows), np.empty(len(z))
    H = np.empty((len(z), len(z)))
    slacks(task.chain, limits.cost, z, s)
    for _ in range(ITERATIONS):
        transposed(task.chain, x, out)
        off = out - b
        left = float((x * s).sum())
        if left <= 0.1 * tolerance and np.abs(off).max() <= tolerance:
            break
        normal_matrix(task.chain, x / s, H)
        factor(H)
        ahead = _direction(task, H, off, x, s, x * s)
        gained = float(((x + ahead.far_x * ahead.x) * (s + ahead.far_s * ahead.s)).sum())
        centre = (gained / left) ** 3 * left / rows
        products = x * s - centre + ahead.x * ahead.s
        step = _direction(task, H, off, x, s, products)
        for _correction in range(CORRECTIONS):
            products, better = _corrected(task, H, off, x, s, products, step, centre)
            if better.far_s + better.far_x < step.far_s + step.far_x + 0.1 * FARTHER:
                break
            step = better
        z = z + min(1.0, BOUNDARY * step.far_s) * step.z
        x = x + min(1.0, BOUNDARY * step.far_x) * step.x
        slacks(task.chain, limits.cost, z, s)
        if not (s.min() > 0.0 and np.isfinite(x).all()):  # no digits left
            break
        best, flow = z, x
    return _result(task, limits, best, flow)


def _direction(task: SingleTask, F: Floats, off: Floats, x: Floats, s: Floats, complementarity: Floats) -> _Step:
    """Newton's step towards A' x = b and s x + complementarity = s x; ``F`` is the factor of A' diag(x/s) A."""
    dz, ds = np.empty(len(off)), np.empty(len(s))
    transposed(task.chain, complementarity / s, dz)
    dz = off - dz
    solve_factored(F, dz)
    directions(task.chain, dz, ds)
    dx = -(complementarity + x * ds) / s
    return _Step(dz, ds, dx, longest_step(s, ds), longest_step(x, dx))


def _corrected(
    task: SingleTask, F: Floats, off: Floats, x: Floats, s: Floats, products: Floats, step: _Step, centre: float
) -> tuple[Floats, _Step]:
    """The step with products that lie far off drawn back towards the centre (Gondzio)."""
    far_s, far_x = min(1.0, step.far_s + FARTHER), min(1.0, step.far_x + FARTHER)
    reached = (x + far_x * step.x) * (s + far_s * step.s)
    back = np.maximum(np.clip(reached, centre / SPREAD, SPREAD * centre) - reached, -SPREAD * centre)
    products = products - back
    return products, _direction(task, F, off, x, s, products)


def _result(task: SingleTask, limits: Limits, z: Floats, x: Floats) -> Solved:
    """Prices, and the plan by lot with its value once it is scaled down to what is there."""
    M, S = len(task.channel), task.states
    prices = np.concatenate([z[M : M + 1], np.where(np.isfinite(limits.N), z[:M], 0.0)])
    flow = x[: S + M * S].reshape(M + 1, S)
    share = flow[1:] / flow.sum(axis=0)
    share[share < LEAST_SHARE] = 0.0
    used = np.zeros(M)
    worth = push(task.chain, share, task.mass, 1e-13, MOST_LABELS, used) - float((limits.cost * used).sum())
    # A little more than there is: the rest of the tasks stop at once.
    kept = min(1.0, float((limits.N / np.maximum(used, 1e-300)).min()), limits.U / max(float(used.sum()), 1e-300))
    lower = kept * worth + (1.0 - kept) * task.at_once()
    return Solved(np.maximum(prices, 0.0), z[M + 1 :].copy(), lower, kept * used)
