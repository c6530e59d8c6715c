"""Tasks from a body: CSV with a header, JSON lines, or a JSON list, one after the other whatever the size.

============= ====================================================================================
column or key meaning
============= ====================================================================================
id_column     its value is the task's id; it stays in the payload unless it is called ``id``
score_column  its value is the model's score; workers are not shown it
prior         in CSV written as JSON, e.g. ``[2, 1]``
payload       if there, the payload alone; else all other columns are (``campaign.intake``)
============= ====================================================================================
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from typing import IO, Any

from nextlabel.errors import FileFormatError, InputError
from nextlabel.service.json_list import read_list

#: Bytes of one line.
LONGEST_LINE = 1 << 20


def read_csv(file: IO[bytes]) -> Iterator[dict[str, Any]]:
    """Rows as tables of texts."""
    texts = (line.decode("utf-8-sig" if n == 0 else "utf-8") for n, line in enumerate(_lines(file)))
    reader = csv.reader(texts, strict=True)
    place = 0
    try:
        header = [name.strip() for name in next(reader, [])]
        if not header or "" in header or len(set(header)) < len(header):
            raise FileFormatError(
                "the CSV has no header, or a column without a name or with another's.", "Name each column once."
            )
        for cells in reader:
            if not cells:
                continue
            place += 1
            if len(cells) != len(header):
                raise FileFormatError(
                    f"task {place} has {len(cells)} columns and the header {len(header)}.", "Quote cells with commas."
                )
            row: dict[str, Any] = dict(zip(header, cells, strict=True))
            if row.get("prior"):
                row["prior"] = _loads(row["prior"], f"the prior of task {place}")
            else:
                row.pop("prior", None)
            yield row
    except UnicodeDecodeError:
        raise FileFormatError(f"the CSV is not UTF-8 after task {place}.", "Save it as UTF-8.") from None
    except csv.Error as error:
        raise FileFormatError(f"the CSV cannot be read after task {place}: {error}.", "Mend that row.") from None


def read_lines(file: IO[bytes]) -> Iterator[Any]:
    """A JSON value a line; empty lines are left out."""
    place = 0
    for line in _lines(file):
        if line.strip():
            place += 1
            yield _loads(line, f"task {place}")


#: How a body is read, by its media type.
READERS: dict[str, Callable[[IO[bytes]], Iterator[Any]]] = {
    "text/csv": read_csv,
    "application/x-ndjson": read_lines,
    "application/jsonl": read_lines,
    "application/json": read_list,
}


def with_columns(tasks: Iterator[Any], id_column: str | None, score_column: str | None) -> Iterator[Any]:
    """Tasks with their id and score where ``campaign.intake`` looks for them."""
    for place, task in enumerate(tasks, start=1):
        names = list(task) if isinstance(task, dict) else []
        for column in (id_column, score_column):
            if column is not None and column not in names:
                raise InputError(
                    f"task {place} has no {column[:60]!r}.", f"It has {', '.join(names)[:200] or 'no names'}."
                )
        if id_column is not None:
            task["id"] = task[id_column]
        if score_column is not None and score_column != "score":
            task["score"] = task.pop(score_column)
        yield task


def _lines(file: IO[bytes]) -> Iterator[bytes]:
    place = 0
    while line := file.readline(LONGEST_LINE + 1):
        place += 1
        if len(line) > LONGEST_LINE:
            raise FileFormatError(f"line {place} is longer than {LONGEST_LINE:,} bytes.", "Give shorter lines.")
        yield line


def _loads(text: str | bytes, what: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise FileFormatError(f"{what} is not JSON.", "Mend it; nothing was taken in.") from None
