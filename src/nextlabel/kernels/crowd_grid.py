"""Beliefs written as points of a set that is fixed, and the chain that every type of worker makes of these points.

======= ======== ============== ==================================================================
symbol  code     shape          meaning
======= ======== ============== ==================================================================
p       points   (G, C)         beliefs at the points: probabilities of the C truths
x_k     --       (C-1,)         p_k + ... + p_{C-1}, k = 1..C-1: 1 >= x_1 >= ... >= x_{C-1} >= 0
t       knots    (n,)           the values that a coordinate x_k takes on the grid, rising from 0 to 1
A       channel  (M, C, Y)      P(a worker of type m says y | truth c)
--      to       (M, G, E)      points that a label of type m at point i leads to
--      weight   (M, G, E)      and with which probability; every row sums to 1
======= ======== ============== ==================================================================

A belief p is written as sum_v w_v q_v + sum_c r_c e_c with w, r >= 0, points and certainty. V is convex, hence
V(p) <= sum_v w_v V(q_v) + sum_c r_c V(e_c).

*A grid of the simplex.* In the coordinates x the simplex is the set of falling sequences, cut into boxes by the knots
and each box into simplices by the order of the fractions within it (Freudenthal, Kuhn). The rest r takes up components
too small to be written as differences of coordinates, and rounding.

*Any set of points* ("sawtooth"), the C corners first. One point q is taken, with the most of it that fits into p,
w = min_c p_c / q_c: that with the largest w times the root of ceiling - R. Where answers can change names without
changing anything, beliefs are sorted.
Guarantee: an upper bound whatever the knots or the set. Cost: C log n + C^2 operations per belief on a grid; M G C
beliefs, each compared with up to G points, for a set.

One task on these points is labelled by a worker of some type, at that type's price, or stops:

======== ========= ========== ==================================================================
symbol   code      shape      meaning
======== ========= ========== ==================================================================
V        V         (G,)       value of a task at each grid point
R        stop      (G,)       value of stopping there
c_m      cost      (M,)       what a label of type m costs, its prices included
a        plan      (G,)       type wanted next at a grid point, -1 to stop
x        mass      (G,)       tasks at each grid point, in expectation
L_m      used      (M,)       labels of type m that the tasks take in all
======== ========= ========== ==================================================================

    (T V)(i) = max{ R(i), max_m -c_m + sum_e weight[m, i, e] V(to[m, i, e]) }

``solve_values`` is modified policy iteration, in place. Whatever it returns, U >= R and U >= T U make U an upper bound
(docs/theory_workers.md), and ``excess`` measures how far that is from true.
Guarantee: none of its own; ``push`` is exact up to rounding for the plan that stops after that many labels.
Cost: M G E operations for each sweep of T and each label of ``push``, G E for each sweep in between.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.kernels.jit import jit


class Chain(NamedTuple):
    """Where labels lead on the grid (``crowd_grid.fill_chain``), and what stopping is worth."""

    to: Ints
    weight: Floats
    stop: Floats


@jit
def best_label(chain: Chain, cost: Floats, V: Floats, i: int) -> tuple[float, int]:
    """(T V)(i) and the type that reaches it, -1 for stopping; of equal types the first."""
    to, weight, stop = chain
    best, wanted = stop[i], -1
    for m in range(to.shape[0]):
        go = -cost[m]
        for e in range(to.shape[2]):
            go += weight[m, i, e] * V[to[m, i, e]]
        if go > best:
            best, wanted = go, m
    return best, wanted


@jit
def settle(chain: Chain, cost: Floats, V: Floats, plan: Ints, tolerance: float, most: int) -> None:
    """Sweeps with the plan as it is, in both directions in turn, until no value moves by more than ``tolerance``."""
    to, weight, stop = chain
    G, E = to.shape[1], to.shape[2]
    for sweep in range(most):
        change = 0.0
        for k in range(G):
            i = k if sweep % 2 == 0 else G - 1 - k
            m = plan[i]
            value = stop[i]
            if m >= 0:
                value = -cost[m]
                for e in range(E):
                    value += weight[m, i, e] * V[to[m, i, e]]
            change = max(change, abs(value - V[i]))
            V[i] = value
        if change <= tolerance:
            break


@jit
def solve_values(chain: Chain, cost: Floats, V: Floats, plan: Ints, tolerance: float, rounds: int, between: int) -> int:
    """Sweeps of T in place, each but the last followed by at most ``between`` with the plan as it is.

    They end when T moves nothing by more than ``tolerance``; return how many there were.
    """
    for k in range(rounds):
        change = 0.0
        for i in range(V.shape[0]):
            best, plan[i] = best_label(chain, cost, V, i)
            change = max(change, abs(best - V[i]))
            V[i] = best
        if change <= tolerance:
            return k + 1
        settle(chain, cost, V, plan, 0.1 * change, between)
    return rounds


@jit
def excess(chain: Chain, cost: Floats, V: Floats) -> float:
    """max over grid points of T V - V, at least 0."""
    worst = 0.0
    for i in range(V.shape[0]):
        worst = max(worst, best_label(chain, cost, V, i)[0] - V[i])
    return worst


@jit
def push(chain: Chain, share: Floats, mass: Floats, tolerance: float, most: int, used: Floats) -> float:
    """Let tasks at ``mass`` take a label of type m at point i with probability share[m, i], until they stop.

    Return what they are worth in the end; ``used`` gets their labels by type. After ``most`` labels, or when fewer than
    ``tolerance`` tasks go on, all that are left stop where they are.
    """
    to, weight, stop = chain
    M, G, E = to.shape
    here, there = mass.copy(), np.zeros(G)
    used[:] = 0.0
    reward = 0.0
    for _ in range(most):
        moved = 0.0
        for i in range(G):
            if here[i] == 0.0:
                continue
            left = 1.0
            for m in range(M):
                if share[m, i] == 0.0:
                    continue
                x = here[i] * share[m, i]
                left -= share[m, i]
                used[m] += x
                moved += x
                for e in range(E):
                    there[to[m, i, e]] += x * weight[m, i, e]
            reward += here[i] * max(left, 0.0) * stop[i]
        here, there = there, here
        there[:] = 0.0
        if moved <= tolerance:
            break
    rest = 0.0
    for i in range(G):
        rest += here[i] * stop[i]
    return reward + rest


#: Components below this are left out of the coordinates: they go to the corner of their truth at once.
TINY = 1e-10


class SimplexGrid(NamedTuple):
    """Points and what is needed to find them: ``choose[a, b]`` is the binomial coefficient.

    Any set of points has no knots; points with more ``gain`` are preferred, ``symmetric`` ones have sorted beliefs.
    """

    knots: Floats
    points: Floats
    corner: Ints
    choose: Ints
    gain: Floats
    symmetric: bool

    @property
    def parts(self) -> int:
        """Points besides the corners as which a belief is written."""
        return int(self.points.shape[1]) if len(self.knots) else 1

    @property
    def entries(self) -> int:
        """E."""
        C = int(self.points.shape[1])
        return C * self.parts + (C if self.parts == 1 or C > 2 else 0)


class Scratch(NamedTuple):
    """Work space for one belief of C answers: the belief, its coordinates, cells, order, corners and weights."""

    belief: Floats
    x: Floats
    cell: Ints
    order: Ints
    at: Ints
    weight: Floats
    rest: Floats


@jit
def rank(choose: Ints, cell: Ints, d: int) -> int:
    """The number of the grid point whose knots are the falling sequence ``cell``."""
    number = 0
    for k in range(d):
        number += choose[cell[k] + d - 1 - k, d - k]
    return number


@jit
def make_scratch(C: int) -> Scratch:
    """Work space for ``locate``."""
    return Scratch(
        np.empty(C),
        np.empty(C - 1),
        np.empty(C - 1, dtype=np.int64),
        np.empty(C - 1, dtype=np.int64),
        np.empty(C, dtype=np.int64),
        np.empty(C),
        np.empty(C),
    )


@jit
def nearest(points: Floats, gain: Floats, p: Floats) -> tuple[int, float]:
    """The point, and how much of it fits into p, with the largest product of that and its ``gain``."""
    G, C = points.shape
    best, at, share = 0.0, 0, 0.0
    for i in range(C, G):
        most = 1.0
        for c in range(C):
            if points[i, c] * most > p[c]:
                most = p[c] / points[i, c]
                if most * gain[i] <= best:
                    break
        if most * gain[i] > best:
            best, at, share = most * gain[i], i, most
    return at, share


@jit
def locate(grid: SimplexGrid, s: Scratch) -> None:
    """Write ``s.belief`` as grid points ``s.at`` with ``s.weight``, and ``s.rest`` on the corners."""
    C = s.belief.shape[0]
    d = C - 1
    n = grid.knots.shape[0]
    if n == 0:
        if grid.symmetric:
            s.belief[:] = np.sort(s.belief)[::-1]
        s.at[0], s.weight[0] = nearest(grid.points, grid.gain, s.belief)
        for c in range(C):
            s.rest[c] = max(s.belief[c] - s.weight[0] * grid.points[s.at[0], c], 0.0)
        return
    kept = 0.0
    for c in range(C):
        s.rest[c] = 0.0
        if C > 2 and s.belief[c] < TINY:
            s.rest[c] = s.belief[c]
        else:
            kept += s.belief[c]
    total = 0.0
    for k in range(d - 1, -1, -1):
        if s.rest[k + 1] == 0.0:
            total += s.belief[k + 1] / kept
        s.x[k] = min(total, 1.0)
    if s.rest[0] > 0.0 or s.belief[0] == 0.0:
        for k in range(d):  # nothing is left for truth 0: x_1 is 1, and so are those that equal it
            if s.x[k] == s.x[0] and k > 0:
                s.x[k] = 1.0
        s.x[0] = 1.0
    for k in range(d):
        j = np.searchsorted(grid.knots, s.x[k], side="right") - 1
        s.cell[k] = min(max(j, 0), n - 2)
        low, high = grid.knots[s.cell[k]], grid.knots[s.cell[k] + 1]
        s.x[k] = min(max((s.x[k] - low) / (high - low), 0.0), 1.0)
        s.order[k] = k
    for a in range(1, d):  # falling fractions, ties in the order of the coordinates
        one = s.order[a]
        b = a
        while b > 0 and s.x[s.order[b - 1]] < s.x[one]:
            s.order[b] = s.order[b - 1]
            b -= 1
        s.order[b] = one
    before = 1.0
    for v in range(C):
        after = s.x[s.order[v]] if v < d else 0.0
        s.at[v] = rank(grid.choose, s.cell, d)
        s.weight[v] = before - after
        before = after
        if v < d:
            s.cell[s.order[v]] += 1
    if C > 2:
        _leave_rest(grid, s, kept)


@jit
def _leave_rest(grid: SimplexGrid, s: Scratch, kept: float) -> None:
    """Shrink the weights until no component is above the belief's own, and leave what is missing to the corners."""
    C = s.belief.shape[0]
    share = kept
    for c in range(C):
        if s.rest[c] > 0.0:
            continue
        made = 0.0
        for v in range(C):
            made += s.weight[v] * grid.points[s.at[v], c]
        if made * share > s.belief[c]:
            share = s.belief[c] / made
    for v in range(C):
        s.weight[v] *= share
    for c in range(C):
        made = 0.0
        for v in range(C):
            made += s.weight[v] * grid.points[s.at[v], c]
        s.rest[c] = max(s.belief[c] - made, 0.0)


