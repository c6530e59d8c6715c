"""Where tasks stand: a task's state, and groups of tasks that stand alike.

====== ======= ========= ==================================================================
symbol code    shape     meaning
====== ======= ========= ==================================================================
c      entry   (G,)      number of the class
i      node    (G,)      belief node of the class's own lattice (``beliefs.simplex.node_of_counts``)
w      w       (G,)      labels of each of the tasks in flight
--     members (G,)      tasks of the group
====== ======= ========= ==================================================================
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from nextlabel.arrays import Ints
from nextlabel.beliefs.simplex import nodes_of
from nextlabel.errors import ProblemError
from nextlabel.problem.problem import TaskClass

HINT = "Give four arrays of one length: class number, node, labels in flight, tasks."


class Groups(NamedTuple):
    """Tasks by class, belief and labels in flight."""

    entry: Ints
    node: Ints
    w: Ints
    members: Ints

    @property
    def tasks(self) -> int:
        """K, the number of tasks."""
        return int(self.members.sum())

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
    members = np.array([c.count for c in classes], dtype=np.int64)
    return Groups(np.arange(len(classes), dtype=np.int64), none, none.copy(), members)


def check_groups(groups: Sequence[Any], classes: Sequence[TaskClass]) -> Groups:
    """Groups of tasks of ``classes``, the empty ones left out, or a ProblemError."""
    if not classes:
        raise ProblemError("there are no classes of tasks.", "Give at least one.")
    if len({c.answers for c in classes}) > 1:
        raise ProblemError("tasks with different numbers of answers are mixed.", "Give them the same number.")
    if len(groups) != 4:
        raise ProblemError(f"groups are {len(groups)} arrays.", HINT)
    columns = [_whole(column) for column in groups]
    if len({len(column) for column in columns}) > 1:
        raise ProblemError("the arrays of the groups differ in length.", HINT)
    if any(np.any(column < 0) for column in columns):
        raise ProblemError("a group has a number below 0.", HINT)
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
        raise ProblemError("an array of the groups does not hold whole numbers in one row.", HINT)
    return given.astype(np.int64)


class TaskState(NamedTuple):
    """``node`` of the task's belief lattice and ``w`` labels in flight."""

    node: int
    w: int
