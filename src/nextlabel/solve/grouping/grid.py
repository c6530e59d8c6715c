"""Where the points of the grid stand: close together where a prior between them would differ most from theirs.

For Beta priors of strength s the chord between two points p1 and p2 is off by about A(p) M(p) (p - p1)(p2 - p) / 2 with

    M = s^2 sqrt(2 v^2 + k),    v and k the variance and the fourth cumulant of log(theta / (1 - theta)),

so that cells of equal length in the metric sqrt(A M) have equal errors. Where labels have little to say A is nearly 0,
and no cell may be longer than LONGEST of its own scale for all that. With workers of one accuracy cells are equal.
Guarantee: none is needed; errors are those of the grid as it is.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit, logit, polygamma

from nextlabel.arrays import Floats
from nextlabel.solve.grouping.errors import payoff
from nextlabel.solve.grouping.scored import Scored

#: Length of a cell, by which the error of both sides together is at most about 5e-5 of a task, and cells at most.
LENGTH, MOST_CELLS = 0.013, 3000
#: Cells of a family in which nothing but the number of cells sets the error.
EVEN_CELLS = 2000
#: The root of A counts as at least this.
LEAST_ROOT = 0.05
#: Points at which the metric is tabulated.
POINTS = 20_001


def make_grid(scores: Scored, cells: int | None = None) -> Floats:
    """Points that rise from the least score to the largest; ``cells`` of them fewer one, or as many as are needed."""
    least, largest = float(scores.p[0]), float(scores.p[-1])
    if least == largest:
        return np.array([least])
    if scores.strength is None:
        return np.linspace(least, largest, (EVEN_CELLS if cells is None else cells) + 1)
    s = scores.strength
    p = np.clip(expit(np.linspace(logit(least), logit(largest), POINTS)), least, largest)
    v = polygamma(1, s * p) + polygamma(1, s * (1.0 - p))
    k = polygamma(3, s * p) + polygamma(3, s * (1.0 - p))
    root = np.maximum(np.sqrt(payoff(scores.pattern, s, p) / max(scores.pattern.reward.largest, 1e-300)), LEAST_ROOT)
    metric = root * s * np.sqrt(np.sqrt(2.0 * v**2 + k))
    length = np.append(0.0, np.cumsum(0.5 * (metric[1:] + metric[:-1]) * np.diff(p)))
    if cells is None:
        cells = int(min(np.ceil(length[-1] / LENGTH), MOST_CELLS))
    grid = np.interp(np.linspace(0.0, length[-1], max(cells, 1) + 1), length, p)
    grid[0], grid[-1] = least, largest
    return np.unique(grid)
