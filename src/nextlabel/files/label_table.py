"""Labels that were recorded, one row a label, and what was met on the way to them.

========= ============ ======== ==================================================================
symbol    code         shape    meaning
========= ============ ======== ==================================================================
L         --           --       labels that count
--        task         (L,)     which of ``tasks``, numbered by their first label
--        worker       (L,)     which of ``workers``, -1 where it is blank; None if no worker is known
--        label        (L,)     which of ``labels``; with two of them 1 is the positive one
--        assigned_at  (L,)     seconds, nan where it is blank; None if the times are not known
--        submitted_at (L,)     the same
========= ============ ======== ==================================================================

Rows keep the order of the file. Every task has a label and every worker gave one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.prose import counted, listed

Duplicates = Literal["first", "keep"]


@dataclass(frozen=True, slots=True, eq=False)
class LabelTable:
    """Labels as numbers, with the names they stand for; ``positive``: the word that is a 1, every other one a 0."""

    task: Ints
    worker: Ints | None
    label: Ints
    tasks: tuple[str, ...]
    workers: tuple[str, ...]
    labels: tuple[str, ...]
    positive: str | None = None
    assigned_at: Floats | None = None
    submitted_at: Floats | None = None

    def __len__(self) -> int:
        return len(self.task)

    @property
    def per_task(self) -> Ints:
        """(N,) labels of each task."""
        return np.bincount(self.task, minlength=len(self.tasks)).astype(np.int64)

    def ties(self) -> int:
        """Tasks that no majority decides: two answers or more are the most frequent one."""
        if len(self) == 0:
            return 0
        J = max(1, len(self.labels))
        keys, votes = np.unique(self.task * J + self.label, return_counts=True)
        task = keys // J
        first = np.flatnonzero(np.append(True, task[1:] != task[:-1]))
        winner = votes == np.repeat(np.maximum.reduceat(votes, first), np.diff(np.append(first, len(votes))))
        return int((np.add.reduceat(winner.astype(np.int64), first) > 1).sum())


@dataclass(frozen=True, slots=True)
class ReadReport:
    """What a file held, what was left out of the table, and by which rule."""

    path: str
    rows: int
    blank_labels: int
    blank_tasks: int
    gold_marks: int
    tasks_without_labels: int
    workers_known: bool
    blank_workers: int
    duplicates: int
    duplicates_differ: int
    rule: Duplicates
    by_time: bool
    labels: int
    tasks: int
    workers: int
    least: int
    mean: float
    most: int
    ties: int
    label_counts: dict[str, int]
    positive: str | None
    assigned_known: int
    submitted_known: int

    def sentences(self) -> list[str]:
        """The report in plain English, nothing said about what did not happen."""
        out = [f"{self.path}: {counted(self.rows, 'row')} read, {counted(self.labels, 'label')} used."]
        if self.blank_labels:
            out.append(f"{counted(self.blank_labels, 'row')} without a label left out.")
        if self.blank_tasks:
            out.append(f"{counted(self.blank_tasks, 'row')} without a task left out.")
        if self.gold_marks:
            out.append(f"{counted(self.gold_marks, 'annotation')} marked as ground truth left out: gold, not labels.")
        if self.tasks_without_labels:
            out.append(
                f"{counted(self.tasks_without_labels, 'task has', 'tasks have')} no label left and do not count."
            )
        out += self._workers()
        spread = f"{self.least} to {self.most}, {self.mean:.4g} on average"
        labels = f"{self.most} each" if self.least == self.most else spread
        out.append(f"{counted(self.tasks, 'task')}; labels of a task: {labels}.")
        shares = [f"{name} ({many:,})" for name, many in self.label_counts.items()]
        one = list(self.label_counts)[-1]
        counts_as_one = "" if len(shares) != 2 or one == "1" else f"; {one} counts as 1"
        out.append(f"Labels: {listed(shares)}{counts_as_one}.")
        if self.ties:
            out.append(
                f"{counted(self.ties, 'task is', 'tasks are')} tied under majority vote: ties are kept as they are; "
                "where votes decide they count as half right."
            )
        return out + self._times()

    def _workers(self) -> list[str]:
        if not self.workers_known:
            return ["There is no column of workers: a worker's second answer to a task cannot be told and counts."]
        out = [f"{counted(self.workers, 'worker')}."]
        if self.blank_workers:
            out.append(f"{counted(self.blank_workers, 'label')} without a worker kept, not looked at for duplicates.")
        if self.duplicates:
            first = "the first by the time of submission" if self.by_time else "the first in the file"
            rule = f"{first} counts, the others are left out" if self.rule == "first" else "all are kept, as asked"
            out.append(
                f"{counted(self.duplicates, 'label')} by a worker who had labelled the task before "
                f"({self.duplicates_differ:,} of them unlike the first): {rule}."
            )
        return out

    def _times(self) -> list[str]:
        known = [("assigned", self.assigned_known), ("submitted", self.submitted_known)]
        said = [f"{counted(many, 'label')} with the time it was {word}" for word, many in known if many]
        return [f"{', '.join(said)}."] if said else []