@jit
def fill_chain(grid: SimplexGrid, channel: Floats, to: Ints, weight: Floats) -> None:
    """Where a label of each type leads from each point: ``parts`` points for every answer, then the corners, if any."""
    M, C, Y = channel.shape
    parts = C if grid.knots.shape[0] > 0 else 1
    s = make_scratch(C)
    for m in range(M):
        for i in range(grid.points.shape[0]):
            for e in range(to.shape[2]):
                to[m, i, e] = i if e < Y * parts else grid.corner[e - Y * parts]
                weight[m, i, e] = 0.0
            for y in range(Y):
                prob = 0.0
                for c in range(C):
                    s.belief[c] = grid.points[i, c] * channel[m, c, y]
                    prob += s.belief[c]
                if prob <= 0.0:
                    continue
                for c in range(C):
                    s.belief[c] /= prob
                locate(grid, s)
                for v in range(parts):
                    to[m, i, y * parts + v] = s.at[v]
                    weight[m, i, y * parts + v] = prob * s.weight[v]
                for e in range(Y * parts, to.shape[2]):
                    weight[m, i, e] += prob * s.rest[e - Y * parts]


@jit
def place(grid: SimplexGrid, beliefs: Floats, members: Floats, mass: Floats) -> None:
    """Add ``members`` tasks at each of the ``beliefs`` to the points around them."""
    C = beliefs.shape[1]
    parts = C if grid.knots.shape[0] > 0 else 1
    s = make_scratch(C)
    for g in range(beliefs.shape[0]):
        for c in range(C):
            s.belief[c] = beliefs[g, c]
        locate(grid, s)
        for v in range(parts):
            mass[s.at[v]] += members[g] * s.weight[v]
        for c in range(C if parts == 1 or C > 2 else 0):
            mass[grid.corner[c]] += members[g] * s.rest[c]
