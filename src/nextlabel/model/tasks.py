"""The tasks of a problem: classes that share a prior, scores of a model, groups of tasks in one state; checked numbers.

====== ============ ===== =====================================================================================
symbol code         shape meaning
====== ============ ===== =====================================================================================
p      values       (C,)  scores of a model: P(the answer is 1), with the tasks that have each in ``counts``
s      strength     --    labels that a score is worth: theta ~ Beta(s p, s (1 - p))
q      accuracy     --    instead: workers are right with probability q, P(truth is 1) = p
c      entry        (G,)  class of a group of tasks
i      node         (G,)  belief node of the class's own lattice (``model.simplex.node_of_counts``)
w      w            (G,)  labels of each of the tasks in flight
--     members      (G,)  tasks of the group
====== ============ ===== =====================================================================================

A score of 0 or 1 would leave nothing for labels to say, so that scores are moved into [LEAST, 1 - LEAST] and counted.
A million scores stay numbers: ``ScoreClasses`` makes a class of tasks when it is asked for one.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral
from pathlib import Path
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike

from nextlabel.arrays import Floats, Ints
from nextlabel.errors import FileFormatError, ProblemError
from nextlabel.files.columns import find_columns, probability
from nextlabel.files.tables import Frame, TableSummary, open_table
from nextlabel.kernels.inputs import Lattices
from nextlabel.model.beta import Beta, beta_beliefs
from nextlabel.model.fact import OneCoin, coin_beliefs
from nextlabel.model.lattice import Lattice, make_lattice, rewards_of, stack_arrays, stack_lattices
from nextlabel.model.prior import Prior, number, settle, shown
from nextlabel.model.rewards import Accuracy, Reward
from nextlabel.model.simplex import nodes_of

#: Largest count or budget accepted.
LARGEST = 10**9


@dataclass(frozen=True, slots=True)
class TaskClass:
    """``count`` tasks that share a prior, a threshold and a reward."""

    count: int
    prior: Prior = field(default_factory=lambda: Beta(1, 1))
    threshold: float = 0.5
    reward: Reward = field(default_factory=Accuracy)

    def __post_init__(self) -> None:
        count = whole("number of tasks", self.count, 1, "Give at least one task, e.g. --tasks 100.")
        d = number(self.threshold)
        if not 0 < d < 1:
            raise ProblemError(
                f"threshold {self.threshold!r} is outside (0, 1).", "Give a number between 0 and 1, e.g. 0.5."
            )
        settle(self, count=count, threshold=d)
        if not self.prior.thresholded and d != 0.5:
            raise ProblemError(
                f"a threshold means nothing to tasks with the prior {self.prior.describe()}.",
                "Leave it out: thresholds are for binary answers of unknown reliability.",
            )
        self.reward.check(self.prior.answers)

    @property
    def answers(self) -> int:
        """J, the number of answers."""
        return self.prior.answers

    def lattice(self, depth: int) -> Lattice:
        """The belief lattice of one task of this class."""
        return make_lattice(self.prior, self.threshold, depth, self.reward)


def whole(name: str, value: Any, least: int, hint: str) -> int:
    """``value`` as a whole number of at least ``least``, or a ProblemError."""
    if (not isinstance(value, Integral) and not number(value).is_integer()) or isinstance(value, bool):
        raise ProblemError(f"{name} is {value!r}, which is not a whole number.", hint)
    count = int(value)
    if not least <= count <= LARGEST:
        given = f"{count}" if abs(count) <= LARGEST else "too large a number"
        raise ProblemError(f"{name} is {given}: give a whole number from {least} to {LARGEST:,}.", hint)
    return count


def at_least_0(name: str, value: Any, hint: str) -> float:
    """``value`` as a finite float that is not negative, or a ProblemError."""
    x = number(value)
    if not 0 <= x < math.inf:
        raise ProblemError(f"{name} {value!r} is not a number of at least 0.", hint)
    return x


GROUPS_HINT = "Give four arrays of one length: class number, node, labels in flight, tasks."


class Groups(NamedTuple):
    """Tasks by class, belief and labels in flight."""

    entry: Ints
    node: Ints
    w: Ints
    members: Ints

    @property
    def tasks(self) -> int:
        """K, the number of tasks."""
        return round(float(self.members.sum()))

    @property
    def in_flight(self) -> int:
        """Labels in flight, over all tasks."""
        return int(self.w @ self.members)

    def levels(self, answers: int) -> Ints:
        """Labels come in, for the tasks of each group."""
        most, level = int(self.node.max()), 0
        ends = [1]
        while ends[-1] <= most:
            level += 1
            ends.append(nodes_of(answers, level))
        return np.searchsorted(np.array(ends), self.node, side="right").astype(np.int64)


def fresh_groups(classes: Sequence[TaskClass]) -> Groups:
    """All tasks of ``classes`` before their first label."""
    none = np.zeros(len(classes), dtype=np.int64)
    members: Any = classes.counts if isinstance(classes, ScoreClasses) else np.array([c.count for c in classes])
    return Groups(np.arange(len(classes), dtype=np.int64), none, none.copy(), members)


def check_groups(groups: Sequence[Any], classes: Sequence[TaskClass]) -> Groups:
    """Groups of tasks of ``classes``, the empty ones left out, or a ProblemError."""
    if not classes:
        raise ProblemError("there are no classes of tasks.", "Give at least one.")
    if len({c.answers for c in classes}) > 1:
        raise ProblemError("tasks with different numbers of answers are mixed.", "Give them the same number.")
    if len(groups) != 4:
        raise ProblemError(f"groups are {len(groups)} arrays.", GROUPS_HINT)
    columns = [_whole(column) for column in groups]
    if len({len(column) for column in columns}) > 1:
        raise ProblemError("the arrays of the groups differ in length.", GROUPS_HINT)
    if any(np.any(column < 0) for column in columns):
        raise ProblemError("a group has a number below 0.", GROUPS_HINT)
    kept = Groups(*(column[columns[3] > 0] for column in columns))
    if len(kept.entry) == 0:
        raise ProblemError("the groups have no tasks.", "Give at least one group with a task in it.")
    if int(kept.entry.max()) >= len(classes):
        raise ProblemError(
            f"a group is of class {int(kept.entry.max())}, and there are {len(classes)} classes.", "Count from 0."
        )
    return kept


def _whole(column: Any) -> Ints:
    """A column as whole numbers, or a ProblemError."""
    given = np.asarray(column)
    if given.ndim != 1 or not (np.issubdtype(given.dtype, np.integer) or len(given) == 0):
        raise ProblemError("an array of the groups does not hold whole numbers in one row.", GROUPS_HINT)
    return given.astype(np.int64)


class TaskState(NamedTuple):
    """``node`` of the task's belief lattice and ``w`` labels in flight."""

    node: int
    w: int


