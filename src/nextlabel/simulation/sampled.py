"""A large campaign of many priors in small: every k-th task in the order of scores, a k-th of the labels and workers.

Labels per task and labels in flight per task stay the same, and the sample has all scores in their proportions, so that
values per task are those of the large campaign but for its size: with 20,000 tasks the fifth decimal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from nextlabel.policies.own_priors import FEW_CLASSES
from nextlabel.problem.problem import Problem, TaskClass
from nextlabel.problem.rates import PiecewiseRate
from nextlabel.problem.scores import ScoreClasses

#: Tasks of the sample, at least; no more than twice as many are simulated.
SAMPLED_TASKS = 20_000


def sample_tasks(problem: Problem) -> tuple[Problem, int]:
    """The sample and k; the problem itself and 1 where it is small, or its priors are few."""
    step = problem.tasks // SAMPLED_TASKS
    if step < 2 or len(problem.classes) <= FEW_CLASSES:
        return problem, 1
    classes = problem.classes
    some: Sequence[TaskClass]
    if isinstance(classes, ScoreClasses):
        order = np.argsort(classes.values, kind="stable")
        counts = classes.counts[order]
    else:
        counts = np.array([c.count for c in classes], dtype=np.int64)
        order = np.arange(len(classes))
    members = np.repeat(np.arange(len(order)), counts)[step // 2 :: step]
    which, kept = np.unique(members, return_counts=True)
    kept = kept.astype(np.int64)
    if isinstance(classes, ScoreClasses):
        values = classes.values[order][which]
        some = ScoreClasses(values, kept, classes.pattern, classes.strength, classes.accuracy)
    else:
        some = tuple(replace(classes[k], count=n) for k, n in zip(which.tolist(), kept.tolist(), strict=True))
    rate = problem.arrival_rate
    slower: float | PiecewiseRate
    if isinstance(rate, PiecewiseRate):
        slower = PiecewiseRate(tuple((start, r / step) for start, r in rate.pieces), rate.period)
    else:
        slower = rate / step
    return replace(problem, classes=some, arrival_rate=slower, budget=problem.budget // step), step
