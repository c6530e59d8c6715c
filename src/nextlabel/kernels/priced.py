"""One task at a price for every arrival, or batch of arrivals: its value, and its occupation measure.

========= ========== ============================= =========================================================
symbol    code       shape                         meaning
========= ========== ============================= =========================================================
m_b       size       (M,)                          arrivals of batch b, or P(arrival b comes); the next one first
left      left       (M,)                          arrivals left before batch b, its own included
x_b       busy       (M,)                          odds that a label in flight comes in before the batch
lam_b     lam        (M,)                          price of a label in batch b
r, h      r, h       (layers,)                     arrival rate and length of the time step that ends in layer k
V         V          (B, M + 1, layers, states)    value; row n has n batches left
M         best       (states,)                     value once the batch has been used: as many labels as pay
x, z      x, z       (B, layers, states)           mass, and the part of it that sees the next batch
========= ========== ============================= =========================================================

    M(i,w) = max{ V_{n-1}(i,w), M(i,w+1) - lam }                      (one arrival: V_{n-1}(i,w+1) in place of M)
    G(i,w) = stay M(i,w) + (1 - stay) sum_j p_j V_n(child_j, w-1).

*Without a deadline* there is one layer, V_n = G, stay = 1 / (1 + x w), and V_0 = E[R after the labels that come in].
x = (1 + mu/r)^m - 1 are the true odds of one label while m workers come at rate r. Several labels in flight come in as
within one exponential time: an error of second order in x.

*With one* batches are single arrivals, stay = r / (r + mu w), and the layers are times left. The first event within a
step of length h comes at time u with density q e^{-q u}, q = r + mu w, and G is taken as linear between the layers:

    V_k = now G_k + late G_{k-1} + hold V_{k-1},   V_0 = R,   hold = e^{-q h},  late = (1 - hold) / (q h) - hold,
    now = 1 - hold - late.

All three are chances: the event is moved to one end of its step or the other. So the chain can be run forward. What
reaches layer 0 is over. States on the edge (level + w = C, or w = W) are worth what the caller says: the no-delay
continuation at the lowest price makes V an upper bound.

With eps > 0 the max is smoothed: max{0, A} becomes max over t in [0, 1] of t A - eps t^2, at most eps below it, whose
derivative t = clip(A / (2 eps), 0, 1) is a randomised decision, which ``forward`` follows. Many tasks that wait take a
label with a small chance each; with t near 0 they do so where A is near 0 too, so that next to nothing is lost.
Guarantee: single arrivals without a deadline: the numbers of ``kernels.sweep``; larger batches: those of the problem in
which the workers of a batch come together; with a deadline an error O(h^2) (``horizon`` is sharper). A feasible forward
run earns the value of a feasible policy of the relaxed problem, as it is modelled here.
Cost: 12 + 4 J flops for each state, batch and layer in each direction, one to three nanoseconds.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.kernels.inputs import Edge, Grid, Lattices, Steps
from nextlabel.kernels.jit import jit

#: Mass below this is dropped: denormal numbers would slow the sweep tenfold.
DUST = 1e-40
#: Prices tried for one batch to be given as many labels as it has workers.
MOVES = 24


class Batches(NamedTuple):
    """Batches of arrivals, the next one first; ``last`` is x after the last of them (inf: every label comes in)."""

    size: Floats
    left: Ints
    busy: Floats
    last: float


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
def event_chances(batches: Batches, steps: Steps, at: int, k: int, w: int) -> tuple[float, float, float, float]:
    """stay, now, late and hold before batch ``at`` (-1: after the last one) in layer k with w labels in flight."""
    if not steps.finite:
        x = batches.busy[at] if at >= 0 else batches.last
        return 1.0 / (1.0 + x * w) if w > 0 else 1.0, 1.0, 0.0, 0.0
    rate = steps.r[k] if at >= 0 else 0.0
    q = rate + steps.mu * w
    now, late, hold = step_chances(q, steps.h[k])
    return rate / q if q > 0.0 else 1.0, now, late, hold


@jit
def decide(
    first: Ints, grid: Grid, V: Floats, lam: float, eps: float, several: bool, best: Floats, share: Floats
) -> None:
    """``best`` = M, and ``share`` = the part of each state's mass that takes a label, from V with one batch less."""
    C, W, off = grid.C, grid.W, grid.off
    for s in range(off[W], off[W + 1]):
        best[s], share[s] = V[s], 0.0
    wide = 1.0 / (2.0 * eps) if eps > 0.0 else 0.0
    for w in range(W - 1, -1, -1):
        o, open_, whole = off[w], first[C - w], first[C - w + 1]
        here, take, now = best[o : o + whole], share[o : o + whole], V[o : o + whole]
        above = best[off[w + 1] : off[w + 1] + open_] if several else V[off[w + 1] : off[w + 1] + open_]
        if eps > 0.0:
            for i in range(open_):
                A = above[i] - lam - now[i]
                t = min(max(A * wide, 0.0), 1.0)
                take[i] = t
                here[i] = now[i] + t * (A - eps * t)
        else:
            for i in range(open_):
                A = above[i] - lam - now[i]
                take[i] = 1.0 if A >= 0.0 else 0.0
                here[i] = now[i] + max(A, 0.0)
        for i in range(open_, whole):
            here[i], take[i] = now[i], 0.0


