"""One task before a deadline as a chain of second order: its value at given prices, and its occupation measure.

========= ========== ================= ================================================================
symbol    code       shape             meaning
========= ========== ================= ================================================================
(i, w)    s          --                state off[w] + i: belief node i, w labels in flight
n         n          --                arrivals left
tau_k     k          --                time left
lam_n     lam        (U,)              price of the arrival that finds n left: lam[U - n]
r, h      r, h       (layers,)         arrival rate and length of the step that ends in layer k
V         V          (B, U + 1, layers, states)   value
x, z      x, z       (B, layers, states)          mass, and the part of it that sees the next arrival
========= ========== ================= ================================================================

With q = r + mu w, M = max{V(i,w,n-1), V(i,w+1,n-1) - lam_n}, E = sum_j p_j V(child_j, w-1, n), G = (r M + mu w E) / q

    V_k = now G_k + late G_{k-1} + hold V_{k-1},   V_0 = R.

The first event within a step of length h comes at time u with density q e^{-q u}, and G is taken as linear between the
layers: hold = e^{-q h}, late = (1 - hold) / (q h) - hold, now = 1 - hold - late. All three are chances: the event is
moved to one end of its step or the other. So the chain can be run forward: of the mass x the part r / q sees the next
arrival, p_j mu w / q moves to child_j, at layer k with chance ``now``, at layer k-1 with chance ``late``; with chance
``hold`` x moves to layer k-1 without an event. What reaches layer 0 is over. States on the edge (level + w = C, or
w = W) are worth what the caller says: the no-delay continuation at the lowest price makes V an upper bound.

With eps > 0 the max is smoothed: max{0, A} becomes max over t in [0, 1] of t A - eps t^2, at most eps below it, whose
derivative t = clip(A / (2 eps), 0, 1) is a randomised decision. Many tasks that wait take a label with a small chance
each; with t near 0 they do so where A is near 0 too, so that next to nothing is lost.
Guarantee: error O(h^2) (``horizon`` is sharper); ``chain_forward`` in modes 1 and 2 returns the value of a feasible
policy of the relaxed problem on the chain. Cost: about (4 + 2 J) flops and 3 reads per state, arrival and layer in each
direction, and a sort of the occupied states per arrival in modes 1 and 2.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from nextlabel.arrays import Floats
from nextlabel.kernels.inputs import Edge, Grid, Lattices, Steps
from nextlabel.kernels.jit import jit

#: Mass below this is dropped: denormal numbers would slow the sweep tenfold.
DUST = 1e-40


class Measure(NamedTuple):
    """The occupation measure of a policy."""

    x: Floats  # (B, layers, states) mass at the start and, on return, at n = 0
    given: Floats  # (U,) expected tasks given to arrival l
    come: Floats  # (U,) P(arrival l comes), given by the caller


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
def chain_backward(
    lattices: Lattices, grid: Grid, steps: Steps, lam: Floats, eps: float, edge: Edge, V: Floats
) -> None:
    """Fill V for n = 0 .. U."""
    first, child, reward, prob = lattices.first, lattices.child, lattices.reward, lattices.prob
    C, W, off = grid.C, grid.W, grid.off
    B, _, layers, states = V.shape
    U, J = lam.shape[0], prob.shape[2]
    left = np.zeros((2, states))  # M and E of the layer before
    for n in range(U + 1):
        price = lam[U - n] if n > 0 else 0.0
        slot = min(max(n, 1), edge.value.shape[1]) - 1
        for b in range(B):
            for k in range(layers):
                rate = 0.0 if n == 0 else steps.r[k]
                now_V, last_V = V[b, n, k], V[b, max(n - 1, 0), k]
                for w in range(W + 1):
                    o, up, down = off[w], off[w + 1], off[w - 1] if w > 0 else 0
                    busy = steps.mu * w
                    q = rate + busy
                    now, late, hold = step_chances(q, steps.h[k])
                    whole = first[C - w + 1]
                    open_ = first[C - w] if w < W else 0
                    inner = whole if n == 0 or k == 0 else open_
                    for i in range(inner):
                        M, E = 0.0, 0.0
                        if n > 0:
                            M = last_V[o + i]
                            if i < open_:
                                M += smooth_gain(last_V[up + i] - price - M, eps)[0]
                        for j in range(J if w > 0 else 0):
                            E += prob[b, i, j] * now_V[down + child[i, j]]
                        v = reward[b, i]
                        if k > 0:
                            v = hold * V[b, n, k - 1, o + i]
                            if q > 0.0:
                                v += now * ((rate * M + busy * E) / q)
                                v += late * ((rate * left[0, o + i] + busy * left[1, o + i]) / q)
                        left[0, o + i], left[1, o + i] = M, E
                        now_V[o + i] = v
                    for i in range(inner, whole):
                        now_V[o + i] = edge.value[b, slot, o + i]


@jit
def chain_forward(
    lattices: Lattices, grid: Grid, steps: Steps, counts: Floats, lam: Floats, cost: float, eps: float, mode: int,
    V: Floats, out: Measure,
) -> float:  # fmt: skip
    """Run n = U .. 1 from the mass ``out.x``; return the reward of what the horizon cut off before n = 0.

    ``mode`` 0 follows the smoothed decisions of the prices; its expected tasks given to arrival l are the gradient.
    ``mode`` 1 never gives more than one task per arrival in expectation. It first grants the smoothed decisions, scaled
    down if they are too many, and gives what is left to the largest advantage V(w+1) - V(w). ``mode`` 2 gives all by
    the largest advantage. States on the edge take no more labels, and none is given that adds less than its ``cost``.
    """
    first, child, reward, prob = lattices.first, lattices.child, lattices.reward, lattices.prob
    C, W, off = grid.C, grid.W, grid.off
    mu, r, h = steps.mu, steps.r, steps.h
    x, given, come = out
    B, layers, states = x.shape
    U, J = lam.shape[0], prob.shape[2]
    z, a, A = np.zeros((B, layers, states)), np.zeros((B, layers, states)), np.zeros((B, layers, states))
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
                    now, late, hold = step_chances(q, h[k])
                    open_ = first[C - w] if w < W else 0
                    for i in range(first[C - w + 1]):
                        m = x[b, k, o + i]
                        sees = z[b, k, o + i] if k < layers - 1 else 0.0
                        if k > 0:
                            z[b, k - 1, o + i] = 0.0
                        if m < DUST and sees < DUST:
                            z[b, k, o + i] = 0.0
                            a[b, k, o + i] = 0.0
                            continue
                        if k == 0:
                            lost += counts[b] * m * reward[b, i]
                        else:
                            x[b, k - 1, o + i] += hold * m
                            if q > 0.0:
                                sees += now * m * r[k] / q
                                z[b, k - 1, o + i] = late * m * r[k] / q
                                for j in range(J if w > 0 else 0):
                                    c = off[w - 1] + child[i, j]
                                    x[b, k, c] += now * m * busy / q * prob[b, i, j]
                                    x[b, k - 1, c] += late * m * busy / q * prob[b, i, j]
                        z[b, k, o + i] = sees
                        share = 0.0
                        A[b, k, o + i] = -1.0
                        if i < open_:
                            A[b, k, o + i] = V[b, n - 1, k, off[w + 1] + i] - V[b, n - 1, k, o + i]
                            if mode < 2:
                                _, share = smooth_gain(A[b, k, o + i] - lam[ell], eps)
                        a[b, k, o + i] = share * z[b, k, o + i]
                        wanted += counts[b] * a[b, k, o + i]
        if mode > 0:
            wanted = _fill(counts, come[ell], wanted, cost, z, A, a)
        given[ell] = wanted
        x[:] = z
        for b in range(B):
            for k in range(layers):
                for w in range(W):
                    for i in range(first[C - w]):
                        m = a[b, k, off[w] + i]
                        if m > 0.0:
                            x[b, k, off[w] + i] -= m
                            x[b, k, off[w + 1] + i] += m
    return lost


@jit
def _fill(counts: Floats, room: float, wanted: float, cost: float, z: Floats, A: Floats, a: Floats) -> float:
    """Bring sum of counts * a to ``room`` (the chance that the arrival comes), or as near as pays; return it."""
    B, layers, states = z.shape
    if wanted > room:
        a *= room / wanted
        return room
    key = np.empty(z.size)
    where = np.empty(z.size, dtype=np.int64)
    size = 0
    for b in range(B):
        for k in range(layers):
            for s in range(states):
                if z[b, k, s] > a[b, k, s] and A[b, k, s] > cost:
                    key[size] = -A[b, k, s]
                    where[size] = (b * layers + k) * states + s
                    size += 1
    for g in np.argsort(key[:size], kind="mergesort"):
        flat = where[g]
        b, k, s = flat // (states * layers), (flat // states) % layers, flat % states
        take = min(z[b, k, s] - a[b, k, s], (room - wanted) / counts[b])
        a[b, k, s] += take
        wanted += counts[b] * take
        if room - wanted <= 1e-15 * room:
            break
    return wanted
