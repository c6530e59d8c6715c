"""Tasks of a running campaign with a model's score each: few priors around theirs, for a bound that takes seconds.

======== ======== ==============================================================================================
symbol   code     meaning
======== ======== ==============================================================================================
m        level    labels that have come in for a task
p'       after    the score of a task after its labels: its posterior is again one of a family of scores, Beta of
                  strength s + m, or one coin
e, e'    above,   added to the sum of the upper tasks' values, and taken off that of the lower ones (``grouping``)
         below
======== ======== ==============================================================================================

The no-delay value of a task is that of a fresh task with its posterior as prior. Tasks with as many labels are one
family (with one coin all tasks are), and ``solve.grouping`` puts two problems with few priors around it: one is worth
at least as much at every price, the other at most.
Guarantee: that of ``grouping``, at any prices. Cost: some beta functions for each task, then that of so few classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit

from nextlabel.arrays import Floats, Ints
from nextlabel.beliefs.simplex import simplex
from nextlabel.problem.scores import prior_of_score
from nextlabel.problem.state import Groups
from nextlabel.problem.task_class import TaskClass
from nextlabel.solve.grouping.grid import make_grid
from nextlabel.solve.grouping.grouped import group_scores
from nextlabel.solve.grouping.scored import Scored, score_beliefs, scores_of

#: Priors from which tasks are grouped, and priors that stand for them, over all levels and for each at least.
MANY_PRIORS, PRIORS, LEAST_PRIORS = 1000, 1200, 64
#: Scores whose rewards are computed at once.
CHUNK = 100_000


class GroupedTasks(NamedTuple):
    """Tasks around those of a campaign, and what all of these are worth now and were the truth known."""

    upper: tuple[list[TaskClass], Groups]
    lower: tuple[list[TaskClass], Groups]
    above: float
    below: float
    now: float
    ceiling: float


def group_standing(classes: Sequence[TaskClass], groups: Groups) -> GroupedTasks | None:
    """The tasks around; None if there are few priors, or no family of scores."""
    used, entry = np.unique(groups.entry, return_inverse=True)
    if len(used) <= MANY_PRIORS or classes[0].answers != 2:
        return None
    found = scores_of([classes[c] for c in used])
    if found is None or found.accuracy == 1.0:
        return None
    families = [*_families(found, entry, groups)]
    cells = max(PRIORS // len(families), LEAST_PRIORS)
    upper: list[tuple[Scored, Floats, Floats]] = []
    lower: list[tuple[Scored, Floats, Floats]] = []
    above = below = now = ceiling = 0.0
    for scores in families:
        worth = _worth(scores)
        now, ceiling = now + worth[0], ceiling + worth[1]
        if len(scores.p) <= cells:
            upper.append((scores, scores.p, scores.tasks))
            lower.append((scores, scores.p, scores.tasks))
            continue
        grid = make_grid(scores)
        around = group_scores(scores, grid if len(grid) <= cells + 1 else make_grid(scores, cells))
        upper.append((scores, around.grid, around.at_ends))
        lower.append((scores, around.mean, around.members))
        above, below = above + around.above, below + around.below
    return GroupedTasks(_placed(upper), _placed(lower), above, below, now, ceiling)


def _families(found: Scored, entry: Ints, groups: Groups) -> list[Scored]:
    """The scores of the tasks after their labels, those of one family together."""
    level = groups.levels(2)
    counts = simplex(2, int(level.max()))[2]
    zeros, ones = counts[groups.node].T
    p, members = found.p[entry], groups.members.astype(np.float64)
    if found.strength is None:
        assert found.accuracy is not None
        with np.errstate(divide="ignore"):
            after = expit(logit(p) + (ones - zeros) * logit(found.accuracy))
        return [_different(found, after, members, None)]
    families = []
    for m in np.unique(level):
        here = level == m
        after = (found.strength * p[here] + ones[here]) / (found.strength + m)
        families.append(_different(found, after, members[here], found.strength + float(m)))
    return families


def _different(found: Scored, p: Floats, members: Floats, strength: float | None) -> Scored:
    different, place = np.unique(p, return_inverse=True)
    tasks = np.asarray(np.bincount(place, members), dtype=np.float64)
    return Scored(different, tasks, found.pattern, strength, found.accuracy)


def _worth(scores: Scored) -> tuple[float, float]:
    """Sums over the tasks of R and of the ceiling."""
    reward = scores.pattern.reward
    first, child, _ = simplex(2, reward.ahead)
    total = np.zeros(2)
    for start in range(0, len(scores.p), CHUNK):
        here = slice(start, start + CHUNK)
        prob, truth = score_beliefs(scores, scores.p[here], reward.ahead)
        values, ceiling = reward.values(prob, truth, first, child)
        total += scores.tasks[here] @ values[:, 0], scores.tasks[here] @ ceiling[:, 0]
    return float(total[0]), float(total[1])


def _placed(parts: Sequence[tuple[Scored, Floats, Floats]]) -> tuple[list[TaskClass], Groups]:
    """Fresh tasks of each score, as many as count, whole or not."""
    classes: list[TaskClass] = []
    tasks: list[Floats] = []
    for scores, p, members in parts:
        one = scores.pattern
        classes += [
            TaskClass(1, prior_of_score(x, scores.strength, scores.accuracy), one.threshold, one.reward)
            for x in p[members > 0].tolist()
        ]
        tasks.append(members[members > 0])
    none = np.zeros(len(classes), dtype=np.int64)
    return classes, Groups(np.arange(len(classes)), none, none, np.concatenate(tasks))