@jit
def come_in(
    lattices: Lattices, b: int, grid: Grid, batches: Batches, steps: Steps, at: int, k: int, best: Floats,
    before: Floats, last: Floats, V: Floats,
) -> None:  # fmt: skip
    """V off the edge from M. With a deadline ``last`` (2, states) has M and E of the layer before, ``before`` its V."""
    first, child, prob = lattices.first, lattices.child, lattices.prob
    C, W, off = grid.C, grid.W, grid.off
    J = prob.shape[2]
    mean = np.zeros(first[C + 1])
    for w in range(W + 1):
        o, whole = off[w], first[C - w + 1]
        stay, now, late, hold = event_chances(batches, steps, at, k, w)
        go = 1.0 - stay
        below = V[off[w - 1] : off[w]] if w > 0 else V[:0]
        if w > 0 and J == 2:
            for i in range(whole):
                mean[i] = prob[b, i, 0] * below[child[i, 0]] + prob[b, i, 1] * below[child[i, 1]]
        elif w > 0:
            for i in range(whole):
                mean[i] = 0.0
                for j in range(J):
                    mean[i] += prob[b, i, j] * below[child[i, j]]
        for i in range(whole):
            V[o + i] = stay * best[o + i] + go * mean[i]
        if steps.finite:
            for i in range(whole):
                s = o + i
                if k > 0:
                    V[s] = hold * before[s] + now * V[s] + late * (stay * last[0, s] + go * last[1, s])
                else:
                    V[s] = lattices.reward[b, i]
                last[0, s], last[1, s] = best[s], mean[i]


@jit
def backward(
    lattices: Lattices, grid: Grid, batches: Batches, steps: Steps, lam: Floats, eps: float, edge: Edge, V: Floats
) -> None:
    """Fill V for 0 .. M batches left; states on the edge are worth what ``edge`` says as long as arrivals are left.

    Where that is -inf they are offered no label.
    """
    B, _, layers, states = V.shape
    M = lam.shape[0]
    best, share, last = np.empty(states), np.empty(states), np.zeros((2, states))
    for b in range(B):
        for n in range(M + 1):
            at = M - n if n > 0 else -1
            for k in range(layers):
                if n > 0:
                    decide(lattices.first, grid, V[b, n - 1, k], lam[at], eps, batches.size[at] > 1.0, best, share)
                else:
                    best[:] = lattices.reward[b][grid.node]
                come_in(lattices, b, grid, batches, steps, at, k, best, V[b, n, max(k - 1, 0)], last, V[b, n, k])
                if n == 0 or (steps.finite and k == 0):
                    continue
                worth = edge.value[b, min(batches.left[at], edge.value.shape[1]) - 1]
                for s in range(states):
                    if grid.up[s] < 0 and worth[s] > -np.inf:
                        V[b, n, k, s] = worth[s]


class Plan(NamedTuple):
    """Where the tasks are and what each batch is given."""

    x: Floats  # (B, layers, states) tasks in each state at the start and, on return, after the last batch
    given: Floats  # (M,) expected labels of each batch
    act: Floats  # (B, M, states) tasks that take a label; empty if it is not wanted; without a deadline


@jit
def take(first: Ints, grid: Grid, V: Floats, z: Floats, lam: float, eps: float, several: bool, flow: Floats) -> float:
    """``flow`` = the mass of each state that takes a label at price lam, by V with one batch less; return its sum."""
    B, layers, states = z.shape
    best, share = np.empty(states), np.empty(states)
    total = 0.0
    for b in range(B):
        for k in range(layers):
            decide(first, grid, V[b, k], lam, eps, several, best, share)
            for s in range(states):
                if grid.up[s] >= 0:
                    m, w = z[b, k, s], grid.flight[s]
                    if several and w > 0:
                        m += flow[b, k, grid.off[w - 1] + grid.node[s]]
                    m *= share[s]
                    flow[b, k, s] = m
                    total += m
    return total


@jit
def take_all(
    first: Ints, grid: Grid, V: Floats, z: Floats, lam: float, cost: float, eps: float, room: float, wanted: float,
    several: bool, flow: Floats,
) -> float:  # fmt: skip
    """``take`` at the price, from ``cost`` up, at which no more than ``room`` labels are taken, and hardly fewer."""
    low, high, step = lam, lam, eps
    most, least = wanted, wanted
    while least > room:
        low, most = high, least
        high += step
        step *= 2.0
        least = take(first, grid, V, z, high, eps, several, flow)
    while most < room and low > cost:
        high, least = low, most
        low = max(low - step, cost)
        step *= 2.0
        most = take(first, grid, V, z, low, eps, several, flow)
    if most <= room:
        return take(first, grid, V, z, low, eps, several, flow)
    for trial in range(MOVES):
        if room - least <= 1e-7 * room:
            break
        share = (most - room) / (most - least) if trial % 2 == 0 else 0.5
        price = low + min(max(share, 0.01), 0.99) * (high - low)
        wanted = take(first, grid, V, z, price, eps, several, flow)
        if wanted > room:
            low, most = price, wanted
        else:
            high, least = price, wanted
    return take(first, grid, V, z, high, eps, several, flow)


