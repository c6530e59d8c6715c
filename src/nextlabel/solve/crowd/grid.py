"""The grid of beliefs: knots graded in log-odds, and with two answers the beliefs that the first labels lead to.

======== ========= ========= ==================================================================
symbol   code      shape     meaning
======== ========= ========= ==================================================================
n        knots     (n,)      values of a coordinate, dense near 0 and 1 where tasks are nearly decided
G        points    (G, C)    C(n + C - 2, C - 1) grid points
======== ========= ========= ==================================================================

Interpolation costs nothing at a grid point. With two answers the beliefs that can be reached from the tasks' own by few
labels are therefore made grid points, the shortest ways first; further beliefs fall between knots that are evenly
spaced in log-odds. With more answers the coordinates are tail sums of the belief (``kernels.crowd_grid``), close to 0
or 1 near every corner of the simplex, so that the same knots are dense where tasks are nearly decided.
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
#: Reachable log-odds closer than this are one knot.
APART = 1e-6


def make_grid(answers: int, points: int, also: Floats | None = None) -> SimplexGrid:
    """About ``points`` grid points; with two answers ``also`` are further log-odds of truth 1."""
    n = 2
    while comb(n + answers - 1, answers - 1) <= points:
        n += 1
    graded = expit(np.linspace(-1.0, 1.0, n - 2) * REACH) if n > 3 else np.full(n - 2, 0.5)
    knots = np.unique(np.concatenate([[0.0], graded, [1.0]]))
    if also is not None and answers == 2:
        knots = np.unique(np.concatenate([knots, expit(also)]))
        # A knot that is all but another one would make an interval too small to interpolate in.
        odds = logit(knots[1:-1])
        kept = np.concatenate([[True], np.diff(odds) > APART])
        knots = np.concatenate([[0.0], knots[1:-1][kept], [1.0]])
    return grid_of(answers, knots)


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
    """Up to ``most`` log-odds of truth 1 that the tasks' beliefs lead to, by as few labels as possible."""
    with np.errstate(divide="ignore"):
        here = np.unique(logit(beliefs[:, 1]))
        steps = np.unique((np.log(channel[:, 1]) - np.log(channel[:, 0])).ravel())
    steps = steps[np.isfinite(steps) & (np.abs(steps) > APART)]
    found = here = here[np.isfinite(here)]
    while len(here) > 0 and len(here) * len(steps) <= 50 * most:
        new = _apart((here[:, None] + steps).ravel())
        new = new[np.abs(new) < REACH]
        both = _apart(np.concatenate([found, new]))
        if len(both) > most or len(both) == len(found):
            break
        here, found = new, both
    return np.asarray(found[:most], dtype=np.float64)


def _apart(odds: Floats) -> Floats:
    odds = np.sort(odds)
    return odds[np.concatenate([[True], np.diff(odds) > APART])] if len(odds) else odds


def _ranks(cells: Ints, choose: Ints) -> Ints:
    d = cells.shape[1]
    total = np.zeros(len(cells), dtype=np.int64)
    for k in range(d):
        total += choose[cells[:, k] + d - 1 - k, d - k]
    return total
