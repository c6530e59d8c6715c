"""Results of a campaign or of ``nextlabel workers``: one row per task with its label and the label's probability.

An optional column ``gold`` marks the tasks whose truth the method was told; it is empty for all others.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nextlabel.arrays import Bools, Floats
from nextlabel.errors import FileFormatError
from nextlabel.files.columns import cell_text, find_columns, with_point
from nextlabel.files.open_table import Table, read_source, table_of_objects
from nextlabel.files.report import TableReport
from nextlabel.prose import counted


@dataclass(frozen=True, slots=True, eq=False)
class ResultTable:
    """``tasks`` and ``labels`` as they are spelt, ``probability`` (N,) of each label, ``told`` (N,) where gold was."""

    tasks: tuple[str, ...]
    labels: tuple[str, ...]
    probability: Floats
    told: Bools
    table: TableReport = field(default_factory=TableReport)

    def __len__(self) -> int:
        return len(self.tasks)

    def sentences(self) -> list[str]:
        """What was found, in plain English."""
        table = self.table
        out = [f"{table.name}: {counted(table.rows, 'row')} read ({table.form}).", *table.notes()]
        if self.told.any():
            out.append(f"{counted(int(self.told.sum()), 'task')} with gold left out: their truth was told, not found.")
        return out

    def as_dict(self) -> dict[str, Any]:
        """The report as ``--json`` prints it, under ``read``."""
        return self.table.as_dict() | {"sentences": self.sentences()}


def read_results(source: Any, *, task: str = "task", label: str = "label") -> ResultTable:
    """Results from the path of a table or from a data frame."""

    def read(table: Table) -> ResultTable:
        return _read(table, task, label)

    return read_source(source, "results", read, lambda values, name: read(table_of_objects(values, name, "json")))


def _read(table: Table, task: str, label: str) -> ResultTable:
    at = find_columns(table, {"task": task, "label": label, "score": "probability"})
    name = table.report.name
    places = [at["task"], at["label"], at["score"]]
    marked = "gold" in table.columns
    tasks, labels, probability, told = [], [], [], []
    for batch in table.batches([*places, table.columns.index("gold")] if marked else places):
        for number, *cells in zip(batch.numbers, *batch.columns, strict=True):
            tasks.append(cell_text(cells[0]))
            labels.append(cell_text(cells[1]))
            probability.append(_probability(cells[2], number, name))
            told.append(marked and bool(cell_text(cells[3])))
            if not tasks[-1] or not labels[-1]:
                raise FileFormatError(
                    f"row {number:,} of {name} has no {'label' if tasks[-1] else 'task'}.",
                    "Give each task its label and the probability of the label.",
                )
    if not tasks:
        raise FileFormatError(f"{name} has a header and no rows.", "Give one row per task.")
    if len(set(tasks)) < len(tasks):
        seen: set[str] = set()
        twice = next(one for one in tasks if one in seen or seen.add(one))  # type: ignore[func-returns-value]
        raise FileFormatError(f"{name} has two rows for task {twice!r}.", "Give one row per task.")
    return ResultTable(tuple(tasks), tuple(labels), np.array(probability), np.array(told, dtype=np.bool_), table.report)


def _probability(cell: Any, row: int, name: str) -> float:
    text = cell_text(cell) if isinstance(cell, str) else str(cell)
    try:
        found = float(with_point(text))
    except ValueError:
        found = float("nan")
    if not 0.0 <= found <= 1.0:
        raise FileFormatError(
            f"row {row:,} of {name} has the probability {text!r}.", "Give the probability of the label, from 0 to 1."
        )
    return found
