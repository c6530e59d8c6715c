"""Where labels lead from one of a set of beliefs, written as another belief of the set and certainty ("sawtooth").

======== ========= ============== ==================================================================
symbol   code      shape          meaning
======== ========= ============== ==================================================================
q        points    (G, C)         beliefs, the C corners (certainty) first
t        --        --             the most of a belief q that fits into p: min_c p_c / q_c
======== ========= ============== ==================================================================

    p = t q + sum_c (p_c - t q_c) e_c      gives, V being convex,      V(p) <= t V(q) + sum_c (p_c - t q_c) V(e_c)

for any q of the set. If V(q) were R(q), all q on the way from p to doubt would take off the same; it is higher, the
less so the nearer q is to p, so that the one with the largest t times the root of ceiling - R is taken. Where answers
can change names without changing anything, beliefs are sorted: relabelling a belief does not change its value.
Guarantee: an upper bound whatever the set. Cost: M G C beliefs, each compared with up to G points.
"""

from __future__ import annotations

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.kernels.jit import jit


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
