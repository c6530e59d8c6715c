"""By which classes' tables tasks are ranked: their own, or those of a grid if the priors are one family of scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import logit

from nextlabel.arrays import Floats, Ints
from nextlabel.kernels.own_priors import OF_CLASS, OWN_BETA, OWN_COIN
from nextlabel.problem.problem import Problem, TaskClass
from nextlabel.problem.scores import prior_of_score
from nextlabel.solve.grouping import chord_shares, make_score_grid, scored

#: Cells of the grid.
GRID = 400


class RankedBy(NamedTuple):
    """Classes with tables, and for each task its class, its share and its own prior (``kernels.own_priors``)."""

    classes: Sequence[TaskClass]
    class_of: Ints
    share: Floats
    law: int
    own: Floats


def rank_by(problem: Problem) -> RankedBy:
    """The grid's classes, where there are more scores than it has points, otherwise the problem's own."""
    scores = scored(problem.classes) if len(problem.classes) > GRID + 1 else None
    if scores is None:
        counts = [c.count for c in problem.classes]
        class_of = np.repeat(np.arange(len(problem.classes)), counts).astype(np.int64)
        return RankedBy(problem.classes, class_of, np.zeros(0), OF_CLASS, np.zeros((0, 2)))
    grid = make_score_grid(scores, GRID)
    cell = np.clip(np.searchsorted(grid, scores.p, side="right") - 1, 0, len(grid) - 2)
    share = chord_shares(scores.p, grid[cell], grid[cell + 1])
    if scores.strength is not None:
        law, own = OWN_BETA, scores.strength * np.column_stack([scores.p, 1.0 - scores.p])
    else:
        with np.errstate(divide="ignore"):  # certain answers
            sure = float(logit(np.float64(scores.accuracy or 0.5)))
            law, own = OWN_COIN, np.column_stack([logit(scores.p), np.full(len(scores.p), sure)])
    one, members = scores.pattern, scores.tasks.astype(np.int64)
    classes = [
        TaskClass(1, prior_of_score(p, scores.strength, scores.accuracy), one.threshold, one.reward)
        for p in grid.tolist()
    ]
    every = np.repeat(np.arange(len(members)), members)
    return RankedBy(classes, cell[every].astype(np.int64), share[every], law, np.ascontiguousarray(own[every]))