#: No score is nearer to 0 or 1 than this.
LEAST = 0.001
DEFAULT_COLUMN = "probability"


@dataclass(frozen=True, slots=True)
class ItemScores:
    """One score per item, in the order of the rows; ``moved`` of them were nearer to 0 or 1 than allowed."""

    values: Floats
    moved: int
    report: TableSummary = field(default_factory=TableSummary)

    def note(self, path: str | Path) -> str:
        """What was done to the scores, if anything was."""
        if self.moved == 0:
            return ""
        were = "was" if self.moved == 1 else "were"
        return (
            f"{self.moved:,} of {len(self.values):,} scores {were} moved to {LEAST:g} or {1 - LEAST:g} ({path}): "
            "labels could say nothing about a task that is certain beforehand."
        )


def read_scores(source: str | os.PathLike[str] | Frame, column: str = DEFAULT_COLUMN) -> ItemScores:
    """The scores in ``column`` of a file with a header, or of a data frame."""
    values = list[float]()
    with open_table(source, "scores") as table:
        place, report = find_columns(table, {"score": column})["score"], table.report
        for row, cell in table.rows([place]):
            values.append(probability(cell))
            if math.isnan(values[-1]):
                where = f"{table.columns[place]} in row {row:,} of {report.name}"
                raise FileFormatError(f"{where} is {cell!r}, not a number from 0 to 1.", "Give probabilities.")
            report.decimal_commas += isinstance(cell, str) and "," in cell
    if not values:
        raise FileFormatError(f"{report.name} has a header and no rows.", "Give one row per item.")
    scores = np.array(values)
    inside = np.clip(scores, LEAST, 1.0 - LEAST)
    return ItemScores(inside, int((inside != scores).sum()), report)