@jit
def arrive(lattices: Lattices, grid: Grid, batches: Batches, steps: Steps, at: int, x: Floats, z: Floats) -> float:
    """Move the mass x to where it sees batch ``at``, z; return the reward of what the deadline cuts off before."""
    first, child, prob = lattices.first, lattices.child, lattices.prob
    C, W, off = grid.C, grid.W, grid.off
    B, layers, _ = x.shape
    J = prob.shape[2]
    z[:] = 0.0
    lost = 0.0
    for b in range(B):
        for k in range(layers - 1, -1, -1):
            for w in range(W, -1, -1):
                stay, now, late, hold = event_chances(batches, steps, at, k, w)
                o, down = off[w], off[w - 1] if w > 0 else 0
                for i in range(first[C - w + 1]):
                    m = x[b, k, o + i]
                    if m < DUST:
                        continue
                    if steps.finite and k == 0:
                        lost += m * lattices.reward[b, i]
                        continue
                    here = now * m
                    seen = stay * here
                    z[b, k, o + i] += seen
                    for j in range(J if w > 0 else 0):
                        x[b, k, down + child[i, j]] += (here - seen) * prob[b, i, j]
                    if steps.finite:
                        there = late * m
                        seen = stay * there
                        z[b, k - 1, o + i] += seen
                        x[b, k - 1, o + i] += hold * m
                        for j in range(J if w > 0 else 0):
                            x[b, k - 1, down + child[i, j]] += (there - seen) * prob[b, i, j]
    return lost


@jit
def forward(
    lattices: Lattices, grid: Grid, batches: Batches, steps: Steps, lam: Floats, cost: float, eps: float,
    feasible: bool, V: Floats, out: Plan,
) -> float:  # fmt: skip
    """Follow the decisions of V from the mass ``out.x`` on; return the reward of what the deadline cut off on the way.

    ``feasible``: no batch is given more labels than it has workers, in expectation. Without a deadline the price is
    moved until the smoothed decisions are as many as that; otherwise they are scaled down if they are too many. What is
    left goes to the largest advantage V(w+1) - V(w), if that is more than the cost of a label.
    """
    first = lattices.first
    x, given, act = out
    B, layers, _ = x.shape
    M = lam.shape[0]
    z, flow = np.zeros(x.shape), np.zeros(x.shape)
    lost = 0.0
    for at in range(M):
        several, room = batches.size[at] > 1.0, batches.size[at]
        lost += arrive(lattices, grid, batches, steps, at, x, z)
        after = V[:, M - at - 1]
        wanted = take(first, grid, after, z, lam[at], eps, several, flow)
        if feasible and eps > 0.0 and not steps.finite:
            wanted = take_all(first, grid, after, z, lam[at], cost, eps, room, wanted, several, flow)
        if feasible and wanted > room:
            flow *= room / wanted
            wanted = room
        z -= flow
        x[:] = z
        for b in range(B):
            for k in range(layers):
                for s in range(x.shape[2]):
                    if grid.up[s] >= 0:
                        x[b, k, grid.up[s]] += flow[b, k, s]
        if act.shape[0] > 0:
            act[:, at] = flow[:, 0]
        if feasible and wanted < room:
            # An arrival gives a task one label; of a batch of them a task may have several.
            wanted = fill_up(grid, room, wanted, cost, after, x.copy() if several else z, at, out)
        given[at] = wanted
    return lost


@jit
def fill_up(grid: Grid, room: float, wanted: float, cost: float, V: Floats, free: Floats, at: int, out: Plan) -> float:
    """Give the labels that are left to the largest advantages among the ``free`` mass; return the labels in all."""
    x, act = out.x, out.act
    B, layers, states = x.shape
    key, where = np.empty(x.size), np.empty(x.size, dtype=np.int64)
    size = 0
    for b in range(B):
        for k in range(layers):
            for s in range(states):
                gain = V[b, k, grid.up[s]] - V[b, k, s] if grid.up[s] >= 0 else cost
                if free[b, k, s] > 0.0 and gain > cost:
                    key[size] = -gain
                    where[size] = (b * layers + k) * states + s
                    size += 1
    for g in np.argsort(key[:size], kind="mergesort"):
        b, k, s = where[g] // (layers * states), where[g] // states % layers, where[g] % states
        label = min(free[b, k, s], room - wanted)
        x[b, k, s] -= label
        x[b, k, grid.up[s]] += label
        if act.shape[0] > 0:
            act[b, at, s] += label
        wanted += label
        if room - wanted <= 1e-15 * room:
            break
    return wanted
