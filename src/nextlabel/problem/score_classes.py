"""Tasks with a model's score each, kept as numbers: a million of them take as much room as their scores.

====== ======== ===== =======================================================================================
symbol code     shape meaning
====== ======== ===== =======================================================================================
p      values   (C,)  the different scores
n      counts   (C,)  tasks that have each of them
s      strength --    theta ~ Beta(s p, s (1 - p))
q      accuracy --    instead: workers are right with probability q, P(truth is 1) = p
====== ======== ===== =======================================================================================

To whoever reads ``Problem.classes`` it is a sequence of classes of tasks, each of which is made when it is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import overload

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.beliefs.rewards import Reward
from nextlabel.problem.score_priors import prior_of_score
from nextlabel.problem.task_class import TaskClass


class ScoreClasses(Sequence[TaskClass]):
    """One class for each different score; all share threshold, reward, and strength or accuracy."""

    __slots__ = ("accuracy", "counts", "pattern", "strength", "values")

    def __init__(
        self, values: Floats, counts: Ints, pattern: TaskClass, strength: float | None, accuracy: float | None
    ) -> None:
        """``pattern`` has the threshold and the reward; its prior and its count do not matter."""
        self.values, self.counts, self.pattern = values, counts, pattern
        self.strength, self.accuracy = strength, accuracy

    def __len__(self) -> int:
        return len(self.values)

    @overload
    def __getitem__(self, k: int) -> TaskClass: ...
    @overload
    def __getitem__(self, k: slice) -> tuple[TaskClass, ...]: ...
    def __getitem__(self, k: int | slice) -> TaskClass | tuple[TaskClass, ...]:
        if isinstance(k, slice):
            return tuple(self._make(self.values[k], self.counts[k]))
        if not -len(self) <= k < len(self):
            raise IndexError(k)
        return next(self._make(self.values[k : k + 1 or None], self.counts[k : k + 1 or None]))

    def __iter__(self) -> Iterator[TaskClass]:
        return self._make(self.values, self.counts)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, tuple):
            return tuple(self) == other
        return (
            isinstance(other, ScoreClasses)
            and self._shared == other._shared
            and np.array_equal(self.values, other.values)
            and np.array_equal(self.counts, other.counts)
        )

    def __hash__(self) -> int:
        return hash((self._shared, self.values.tobytes(), self.counts.tobytes()))

    def __repr__(self) -> str:
        return f"<{len(self):,} different scores of {self.tasks:,} tasks>"

    @property
    def tasks(self) -> int:
        """Number of tasks."""
        return int(self.counts.sum())

    def with_reward(self, reward: Reward) -> ScoreClasses:
        """The same tasks with another reward."""
        pattern = replace(self.pattern, reward=reward)
        return ScoreClasses(self.values, self.counts, pattern, self.strength, self.accuracy)

    @property
    def _shared(self) -> tuple[object, ...]:
        return self.strength, self.accuracy, self.pattern.threshold, self.pattern.reward

    def _make(self, values: Floats, counts: Ints) -> Iterator[TaskClass]:
        threshold, reward = self.pattern.threshold, self.pattern.reward
        for p, n in zip(values.tolist(), counts.tolist(), strict=True):
            yield TaskClass(n, prior_of_score(p, self.strength, self.accuracy), threshold, reward)


def number_of_tasks(classes: Sequence[TaskClass]) -> int:
    """K."""
    return classes.tasks if isinstance(classes, ScoreClasses) else sum(c.count for c in classes)


def different_rewards(classes: Sequence[TaskClass]) -> list[Reward]:
    """The rewards of some classes, each of them once."""
    if isinstance(classes, ScoreClasses):
        return [classes.pattern.reward]
    return list(dict.fromkeys(c.reward for c in classes))


def kinds_of_priors(classes: Sequence[TaskClass]) -> list[str]:
    """The kinds of the priors of some classes, each of them once, in the order of the alphabet."""
    return sorted({c.prior.kind for c in (classes[:1] if isinstance(classes, ScoreClasses) else classes)})
