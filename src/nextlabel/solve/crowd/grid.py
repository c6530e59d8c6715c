"""The grid of beliefs: knots graded in log-odds, and the beliefs that the first labels lead to.

======== ========= ========= ==================================================================
symbol   code      shape     meaning
======== ========= ========= ==================================================================
n        knots     (n,)      values of a coordinate, dense near 0 and 1 where tasks are nearly decided
G        points    (G, C)    C(n + C - 2, C - 1) grid points
======== ========= ========= ==================================================================

Interpolation costs nothing at a grid point. The beliefs that can be reached from the tasks' own by few labels are
therefore made grid points, the shortest ways first: their coordinates (``kernels.crowd_grid``), tail sums of the
belief, become knots. Further beliefs fall between knots that are evenly spaced in log-odds. Coordinates are close to 0
or 1 near every corner of the simplex, so that the grid is dense where tasks are nearly decided.
"""

from __future__ import annotations

from itertools import combinations_with_replacement
from math import comb

import numpy as np
from scipy.special import expit, logit

from nextlabel.arrays import Floats, Ints
from nextlabel.kernels.crowd_grid import SimplexGrid

#: Log-odds are spaced evenly up to this; the last knots are 0 and 1.
REACH = 14.0
#: Beliefs looked at on the way to further ones, at most.
MOST_BELIEFS = 20_000
#: Reachable log-odds closer than this are one knot.
APART = 1e-6


def make_grid(answers: int, points: int, also: Floats | None = None) -> SimplexGrid:
    """About ``points`` grid points; ``also`` are log-odds of coordinates that shall be knots, two thirds at most."""
    n = knots_of(answers, points)
    also = np.empty(0) if also is None else also
    even = max(n - 2 - len(also), (n - 2) // 3)
    graded = np.linspace(-1.0, 1.0, even) * REACH if even > 1 else np.zeros(even)
    odds = np.sort(np.concatenate([graded, also]))
    if len(also):  # a knot that is all but another one would make an interval too small to interpolate in
        odds = odds[np.concatenate([[True], np.diff(odds) > APART])]
    return grid_of(answers, np.concatenate([[0.0], expit(odds), [1.0]]))


def knots_of(answers: int, points: int) -> int:
    """The most knots that make at most so many grid points, 2 at least."""
    n = 2
    while comb(n + answers - 1, answers - 1) <= points:
        n += 1
    return n


def grid_of(answers: int, knots: Floats) -> SimplexGrid:
    """The grid with these knots, points in the order of ``kernels.crowd_grid.rank``."""
    d, n = answers - 1, len(knots)
    choose = np.array([[comb(a, b) for b in range(d + 1)] for a in range(n + d)], dtype=np.int64)
    # Falling sequences in the order of their rank: the first coordinate counts most.
    cells = np.array([c[::-1] for c in combinations_with_replacement(range(n), d)], dtype=np.int64)
    order = np.argsort(_ranks(cells, choose), kind="stable")
    x = knots[cells[order]]
    tails = np.concatenate([np.ones((len(x), 1)), x, np.zeros((len(x), 1))], axis=1)
    points = np.ascontiguousarray(tails[:, :-1] - tails[:, 1:])
    corner = np.array([int(np.flatnonzero(points[:, c] == 1.0)[0]) for c in range(answers)], dtype=np.int64)
    return SimplexGrid(np.ascontiguousarray(knots), points, corner, choose)


def reachable_odds(beliefs: Floats, channel: Floats, most: int) -> Floats:
    """Up to ``most`` log-odds of coordinates of beliefs that the tasks' own lead to, by as few labels as possible."""
    here = np.unique(beliefs, axis=0)
    found = np.empty(0)
    while 0 < len(here) <= MOST_BELIEFS:
        with np.errstate(divide="ignore"):
            odds = logit(np.cumsum(here[:, :0:-1], axis=1).ravel())
        both = _apart(np.concatenate([found, odds[np.abs(odds) < REACH]]))
        if len(both) > most or len(both) == len(found):
            break
        found = both
        joint = here[:, None, :, None] * channel[None]  # belief, type, truth, answer
        chance = joint.sum(axis=2, keepdims=True)
        after = np.divide(joint, chance, out=np.zeros_like(joint), where=chance > 0.0)
        after = np.moveaxis(after, 2, 3).reshape(-1, beliefs.shape[1])
        after = after[after.sum(axis=1) > 0.0]
        here = np.unique(np.round(after, 12), axis=0) if len(after) else after
    return found


def _apart(odds: Floats) -> Floats:
    odds = np.sort(odds)
    return odds[np.concatenate([[True], np.diff(odds) > APART])] if len(odds) else odds


def _ranks(cells: Ints, choose: Ints) -> Ints:
    d = cells.shape[1]
    total = np.zeros(len(cells), dtype=np.int64)
    for k in range(d):
        total += choose[cells[:, k] + d - 1 - k, d - k]
    return total
