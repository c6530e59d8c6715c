"""The tasks of a campaign from a table or from JSON, one by one whatever the size.

============= ====================================================================================
column or key meaning
============= ====================================================================================
id_column     its value is the task's id; it stays in the payload unless it is called ``id``
score_column  its value is the model's score; a column is one only if it is named here, whatever it is called
gold_column   its value is the answer, if it is known; it is not part of the payload. Without it, a column ``gold`` is
prior         in a table written as JSON, e.g. ``[2, 1]``
payload       if there, the payload alone; else all other columns are (``campaign.new_tasks``)
============= ====================================================================================

Tables are CSV, Parquet and data frames. JSON lists and JSON lines may hold any values; ``score`` in them is one by its
name, because a program wrote it.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from typing import IO, Any

from nextlabel.errors import FileFormatError, InputError
from nextlabel.files.columns import known_name, with_point
from nextlabel.files.tables import (
    JSON_FORMATS,
    Format,
    FrameTable,
    Table,
    TableSummary,
    format_of,
    is_frame,
    json_values,
    open_stream,
    read_table,
)

#: Names of columns that are taken for ids and for scores, the best known first.
ID_NAMES = ("id", "key", "task_id", "item_id")
SCORE_NAMES = ("score", "probability", "model_score", "prob")
#: Columns of a table that say something of a task by their names alone.
OWN = ("id", "prior", "gold")
#: Columns of a table, and characters of a column's name.
MOST_COLUMNS, LONGEST_NAME = 500, 200
_NAMES_HINT = "Give every column a name of its own in the first row."


class TaskReader:
    """Tasks as ``campaign.new_tasks`` takes them; ``report`` is complete when the last one has been read."""

    def __init__(
        self,
        source: IO[bytes] | Any,
        name: str,
        format: Format | None = None,
        *,
        id_column: str | None = None,
        score_column: str | None = None,
        gold_column: str | None = None,
    ) -> None:
        self._id, self._score, self._gold = id_column, score_column, gold_column
        #: The columns of a table that its tasks keep; empty for JSON, and where a column ``payload`` is all they keep.
        self.columns: tuple[str, ...] = ()
        self._source = source
        self._table: Table | None = FrameTable(source, name) if is_frame(source) else None
        kind = None if self._table else format or format_of(source, name)
        if kind in JSON_FORMATS:
            self.report, self._values = TableSummary(name, JSON_FORMATS[kind]), json_values(source, name, kind)
            return
        table = self._table = self._table or read_table(source, name, kind)
        check_names(table.columns, table.report.name)
        self.report = table.report
        if "payload" not in table.columns:
            self.columns = tuple(name for name in table.columns if name not in OWN and name != self._gold)

    def __iter__(self) -> Iterator[Any]:
        place = 0
        for place, row in enumerate(self.rows(), start=1):
            names = list(row) if isinstance(row, dict) else []
            for column in (self._id, self._score, self._gold):
                if column is not None and column not in names:
                    raise InputError(
                        f"task {place:,} has no {column[:60]!r}.", f"It has {', '.join(names)[:200] or 'no names'}."
                    )
            task = self._kept(row) if self._table else row
            if self._id is not None:
                task["id"] = row[self._id]
            if self._score is not None:
                task["score"], task["score_column"] = row[self._score], self._score
            if self._gold is not None:
                task["gold"] = row[self._gold] if self._table or self._gold == "gold" else task.pop(self._gold)
            if isinstance(task, dict) and isinstance(task.get("score"), str):
                point = with_point(task["score"])
                self.report.decimal_commas += point != task["score"].strip()
                task["score"] = point
            yield task
        if place == 0:
            raise FileFormatError(f"{self.report.name} has no tasks.", "Give at least one, in rows below the header.")

    def rows(self) -> Iterator[Any]:
        """The rows as they stand, with all their columns."""
        if self._table is None:
            for value in self._values:
                self.report.rows += 1
                yield value
            return
        for number, *cells in self._table.rows():
            row: dict[str, Any] = dict(zip(self._table.columns, map(_plain, cells), strict=True))
            prior = row.get("prior")
            if prior is None or prior == "":
                row.pop("prior", None)
            elif isinstance(prior, str):
                row["prior"] = _json(prior, f"the prior in row {number:,} of {self.report.name}")
            yield row

    def _kept(self, row: dict[str, Any]) -> dict[str, Any]:
        """The task in a row of a table: its columns are the payload, so that none is taken for something else."""
        own = {name: row[name] for name in (*OWN, "payload") if name in row}
        return own if "payload" in own else {**own, "payload": {name: row[name] for name in self.columns}}

    def share_read(self) -> float:
        """How much of a file has been read, from 0 to 1; 0 where that is not known."""
        file = getattr(self._source, "fileobj", None) or self._source  # that of a packed file
        try:
            return min(float(file.tell()) / max(os.fstat(file.fileno()).st_size, 1), 1.0)
        except (AttributeError, OSError, ValueError):
            return 0.0


@contextmanager
def open_tasks(
    path: str | os.PathLike[str], id: str | None = None, score: str | None = None, gold: str | None = None
) -> Iterator[TaskReader]:
    """The tasks in a file, one after the other; columns are named as in ``TaskReader``."""
    with open_stream(path) as stream:
        yield TaskReader(stream, os.fspath(path), id_column=id, score_column=score, gold_column=gold)


def check_names(names: Sequence[str], where: str) -> None:
    """Refuse columns that could not be told apart."""
    longest = max(map(len, names), default=0)
    if len(names) > MOST_COLUMNS or longest > LONGEST_NAME:
        raise FileFormatError(
            f"{where} has {len(names):,} columns, the longest name having {longest:,} characters.",
            f"Give at most {MOST_COLUMNS} columns with names of at most {LONGEST_NAME} characters.",
        )
    if "" in names:
        raise FileFormatError(f"column {names.index('') + 1} of {where} has no name.", _NAMES_HINT)
    twice = next((name for name, many in Counter(names).items() if many > 1), None)
    if twice is not None:
        raise FileFormatError(f"two columns of {where} are called {twice[:60]!r}.", _NAMES_HINT)


def guess_columns(names: Sequence[str]) -> tuple[str, str]:
    """The columns that look like ids and like a model's scores; empty where none does."""
    return known_name(names, ID_NAMES) or "", known_name(names, SCORE_NAMES) or ""


def _plain(cell: Any) -> Any:
    """A cell as JSON can hold it: moments as text."""
    return cell.isoformat() if isinstance(cell, date) else cell


def _json(text: str, what: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise FileFormatError(f"{what} is not JSON.", "Write e.g. [2, 1].") from None
