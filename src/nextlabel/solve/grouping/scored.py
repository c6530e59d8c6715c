"""Problems whose priors are one family with one parameter: a model's score of each task.

Families: Beta(s p, s (1 - p)) with one strength s, and workers of one accuracy with P(truth is 1) = p.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from nextlabel.arrays import Floats
from nextlabel.beliefs.beta import Beta, beta_beliefs
from nextlabel.beliefs.fact import OneCoin, coin_beliefs
from nextlabel.problem.scores import ScoreClasses
from nextlabel.problem.task_class import TaskClass

#: Strengths that differ by less than this share are one: s p + s (1 - p) is s up to rounding.
SAME = 1e-12


class Scored(NamedTuple):
    """Different scores, rising, with the tasks that have each; ``pattern`` has the threshold and the reward."""

    p: Floats
    tasks: Floats
    pattern: TaskClass
    strength: float | None
    accuracy: float | None

    @property
    def total(self) -> float:
        """K."""
        return float(self.tasks.sum())


def scored(classes: Sequence[TaskClass]) -> Scored | None:
    """The scores that the classes stand for, None if they are no such family."""
    if isinstance(classes, ScoreClasses):
        order = np.argsort(classes.values)
        tasks = classes.counts[order].astype(np.float64)
        return Scored(classes.values[order], tasks, classes.pattern, classes.strength, classes.accuracy)
    found = scores_of(classes)
    if found is None:
        return None
    order = np.argsort(found.p)
    return found._replace(p=found.p[order], tasks=found.tasks[order])


def scores_of(classes: Sequence[TaskClass]) -> Scored | None:
    """The scores of plain classes in their own order, None if they are no such family."""
    one = classes[0]
    if any(c.threshold != one.threshold or c.reward != one.reward for c in classes):
        return None
    tasks = np.array([c.weight for c in classes])
    strength: float | None = None
    accuracy: float | None = None
    if isinstance(one.prior, OneCoin):
        accuracy = one.prior.accuracy
        coins = [c.prior for c in classes if isinstance(c.prior, OneCoin) and c.prior.accuracy == accuracy]
        p = np.array([coin.probability for coin in coins])
    elif isinstance(one.prior, Beta):
        strength = one.prior.alpha + one.prior.beta
        betas = [c.prior for c in classes if isinstance(c.prior, Beta)]
        p = np.array([b.alpha / strength for b in betas if same_strength(b, strength)])
    else:
        return None
    if len(p) < len(classes):
        return None
    return Scored(p, tasks, one, strength, accuracy)


def same_strength(prior: Beta, strength: float) -> bool:
    """Whether a Beta prior has that strength, up to rounding."""
    return abs(prior.alpha + prior.beta - strength) <= SAME * strength


def score_beliefs(scores: Scored, p: Floats, depth: int) -> tuple[Floats, Floats]:
    """Answer and truth probabilities (B, N, 2) of tasks with the scores p."""
    if scores.strength is None:
        return coin_beliefs(p, np.full(len(p), scores.accuracy), depth)
    s = scores.strength
    return beta_beliefs(s * p, s * (1.0 - p), np.full(len(p), scores.pattern.threshold), depth)
