"""Rows as CSV files and as plain text."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Row = dict[str, Any]


def write_csv(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Rows below a header, an empty cell where a value is None; a blank line if there are no rows."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]) if rows else [], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def read_csv(path: str | Path) -> list[Row]:
    """Rows that ``write_csv`` wrote: numbers as numbers, empty cells as None."""
    with Path(path).open(newline="", encoding="utf-8") as stream:
        return [{key: _value(text) for key, text in row.items()} for row in csv.DictReader(stream)]


def to_eight_digits(rows: Sequence[Mapping[str, Any]]) -> list[Row]:
    """The rows with floats shortened to eight significant digits, for files that are committed."""
    return [{key: f"{x:.8g}" if isinstance(x, float) else x for key, x in row.items()} for row in rows]


def text_table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]], *notes: str) -> str:
    """A title, aligned columns (the first to the left, the others to the right), and notes below."""
    cells = [list(header), *map(list, rows)]
    widths = [max(len(row[k]) for row in cells) for k in range(len(header))]
    lines = ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in cells]
    return "\n".join([title, "", lines[0], "  ".join("-" * width for width in widths), *lines[1:], *notes])


def _value(text: str) -> object:
    if text == "":
        return None
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text
