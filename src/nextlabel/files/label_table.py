"""Labels that were recorded, one row per label, and what was met while they were read.

========= ============ ======== ==================================================================
symbol    code         shape    meaning
========= ============ ======== ==================================================================
L         --           --       labels that count
--        task         (L,)     which of ``tasks``, numbered by their first label
--        worker       (L,)     which of ``workers``, -1 where it is blank; None if no worker is known
--        label        (L,)     which of ``labels``; with two of them 1 is the positive one
--        assigned_at  (L,)     seconds, nan where it is blank; None if the times are not known
--        submitted_at (L,)     the same
--        batch        (L,)     which batch of tasks the label belongs to, -1 where it is blank; None if there is none
========= ============ ======== ==================================================================

Rows keep the order of the file. Every task has a label and every worker gave one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.files.report import TableReport
from nextlabel.prose import counted, listed

Duplicates = Literal["first", "keep"]


@dataclass(frozen=True, slots=True)
class ReadReport:
    """What a file of labels held, what was left out of the table, and by which rule."""

    table: TableReport = field(default_factory=TableReport)
    blank_labels: int = 0
    blank_tasks: int = 0
    gold_marks: int = 0
    tasks_without_labels: int = 0
    workers_known: bool = False
    blank_workers: int = 0
    duplicates: int = 0
    duplicates_differ: int = 0
    rule: Duplicates = "first"
    by_time: bool = False
    labels: int = 0
    tasks: int = 0
    workers: int = 0
    least: int = 0
    mean: float = 0.0
    most: int = 0
    ties: int = 0
    label_counts: dict[str, int] = field(default_factory=dict)
    spellings: dict[str, list[str]] = field(default_factory=dict)
    positive: str | None = None
    assigned_known: int = 0
    submitted_known: int = 0
    times_unread: str = ""

    @property
    def rows(self) -> int:
        """Rows that are not blank."""
        return self.table.rows

    def as_dict(self) -> dict[str, Any]:
        """The report as ``--json`` prints it, under ``read``."""
        own = {name: getattr(self, name) for name in self.__slots__ if name != "table"}
        return self.table.as_dict() | own | {"sentences": self.sentences()}

    def sentences(self) -> list[str]:
        """The report in plain English, nothing said about what did not happen."""
        table = self.table
        out = [
            f"{table.name}: {counted(self.rows, 'row')} read ({table.form}), {counted(self.labels, 'label')} used.",
            *table.notes(),
        ]
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
        out.append(f"{counted(self.tasks, 'task')}; labels per task: {labels}.")
        shares = [f"{name} ({many:,})" for name, many in self.label_counts.items()]
        one = list(self.label_counts)[-1]
        counts_as_one = "" if len(shares) != 2 or one == "1" else f"; {one} counts as 1"
        out.append(f"Labels: {listed(shares)}{counts_as_one}.")
        for name, spelt in self.spellings.items():
            out.append(f"{listed(spelt)} are spellings of one label, {name}.")
        if self.ties:
            out.append(
                f"{counted(self.ties, 'task is', 'tasks are')} tied under majority vote: ties are kept as they are; "
                "where votes decide they count as half right."
            )
        return out + self._times()

    def _workers(self) -> list[str]:
        if not self.workers_known:
            return [
                "There is no column of workers: a second answer by the same worker cannot be recognised and counts."
            ]
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
        unread = [f"Times are not used: {self.times_unread}"] if self.times_unread else []
        return [*([f"{', '.join(said)}."] if said else []), *unread]


@dataclass(frozen=True, slots=True, eq=False)
class LabelTable:
    """Labels as numbers, with the names they stand for; ``positive``: the word that is a 1, every other one a 0.

    ``report`` tells what was met in the file: ``print(*table.report.sentences(), sep="\\n")``.
    """

    task: Ints
    worker: Ints | None
    label: Ints
    tasks: tuple[str, ...]
    workers: tuple[str, ...]
    labels: tuple[str, ...]
    positive: str | None = None
    assigned_at: Floats | None = None
    submitted_at: Floats | None = None
    batch: Ints | None = None
    report: ReadReport = field(default_factory=ReadReport)

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
