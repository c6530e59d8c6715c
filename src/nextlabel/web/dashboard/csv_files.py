"""A CSV file as people have it: any of four separators, UTF-8 with or without a mark, rows as a spreadsheet counts.

The header is row 1. Whatever is wrong is said in one sentence with the number of the row.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from typing import IO

from nextlabel.errors import FileFormatError

SEPARATORS = ",;\t|"
#: Bytes looked at to tell the separator; columns, and characters of a column's name.
SNIFF, MOST_COLUMNS, LONGEST_NAME = 1 << 16, 500, 200
_MEND = "Mend the file and choose it again; nothing was made."


def read_rows(file: IO[bytes]) -> Iterator[tuple[int, list[str]]]:
    """(1, header), then (row, cells) of every row that is not empty; all have as many cells as the header."""
    file.seek(0)
    separator = _separator(file.read(SNIFF))
    file.seek(0)
    row = 0
    columns = 0
    try:
        for cells in csv.reader(_lines(file), delimiter=separator, strict=True):
            row += 1
            if not any(cell.strip() for cell in cells):
                continue
            if columns == 0:
                cells = _header(cells)
                columns = len(cells)
                yield 1, cells
                continue
            if len(cells) != columns:
                raise FileFormatError(f"row {row:,} has {_cells(len(cells))} and the header {columns}.", _MEND)
            if any("\x00" in cell for cell in cells):
                raise FileFormatError(f"row {row:,} has a null character.", _MEND)
            yield row, cells
    except UnicodeDecodeError:
        raise FileFormatError(f"row {row + 1:,} is not UTF-8.", "Save the file as 'CSV UTF-8'.") from None
    except csv.Error as error:
        raise FileFormatError(f"row {row + 1:,} cannot be read: {error}.", _MEND) from None
    if columns == 0:
        raise FileFormatError("the file is empty.", "Choose a CSV whose first row names the columns.")


def _lines(file: IO[bytes]) -> Iterator[str]:
    for number, line in enumerate(file):
        yield line.decode("utf-8-sig" if number == 0 else "utf-8")


def _separator(start: bytes) -> str:
    """The separator that the first line has most of."""
    line = start.decode("utf-8-sig", "replace").lstrip("\r\n").partition("\n")[0]
    return max(SEPARATORS, key=lambda mark: (line.count(mark), mark == ","))


def _header(cells: list[str]) -> list[str]:
    names = [cell.strip() for cell in cells]
    hint = "Give every column a name of its own in the first row."
    if "" in names:
        raise FileFormatError(f"row 1: column {names.index('') + 1} has no name.", hint)
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise FileFormatError(f"row 1: two columns are called {twice[:60]!r}.", hint)
    if len(names) > MOST_COLUMNS or max(map(len, names)) > LONGEST_NAME:
        raise FileFormatError(f"row 1: there are more than {MOST_COLUMNS} columns or a name is too long.", hint)
    return names


def _cells(number: int) -> str:
    return "1 cell" if number == 1 else f"{number} cells"
