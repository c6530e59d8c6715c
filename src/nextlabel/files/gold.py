"""The truth about tasks, where it is known: one row per task, in any form that labels may have."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nextlabel.arrays import Ints
from nextlabel.errors import FileFormatError
from nextlabel.files.columns import code_gold
from nextlabel.files.labels import LabelTable, read_columns
from nextlabel.files.report import TableReport
from nextlabel.prose import counted


@dataclass(frozen=True, slots=True, eq=False)
class Gold:
    """``label``: (N,) the truth about the tasks of a table as its labels are coded, -1 where it is not known."""

    label: Ints
    known: int
    blank: int = 0
    unknown_tasks: int = 0
    table: TableReport = field(default_factory=TableReport)

    def sentences(self) -> list[str]:
        """What was found, in plain English."""
        table = self.table
        out = [
            f"{table.name}: {counted(table.rows, 'row')} read ({table.form}), gold for {self.known:,} of "
            f"{counted(len(self.label), 'task')}.",
            *table.notes(),
        ]
        if self.blank:
            out.append(f"{counted(self.blank, 'row')} of gold without a task or a label left out.")
        if self.unknown_tasks:
            out.append(f"Gold for {counted(self.unknown_tasks, 'task')} without labels left out.")
        return out

    def as_dict(self) -> dict[str, Any]:
        """The report as ``--json`` prints it, under ``read``."""
        own = {"known": self.known, "blank": self.blank, "unknown_tasks": self.unknown_tasks}
        return self.table.as_dict() | own | {"sentences": self.sentences()}


def read_gold(source: Any, table: LabelTable, *, task: str = "task", label: str = "label") -> Gold:
    """The truth about the tasks of ``table``; in an export of Label Studio, annotations marked as ground truth."""
    found = read_columns(source, {"task": task, "label": label}, table.positive, gold=True)
    path = found.report.name
    rows = np.flatnonzero((found.task.codes >= 0) & (found.label.codes >= 0))
    tasks, labels = found.task.kept(rows), found.label.kept(rows)
    place = {name: i for i, name in enumerate(table.tasks)}
    at = np.array([place.get(name, -1) for name in tasks.names], dtype=np.int64)
    if not (at >= 0).any():
        shown = repr(tasks.names[0]) if tasks.names else "none"
        raise FileFormatError(
            f"{path} has no gold for any task that has labels: its first task is {shown}, that of the labels is "
            f"{table.tasks[0]!r}.",
            "Give the gold that belongs to these labels, with the same names of tasks.",
        )
    met = at[tasks.codes] >= 0
    value = code_gold(labels.names, table.labels, table.positive, path)[labels.codes]
    out = np.full(len(table.tasks), -1, dtype=np.int64)
    to, said = at[tasks.codes[met]], value[met]
    out[to[::-1]] = said[::-1]
    if (out[to] != said).any():
        k = int(np.argmax(out[to] != said))
        raise FileFormatError(
            f"{path} says both {table.labels[out[to[k]]]} and {table.labels[said[k]]} for task {table.tasks[to[k]]!r}.",
            "Give each task one gold label.",
        )
    return Gold(
        label=out,
        known=int((out >= 0).sum()),
        blank=len(found) - len(rows),
        unknown_tasks=int((at < 0).sum()),
        table=found.report,
    )


def read_answers(path: str | os.PathLike[str], task: str = "task", label: str = "label") -> dict[str, str]:
    """The answer of each task in a file; rows without an answer are left out, and two answers to a task refused."""
    found = read_columns(path, {"task": task, "label": label}, gold=True)
    answers: dict[str, str] = {}
    for row in range(len(found.task.codes)):
        if found.task.codes[row] < 0 or found.label.codes[row] < 0:
            continue
        name, said = found.task.names[found.task.codes[row]], found.label.names[found.label.codes[row]]
        if answers.setdefault(name, said) != said:
            raise FileFormatError(f"{path} says two things of task {name[:60]!r}.", "Give each task one answer.")
    return answers
