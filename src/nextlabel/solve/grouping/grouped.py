"""A problem with many scores between two problems with few: one is worth at least as much, the other at most.

======== ======== ==============================================================================================
symbol   code     meaning
======== ======== ==============================================================================================
--       upper    every task is split between the ends of its cell, so that the mean of its score stays: chords
--       lower    the tasks of a cell all get their mean score
e        above    the upper problem's value, plus this, is never below the original one's, at any prices
e'       below    the lower problem's value, less this, is never above it
======== ======== ==============================================================================================

Guarantee: proved for single-task values at any prices, and so for the bound (``errors``, docs/theory_grouping.md).
Cost: some beta functions for each score, then that of problems with as many classes as the grid has points.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil
from typing import NamedTuple

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.beliefs.prior import EPS
from nextlabel.problem.problem import Problem
from nextlabel.problem.scores import prior_of_score
from nextlabel.problem.task_class import TaskClass
from nextlabel.solve.grouping.errors import chord_errors, chord_shares, mean_errors
from nextlabel.solve.grouping.grid import make_grid
from nextlabel.solve.grouping.scored import Scored, scored

#: Problems with more classes than this are grouped, if their priors are of one family.
MANY_CLASSES = 4096
#: Shares of tasks below this are rounding.
LEAST_SHARE = 1e-12


@dataclass(frozen=True, slots=True)
class SharedClass(TaskClass):
    """A point of the grid, for which ``share`` tasks count, a whole number or not."""

    share: float = 1.0

    @property
    def weight(self) -> float:
        """How often a task of this class counts in sums over tasks."""
        return self.share


class AroundScores(NamedTuple):
    """Tasks at the points of a grid and at the mean of each cell, and what to add to one and to take off the other."""

    grid: Floats
    at_ends: Floats
    mean: Floats
    members: Floats
    above: float
    below: float


class Grouped(NamedTuple):
    """Two problems around one, and what to add to one and to take off the other."""

    upper: Problem
    lower: Problem
    above: float
    below: float

    @property
    def priors(self) -> int:
        """Different priors of the larger problem."""
        return max(len(self.upper.classes), len(self.lower.classes))


def group(problem: Problem, cells: int | None = None, least: int = MANY_CLASSES) -> Grouped | None:
    """The problems, if there are more than ``least`` classes, of one family; ``cells`` of the grid, else by need."""
    if len(problem.classes) <= least or problem.workers:
        return None
    scores = scored(problem.classes)
    if scores is None:
        return None
    around = group_scores(scores, make_grid(scores, cells))
    return Grouped(
        problem_of(problem, scores, around.grid, around.at_ends),
        problem_of(problem, scores, around.mean, around.members),
        around.above,
        around.below,
    )


def group_scores(scores: Scored, grid: Floats) -> AroundScores:
    """The tasks around those with these scores, which lie between the ends of the grid."""
    if len(grid) == 1:
        total = np.array([scores.total])
        return AroundScores(grid, total, grid, total, 0.0, 0.0)
    cell = np.clip(np.searchsorted(grid, scores.p, side="right") - 1, 0, len(grid) - 2)
    share = chord_shares(scores.p, grid[cell], grid[cell + 1])
    at_ends = _sums(cell, scores.tasks * share, len(grid)) + _sums(cell + 1, scores.tasks * (1.0 - share), len(grid))
    members = _sums(cell, scores.tasks, len(grid) - 1)
    occupied = members > 0
    mean = 0.5 * (grid[:-1] + grid[1:])
    mean[occupied] = _sums(cell, scores.tasks * scores.p, len(grid) - 1)[occupied] / members[occupied]
    above = below = 0.0
    if scores.strength is not None:
        above = float(scores.tasks @ chord_errors(scores.pattern, scores.strength, scores.p, grid, cell))
        below = float(scores.tasks @ mean_errors(scores.pattern, scores.strength, scores.p, mean, cell))
    # Sums are rounded: a task counts, or its score stands, by so much too little or too much.
    steep = 2.0 + (scores.strength or 1.0) ** 0.5
    rounded = 4.0 * EPS * scores.total * len(scores.p) * steep * scores.pattern.reward.largest
    return AroundScores(grid, at_ends, mean[occupied], members[occupied], above + rounded, below + rounded)


def _sums(cell: Ints, values: Floats, cells: int) -> Floats:
    return np.asarray(np.bincount(cell, values, cells), dtype=np.float64)


def problem_of(problem: Problem, scores: Scored, p: Floats, tasks: Floats) -> Problem:
    """The problem with ``tasks`` tasks of each score."""
    one = scores.pattern
    classes = tuple(
        SharedClass(
            max(ceil(share), 1), prior_of_score(x, scores.strength, scores.accuracy), one.threshold, one.reward, share
        )
        for x, share in zip(p.tolist(), tasks.tolist(), strict=True)
        if share > LEAST_SHARE
    )
    return replace(problem, classes=classes)