def score_classes(
    values: ArrayLike,
    *,
    strength: float | None = None,
    accuracy: float | None = None,
    threshold: float = 0.5,
    reward: Reward | None = None,
) -> ScoreClasses:
    """One class for each different score, in the order in which they first appear."""
    if (strength is None) == (accuracy is None):
        raise ProblemError(
            "scores need either a strength or an accuracy.",
            "Give --strength 4 if a score is worth four labels, or --accuracy 0.8 if workers are right that often.",
        )
    scores = np.asarray(values, dtype=np.float64).ravel()
    wrong = ~((scores >= 0.0) & (scores <= 1.0))
    if wrong.any():
        place = int(np.argmax(wrong))
        raise ProblemError(
            f"score {scores[place]:g} of task {place + 1:,} is outside (0, 1).", "Give a probability such as 0.7."
        )
    different, first, count = np.unique(scores, return_index=True, return_counts=True)
    if strength is not None:
        checked_strength(strength)
    for p in different[:1].tolist() + different[-1:].tolist():  # the others are between the two
        prior_of_score(p, strength, accuracy)
    order = np.argsort(first)
    middle = prior_of_score(0.5, strength, accuracy)
    return ScoreClasses(
        different[order], count[order].astype(np.int64), TaskClass(1, middle, threshold, reward or Accuracy()),
        None if strength is None else float(strength), None if accuracy is None else float(accuracy),
    )  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ScoreClasses(Sequence[TaskClass]):
    """A class for each score; all share threshold, reward, and strength or accuracy.

    Tasks that stand for others (``solve.grouping``) need not be whole numbers of them. ``pattern`` has the threshold,
    the reward and a prior of the kind; its numbers do not matter.
    """

    values: Floats
    counts: Ints | Floats
    pattern: TaskClass
    strength: float | None
    accuracy: float | None

    def __len__(self) -> int:
        return len(self.values)

    @overload
    def __getitem__(self, k: int) -> TaskClass: ...
    @overload
    def __getitem__(self, k: slice) -> ScoreClasses: ...
    def __getitem__(self, k: int | slice) -> TaskClass | ScoreClasses:
        if isinstance(k, slice):
            return self.of(self.values[k], self.counts[k])
        if not -len(self) <= k < len(self):
            raise IndexError(k)
        return next(iter(self[k : k + 1 or None]))

    def __iter__(self) -> Iterator[TaskClass]:
        for p, n in zip(self.values.tolist(), self.counts.tolist(), strict=True):
            prior = prior_of_score(p, self.strength, self.accuracy)
            yield TaskClass(max(math.ceil(n), 1), prior, self.pattern.threshold, self.pattern.reward)

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
        return f"<{len(self):,} different scores of {round(float(self.counts.sum())):,} tasks>"

    def of(self, values: Floats, counts: Ints | Floats) -> ScoreClasses:
        """Other scores of the family."""
        return replace(self, values=values, counts=counts)

    def stack(self, depth: int) -> Lattices:
        """The lattices of the scores, one for each."""
        p, s, reward = self.values, self.strength, self.pattern.reward
        deep = depth + reward.ahead
        if s is None:
            prob, truth = coin_beliefs(p, np.full(len(p), self.accuracy), deep)
        else:
            prob, truth = beta_beliefs(s * p, s * (1.0 - p), np.full(len(p), self.pattern.threshold), deep)
        return stack_arrays(2, depth, *rewards_of(prob, truth, reward, depth))

    @property
    def _shared(self) -> tuple[object, ...]:
        return self.strength, self.accuracy, self.pattern.threshold, self.pattern.reward


#: A budget that no lattice reaches: the last level keeps its ceiling.
ENDLESS = 1 << 60


def stack_classes(classes: Sequence[TaskClass], depth: int, budget: int = ENDLESS, *, lumped: bool = True) -> Lattices:
    """The lattices of some classes; as deep as the budget they end. A single one is ``lumped``, or node by node."""
    if isinstance(classes, ScoreClasses) and not (lumped and len(classes) == 1):
        stack = classes.stack(depth)
    else:
        priors, thresholds = [c.prior for c in classes], [c.threshold for c in classes]
        stack = stack_lattices(priors, thresholds, [c.reward for c in classes], depth, lumped=lumped)
    return stack.ended() if depth >= budget else stack


def counts_of(classes: Sequence[TaskClass]) -> Floats:
    """Number of tasks of each class."""
    counts = classes.counts if isinstance(classes, ScoreClasses) else [c.count for c in classes]
    return np.array(counts, dtype=np.float64)


#: Classes whose beliefs are computed at once, where lattices are small.
AT_ONCE = 1 << 14


def many_lattices(classes: Sequence[TaskClass], depth: int) -> Iterator[tuple[Floats, Lattices]]:
    """Tasks of each class and lattices, not lumped, of some classes at a time."""
    for start in range(0, len(classes), AT_ONCE):
        some = classes[start : start + AT_ONCE]
        yield counts_of(some), stack_classes(some, depth, lumped=False)


def patterns(classes: Sequence[TaskClass]) -> Sequence[TaskClass]:
    """Classes with every kind of prior and every reward that some classes have."""
    return (classes.pattern,) if isinstance(classes, ScoreClasses) else classes


def different_rewards(classes: Sequence[TaskClass]) -> list[Reward]:
    """The rewards of some classes, each of them once."""
    return list(dict.fromkeys(c.reward for c in patterns(classes)))


def prior_of_score(p: float, strength: float | None, accuracy: float | None) -> Prior:
    """That of a task whose answer is 1 with probability p by a model; either strength or accuracy is given."""
    return OneCoin(p, accuracy) if accuracy is not None else beta_of_score(p, strength)


def beta_of_score(probability: object, strength: object) -> Beta:
    """A model's probability that the answer is 1, as sure as ``strength`` labels."""
    p, s = number(probability), number(strength)
    if not 0 < p < 1:
        raise ProblemError(f"score {shown(probability)} is outside (0, 1).", "Give a probability such as 0.7.")
    return Beta(checked_strength(strength) * p, s * (1.0 - p))


def checked_strength(strength: object) -> float:
    """How many labels a score is worth."""
    s = number(strength)
    if not 0 < s < 1e9:
        raise ProblemError(
            f"strength {shown(strength)} is not a positive number.", "Give the labels that a score is worth, e.g. 4."
        )
    return s
