"""Labels per task, equal tasks counted once: all that a prior can be learnt from when workers are exchangeable.

====== ========= ========= ==================================================================
symbol code      shape     meaning
====== ========= ========= ==================================================================
n_ij   counts    (C, J)    labels with answer j of the tasks in row i; no two rows are equal
c_i    tasks     (C,)      how many tasks are like that
m_i    labels    (C,)      sum_j n_ij
a_i    ones      (C,)      n_i1, with two answers
====== ========= ========= ==================================================================

Tasks without labels teach nothing and are left out. Cost: one sort of the tasks; whatever is computed afterwards costs
by the row; a million tasks with ten labels each have 11 rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from nextlabel.arrays import Floats, Ints
from nextlabel.errors import InputError
from nextlabel.files.labels import LabelTable, as_label_table


@dataclass(frozen=True, slots=True, eq=False)
class LabelCounts:
    """Different tasks, and how many there are of each; made by ``of_labels``, ``of_padded``, ``of_counts`` or
    ``of_ones``.
    """

    counts: Ints
    tasks: Ints

    @classmethod
    def of_ones(cls, ones: ArrayLike, labels: ArrayLike) -> LabelCounts:
        """From the number of ones and the number of labels of each task."""
        a, m = np.broadcast_arrays(_whole("ones", ones), _whole("labels", labels))
        if (a > m).any():
            i = int(np.argmax(a > m))
            raise InputError(f"task {i} has {a[i]} ones among {m[i]} labels.", "Give ones first, then labels.")
        return cls.of_counts(np.column_stack([m - a, a]))

    @classmethod
    def of_counts(cls, counts: ArrayLike) -> LabelCounts:
        """From the (N, J) numbers of labels with each answer."""
        given = _whole("counts", counts)
        if given.ndim != 2 or given.shape[1] < 2:
            raise InputError(
                f"counts have the shape {given.shape}.",
                "Give one row per task and one column per answer, at least two.",
            )
        given = given[given.sum(axis=1) > 0]
        if len(given) == 0:
            raise InputError("no task has a label.", "Give at least one task with labels.")
        different, tasks = _different(given)
        return cls(different, tasks)

    @classmethod
    def of(cls, labels: Any) -> LabelCounts:
        """From labels in any form: a path, a data frame, a ``LabelTable``, or counts as they are."""
        return labels if isinstance(labels, LabelCounts) else cls.of_labels(as_label_table(labels))

    @classmethod
    def of_labels(cls, table: LabelTable) -> LabelCounts:
        """From a table with one row per label, as ``files.labels.read_labels`` makes it."""
        N, J = len(table.tasks), len(table.labels)
        return cls.of_counts(np.bincount(table.task * J + table.label, minlength=N * J).reshape(N, J))

    @classmethod
    def of_padded(cls, labels: Ints, answers: int = 2) -> LabelCounts:
        """From the (N, most) labels of each task, negative past a task's last, as a replay has them."""
        if labels.size and labels.max() >= answers:
            raise InputError(
                f"a label is {labels.max()} where {answers} answers are 0 to {answers - 1}.",
                "Say how many answers there are.",
            )
        return cls.of_counts(np.column_stack([(labels == j).sum(axis=1) for j in range(answers)]))

    def __len__(self) -> int:
        return int(self.tasks.sum())

    @property
    def answers(self) -> int:
        """J."""
        return int(self.counts.shape[1])

    @property
    def labels(self) -> Ints:
        """Labels of a task of each row."""
        return np.asarray(self.counts.sum(axis=1), dtype=np.int64)

    @property
    def ones(self) -> Ints:
        """Labels 1 of a task of each row."""
        return self.counts[:, 1]

    @property
    def totals(self) -> Ints:
        """(J,) labels with each answer over all tasks."""
        return np.asarray(self.tasks @ self.counts, dtype=np.int64)

    @property
    def shares(self) -> Floats:
        """(C, J) shares of the answers."""
        return np.asarray(self.counts / self.labels[:, None], dtype=np.float64)

    def with_task(self, counts: ArrayLike) -> LabelCounts:
        """One task more."""
        rows = np.concatenate([self.counts, _whole("counts", counts)[None]])
        different, back = np.unique(rows, axis=0, return_inverse=True)
        tasks = np.bincount(back.ravel(), weights=np.append(self.tasks, 1)).astype(np.int64)
        return LabelCounts(different, tasks)


def _whole(name: str, value: ArrayLike) -> Ints:
    given = np.asarray(value)
    if given.dtype.kind not in "iub" and not (given.dtype.kind == "f" and (given == np.rint(given)).all()):
        raise InputError(f"{name} are not whole numbers.", "Give numbers of labels.")
    if given.size and given.min() < 0:
        raise InputError(f"{name} of {given.min():g} are below 0.", "Give numbers of labels.")
    return given.astype(np.int64)


def _different(rows: Ints) -> tuple[Ints, Ints]:
    """Different rows in rising order, and how often each occurs; by one key per row where it fits in 63 bits."""
    sizes = [int(x) + 1 for x in rows.max(axis=0)]
    if prod(sizes) >= 2**62:
        different, tasks = np.unique(rows, axis=0, return_counts=True)
        return different, tasks.astype(np.int64)
    keys, tasks = np.unique(np.ravel_multi_index(tuple(rows.T), sizes), return_counts=True)
    return np.column_stack(np.unravel_index(keys, sizes)).astype(np.int64), tasks.astype(np.int64)
