"""Rows as committed files and plain text have them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Row = dict[str, Any]


def to_eight_digits(rows: Sequence[Mapping[str, Any]]) -> list[Row]:
    """The rows with floats shortened to eight significant digits, for files that are committed."""
    return [{key: f"{x:.8g}" if isinstance(x, float) else x for key, x in row.items()} for row in rows]


def text_table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]], *notes: str) -> str:
    """A title, aligned columns (the first to the left, the others to the right), and notes below."""
    cells = [list(header), *map(list, rows)]
    widths = [max(len(row[k]) for row in cells) for k in range(len(header))]
    lines = ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in cells]
    return "\n".join([title, "", lines[0], "  ".join("-" * width for width in widths), *lines[1:], *notes])
