"""Forward sweep: the occupation measure of a single-task policy, and a policy that keeps to one task per arrival.

Notation of ``backward``; x(n, k, s) is the mass, z the part of it that sees the next arrival,

    z = x r / q,    x -> child with chance mu w / q        (infinite horizon: each event at once)

and with a finite horizon each of them at layer k with chance ``now``, at layer k-1 with chance ``late``; with chance
``hold`` x moves to layer k-1 without an event. What reaches layer 0 is over.

``mode`` 0 follows the smoothed decisions of the prices; its y[l] = expected tasks given to arrival l is the gradient.
``mode`` 1 makes a feasible policy: never more than one task per arrival in expectation. It first grants the smoothed
decisions, scaled down if they are too many, and gives what is left to the largest advantage V(w+1) - V(w).
``mode`` 2 gives everything by the largest advantage. States on the edge take no more labels, and none is given that
adds less than its ``cost``.
Guarantee: modes 1 and 2 return the value of a feasible policy of the relaxed problem, a lower bound on its optimum.
Cost: as ``backward``, and a sort of the occupied states per arrival in modes 1 and 2.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nextlabel.arrays import Floats
from nextlabel.kernels.backward import smooth_gain, step_chances
from nextlabel.kernels.inputs import Grid, Lattices, Steps
from nextlabel.kernels.jit import jit

#: Mass below this is dropped.
DUST = 1e-40


class Measure(NamedTuple):
    """The occupation measure of a policy."""

    x: Floats  # (B, layers, states) mass at the start and, on return, at n = 0
    given: Floats  # (U,) expected tasks given to arrival l
    come: Floats  # (U,) P(arrival l comes), given by the caller
    act: Floats  # (B, U, states) mass that is given a label by arrival l; empty if it is not wanted


@jit
def forward(
    lattices: Lattices, grid: Grid, steps: Steps, counts: Floats, lam: Floats, cost: float, eps: float, mode: int,
    V: Floats, out: Measure,
) -> float:  # fmt: skip
    """Run n = U .. 1 from the mass ``out.x``; return the reward of what the horizon cut off (finite) before n = 0."""
    first, child, reward, prob = lattices.first, lattices.child, lattices.reward, lattices.prob
    C, W, off = grid.C, grid.W, grid.off
    finite, mu, r, h = steps.finite, steps.mu, steps.r, steps.h
    x, given, come, act = out.x, out.given, out.come, out.act
    B, layers, states = x.shape
    U = lam.shape[0]
    J = prob.shape[2]
    z = np.zeros((B, layers, states))
    a = np.zeros((B, layers, states))
    A = np.zeros((B, layers, states))
    lost = 0.0
    for ell in range(U):
        n = U - ell
        wanted = 0.0
        for b in range(B):
            for k in range(layers - 1, -1, -1):
                for w in range(W, -1, -1):
                    o = off[w]
                    busy = mu * w
                    q = r[k] + busy
                    now, late, hold = step_chances(q, h[k]) if finite else (1.0, 0.0, 0.0)
                    over = finite and k == 0
                    open_ = first[C - w] if w < W else 0
                    for i in range(first[C - w + 1]):
                        m = x[b, k, o + i]
                        sees = z[b, k, o + i] if finite and k < layers - 1 else 0.0
                        if finite and k > 0:
                            z[b, k - 1, o + i] = 0.0
                        if m < DUST and sees < DUST:  # denormal masses would slow the sweep tenfold
                            z[b, k, o + i] = 0.0
                            a[b, k, o + i] = 0.0
                            continue
                        if over:
                            lost += counts[b] * m * reward[b, i]
                        else:
                            if q > 0.0:
                                sees += now * m * r[k] / q
                                for j in range(J if w > 0 else 0):
                                    x[b, k, off[w - 1] + child[i, j]] += now * m * busy / q * prob[b, i, j]
                            if finite:
                                x[b, k - 1, o + i] += hold * m
                                if q > 0.0:
                                    z[b, k - 1, o + i] = late * m * r[k] / q
                                    for j in range(J if w > 0 else 0):
                                        x[b, k - 1, off[w - 1] + child[i, j]] += late * m * busy / q * prob[b, i, j]
                        z[b, k, o + i] = sees
                        share = 0.0
                        if i < open_:
                            A[b, k, o + i] = V[b, n - 1, k, off[w + 1] + i] - V[b, n - 1, k, o + i]
                            if mode < 2:
                                _, share = smooth_gain(A[b, k, o + i] - lam[ell], eps)
                        else:
                            A[b, k, o + i] = -1.0
                        a[b, k, o + i] = share * z[b, k, o + i]
                        wanted += counts[b] * a[b, k, o + i]
        if mode > 0:
            wanted = _fill(counts, come[ell], wanted, cost, z, A, a)
        given[ell] = wanted
        for b in range(B):
            for k in range(layers):
                for s in range(states):
                    x[b, k, s] = z[b, k, s]
                for w in range(W):
                    for i in range(first[C - w]):
                        m = a[b, k, off[w] + i]
                        if m > 0.0:
                            x[b, k, off[w] + i] -= m
                            x[b, k, off[w + 1] + i] += m
                            if act.shape[0] > 0:
                                act[b, ell, off[w] + i] += m
    return lost


@jit
def _fill(counts: Floats, room: float, wanted: float, cost: float, z: Floats, A: Floats, a: Floats) -> float:
    """Bring sum of counts * a to ``room`` (the chance that the arrival comes), or as near as pays; return it."""
    B, layers, states = z.shape
    if wanted > room:
        scale = room / wanted
        for b in range(B):
            for k in range(layers):
                for s in range(states):
                    a[b, k, s] *= scale
        return room
    size = 0
    for b in range(B):
        for k in range(layers):
            for s in range(states):
                if z[b, k, s] > a[b, k, s] and A[b, k, s] > cost:
                    size += 1
    key = np.empty(size)
    where = np.empty(size, dtype=np.int64)
    size = 0
    for b in range(B):
        for k in range(layers):
            for s in range(states):
                if z[b, k, s] > a[b, k, s] and A[b, k, s] > cost:
                    key[size] = -A[b, k, s]
                    where[size] = (b * layers + k) * states + s
                    size += 1
    for g in np.argsort(key, kind="mergesort"):
        flat = where[g]
        s = flat % states
        k = (flat // states) % layers
        b = flat // (states * layers)
        free = z[b, k, s] - a[b, k, s]
        take = min(free, (room - wanted) / counts[b])
        a[b, k, s] += take
        wanted += counts[b] * take
        if room - wanted <= 1e-15 * room:
            break
    return wanted
