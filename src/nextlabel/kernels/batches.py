"""Sweeps of the single-task problem over batches of arrivals: a few dozen steps where there are 100,000 arrivals.

========= ========== ================= ================================================================
symbol    code       shape             meaning
========= ========== ================= ================================================================
m_b       size       (M,)              arrivals of batch b, the next one first
left      left       (M,)              arrivals left before batch b, its own included
x_b       busy       (M,)              odds that a label in flight comes in before the batch
lam_b     lam        (M,)              price of a label in batch b
V         V          (B, M+1, states)  value; row k has k batches left
M         best       (states,)         value once the batch has been used: as many labels as pay
========= ========== ================= ================================================================

    M(i,w) = max{ V_{k-1}(i,w), M(i,w+1) - lam }                      (one arrival: V_{k-1}(i,w+1) in place of M)
    V_k(i,w) = [ M(i,w) + x w sum_j p_j V_k(child_j, w-1) ] / (1 + x w),      V_0 = E[R after the labels that come in].

x = (1 + mu/r)^m - 1 are the true odds of one label while m workers come at rate r; with m = 1 everywhere this is
``backward`` without a horizon. Several labels in flight come in as within one exponential time: an error of second
order in x.

The maximum is smoothed as in ``backward``, and in the same way its slope is a randomised decision, which
``batch_forward`` follows: of the mass x that is in a state when the batch comes, ``flow`` takes a label.
Guarantee: for M = U the numbers of ``backward`` and ``forward``; otherwise those of the problem in which the workers of
a batch come together.
Cost: 12 + 4 J flops for each state and batch in each direction, one to three nanoseconds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.kernels.inputs import Edge, Grid, Lattices
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
def come_in(lattices: Lattices, b: int, grid: Grid, x: float, best: Floats, V: Floats) -> None:
    """V off the edge from M; x = inf: all labels come in."""
    first, child, prob = lattices.first, lattices.child, lattices.prob
    C, W, off = grid.C, grid.W, grid.off
    J = prob.shape[2]
    for w in range(W + 1):
        o, whole = off[w], first[C - w + 1]
        stay = 1.0 / (1.0 + x * w) if w > 0 else 1.0
        if w == 0:
            for i in range(whole):
                V[i] = best[i]
            continue
        go = 1.0 - stay
        below = V[off[w - 1] : off[w]]
        if J == 2:
            for i in range(whole):
                mean = prob[b, i, 0] * below[child[i, 0]] + prob[b, i, 1] * below[child[i, 1]]
                V[o + i] = stay * best[o + i] + go * mean
        else:
            for i in range(whole):
                mean = 0.0
                for j in range(J):
                    mean += prob[b, i, j] * below[child[i, j]]
                V[o + i] = stay * best[o + i] + go * mean


@jit
def batch_backward(
    lattices: Lattices, grid: Grid, batches: Batches, lam: Floats, eps: float, edge: Edge, V: Floats
) -> None:
    """Fill V for 0 .. M batches left; states on the edge are worth what ``edge`` says as long as arrivals are left.

    Where that is -inf they are offered no label.
    """
    first, reward = lattices.first, lattices.reward
    C, W, off = grid.C, grid.W, grid.off
    B, _, states = V.shape
    M = lam.shape[0]
    best, share = np.empty(states), np.empty(states)
    for b in range(B):
        for w in range(W + 1):
            for i in range(first[C - w + 1]):
                best[off[w] + i] = reward[b, i]
        come_in(lattices, b, grid, batches.last, best, V[b, 0])
        for k in range(1, M + 1):
            at = M - k
            decide(first, grid, V[b, k - 1], lam[at], eps, batches.size[at] > 1.0, best, share)
            come_in(lattices, b, grid, batches.busy[at], best, V[b, k])
            worth = edge.value[b, min(batches.left[at], edge.value.shape[1]) - 1]
            for w in range(W + 1):
                for s in range(off[w] + (first[C - w] if w < W else 0), off[w + 1]):
                    if worth[s] > -np.inf:
                        V[b, k, s] = worth[s]


class Plan(NamedTuple):
    """Where the tasks are and what each batch is given."""

    x: Floats  # (B, states) tasks in each state at the start and, on return, after the last batch
    given: Floats  # (M,) expected labels of each batch
    act: Floats  # (B, M, states) tasks that take a label; empty if it is not wanted


@jit
def take(first: Ints, grid: Grid, V: Floats, x: Floats, lam: float, eps: float, several: bool, flow: Floats) -> float:
    """``flow`` = the mass of each state that takes a label at price lam, by V with one batch less; return its sum."""
    C, W, off = grid.C, grid.W, grid.off
    B, states = x.shape
    best, share = np.empty(states), np.empty(states)
    total = 0.0
    for b in range(B):
        decide(first, grid, V[b], lam, eps, several, best, share)
        for w in range(W):
            o, under = off[w], off[w - 1] if w > 0 else 0
            for i in range(first[C - w]):
                m = x[b, o + i]
                if several and w > 0:
                    m += flow[b, under + i]
                m *= share[o + i]
                flow[b, o + i] = m
                total += m
    return total


@jit
def take_all(
    first: Ints, grid: Grid, V: Floats, x: Floats, lam: float, cost: float, eps: float, room: float, wanted: float,
    several: bool, flow: Floats,
) -> float:  # fmt: skip
    """``take`` at the price, from ``cost`` up, at which no more than ``room`` labels are taken, and hardly fewer."""
    low, high, step = lam, lam, eps
    most, least = wanted, wanted
    while least > room:
        low, most = high, least
        high += step
        step *= 2.0
        least = take(first, grid, V, x, high, eps, several, flow)
    while most < room and low > cost:
        high, least = low, most
        low = max(low - step, cost)
        step *= 2.0
        most = take(first, grid, V, x, low, eps, several, flow)
    if most <= room:
        return take(first, grid, V, x, low, eps, several, flow)
    for trial in range(MOVES):
        if room - least <= 1e-7 * room:
            break
        share = (most - room) / (most - least) if trial % 2 == 0 else 0.5
        price = low + min(max(share, 0.01), 0.99) * (high - low)
        wanted = take(first, grid, V, x, price, eps, several, flow)
        if wanted > room:
            low, most = price, wanted
        else:
            high, least = price, wanted
    return take(first, grid, V, x, high, eps, several, flow)


@jit
def batch_forward(
    lattices: Lattices, grid: Grid, batches: Batches, lam: Floats, cost: float, eps: float, feasible: bool,
    V: Floats, out: Plan,
) -> None:  # fmt: skip
    """Follow the decisions of V from the mass ``out.x`` on.

    ``feasible``: no batch is given more labels than it has workers, in expectation. The price is moved until the
    smoothed decisions are as many as that; without smoothing they are scaled down if they are too many. What is left
    goes to the largest advantage V(w+1) - V(w), if that is more than the cost of a label.
    """
    first, child, prob = lattices.first, lattices.child, lattices.prob
    C, W, off = grid.C, grid.W, grid.off
    x, given, act = out
    B, states = x.shape
    M, J = lam.shape[0], prob.shape[2]
    flow, free = np.zeros((B, states)), np.zeros((B, states))
    for at in range(M):
        several = batches.size[at] > 1.0
        for b in range(B):
            here = x[b]
            for w in range(W, 0, -1):
                stay = 1.0 / (1.0 + batches.busy[at] * w)
                o, down = off[w], off[w - 1]
                for i in range(first[C - w + 1]):
                    m = here[o + i]
                    if m < DUST:
                        here[o + i] = 0.0
                        continue
                    here[o + i] = stay * m
                    m -= here[o + i]
                    for j in range(J):
                        here[down + child[i, j]] += m * prob[b, i, j]
        after = V[:, M - at - 1]
        wanted = take(first, grid, after, x, lam[at], eps, several, flow)
        if feasible and eps > 0.0:
            wanted = take_all(first, grid, after, x, lam[at], cost, eps, batches.size[at], wanted, several, flow)
        if feasible and wanted > batches.size[at]:
            down_by = batches.size[at] / wanted
            for b in range(B):
                for s in range(states):
                    flow[b, s] *= down_by
            wanted = batches.size[at]
        for b in range(B):
            for s in range(states):
                x[b, s] -= flow[b, s]
                free[b, s] = x[b, s]
            for w in range(W):
                o, up = off[w], off[w + 1]
                for i in range(first[C - w]):
                    m = flow[b, o + i]
                    x[b, up + i] += m
                    if act.shape[0] > 0:
                        act[b, at, o + i] = m
        if feasible and wanted < batches.size[at]:
            # An arrival gives a task one label; of a batch of them a task may have several.
            wanted = fill_up(first, grid, batches.size[at], wanted, cost, after, x.copy() if several else free, at, out)
        given[at] = wanted


@jit
def fill_up(
    first: Ints, grid: Grid, room: float, wanted: float, cost: float, V: Floats, free: Floats, at: int, out: Plan
) -> float:
    """Give the labels that are left to the largest advantages among the ``free`` mass; return the labels in all."""
    C, W, off = grid.C, grid.W, grid.off
    x, act = out.x, out.act
    B, states = x.shape
    key, where = np.empty(B * states), np.empty(B * states, dtype=np.int64)
    found = 0
    for b in range(B):
        for w in range(W):
            for i in range(first[C - w]):
                gain = V[b, off[w + 1] + i] - V[b, off[w] + i]
                if free[b, off[w] + i] > 0.0 and gain > cost:
                    key[found] = -gain
                    where[found] = b * states + off[w] + i
                    found += 1
    for g in np.argsort(key[:found], kind="mergesort"):
        b, s = where[g] // states, where[g] % states
        w = np.searchsorted(off, s, side="right") - 1
        take = min(free[b, s], room - wanted)
        x[b, s] -= take
        x[b, off[w + 1] + s - off[w]] += take
        if act.shape[0] > 0:
            act[b, at, s] += take
        wanted += take
        if room - wanted <= 1e-15 * room:
            break
    return wanted
