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
and each box into simplices by the order of the fractions within it (Freudenthal, Kuhn). The order of x is that of its
fractions where two coordinates share an interval, so that all corners are again falling sequences: the triangulation
fits the simplex, for knots spaced as one likes. With two answers this is a grid on [0, 1]. The rest r takes up
components too small to be written as differences of coordinates, and rounding.

*Any set of points* ("sawtooth"), the C corners first. One point q is taken, with the most of it that fits into p,
w = min_c p_c / q_c. If V(q) were R(q), all q on the way from p to doubt would take off the same; it is higher, the less
so the nearer q is to p, so that the one with the largest w times the root of ceiling - R is taken. Where answers can
change names without changing anything, beliefs are sorted: relabelling a belief does not change its value.
Guarantee: an upper bound whatever the knots or the set. Cost: C log n + C^2 operations per belief on a grid; M G C
beliefs, each compared with up to G points, for a set.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.kernels.jit import jit

#: Components below this are left out of the coordinates: they go to the corner of their truth at once.
TINY = 1e-10


class SimplexGrid(NamedTuple):
    """Grid points and what is needed to find them: ``choose[a, b]`` is the binomial coefficient."""

    knots: Floats
    points: Floats
    corner: Ints
    choose: Ints


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
def locate(grid: SimplexGrid, s: Scratch) -> None:
    """Write ``s.belief`` as grid points ``s.at`` with ``s.weight``, and ``s.rest`` on the corners."""
    C = s.belief.shape[0]
    d = C - 1
    n = grid.knots.shape[0]
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
    """Where a label of each type leads from each grid point; E is C Y, and C more if C > 2."""
    M, C, Y = channel.shape
    G = grid.points.shape[0]
    s = make_scratch(C)
    for m in range(M):
        for i in range(G):
            for e in range(to.shape[2]):
                to[m, i, e] = i
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
                for v in range(C):
                    to[m, i, y * C + v] = s.at[v]
                    weight[m, i, y * C + v] = prob * s.weight[v]
                if C > 2:
                    for c in range(C):
                        to[m, i, Y * C + c] = grid.corner[c]
                        weight[m, i, Y * C + c] += prob * s.rest[c]


@jit
def place(grid: SimplexGrid, beliefs: Floats, members: Floats, mass: Floats) -> None:
    """Add ``members`` tasks at each of the ``beliefs`` to the grid points around them."""
    C = beliefs.shape[1]
    s = make_scratch(C)
    for g in range(beliefs.shape[0]):
        for c in range(C):
            s.belief[c] = beliefs[g, c]
        locate(grid, s)
        for v in range(C):
            mass[s.at[v]] += members[g] * s.weight[v]
            if C > 2:
                mass[grid.corner[v]] += members[g] * s.rest[v]


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
def fill_point_chain(points: Floats, gain: Floats, channel: Floats, symmetric: bool, to: Ints, weight: Floats) -> None:
    """Entries of each row: a point for every answer, then the corners."""
    M, C, Y = channel.shape
    p = np.empty(C)
    for m in range(M):
        for i in range(points.shape[0]):
            for c in range(C):
                to[m, i, Y + c] = c
                weight[m, i, Y + c] = 0.0
            for y in range(Y):
                to[m, i, y] = i
                weight[m, i, y] = 0.0
                chance = 0.0
                for c in range(C):
                    p[c] = points[i, c] * channel[m, c, y]
                    chance += p[c]
                if chance <= 0.0:
                    continue
                for c in range(C):
                    p[c] /= chance
                if symmetric:
                    p = np.sort(p)[::-1].copy()
                at, share = nearest(points, gain, p)
                to[m, i, y] = at
                weight[m, i, y] = chance * share
                for c in range(C):
                    weight[m, i, Y + c] += chance * max(p[c] - share * points[at, c], 0.0)


@jit
def place_at_points(points: Floats, gain: Floats, beliefs: Floats, members: Floats, mass: Floats) -> None:
    """Add ``members`` tasks at each of the ``beliefs`` to a point and the corners."""
    C = points.shape[1]
    for g in range(beliefs.shape[0]):
        at, share = nearest(points, gain, beliefs[g])
        mass[at] += members[g] * share
        for c in range(C):
            mass[c] += members[g] * max(beliefs[g, c] - share * points[at, c], 0.0)
