"""CSV as it is written everywhere: UTF-8, commas, quotation marks where they are needed, a file whole or not at all."""

from __future__ import annotations

import csv
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from nextlabel.errors import InputError
from nextlabel.wording import needs

#: What the texts that spreadsheets run begin with, some of them only after blanks that they skip; numbers are harmless.
_RUN = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
#: Rows of a sheet.
SHEET_ROWS = 1_048_576
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[IO[str]]:
    """A text file that appears at ``path`` when the block ends, and not at all if it fails."""
    path = Path(path)
    try:
        with tempfile.TemporaryDirectory(dir=path.absolute().parent, prefix=".nextlabel-") as folder:
            partial = Path(folder) / path.name
            with partial.open("w", newline="", encoding="utf-8") as stream:
                yield stream
            partial.replace(path)
    except OSError as error:
        raise InputError(
            f"cannot write {path}: {error.strerror or error}.", "Give a path in a folder that can be written to."
        ) from error


def csv_text(rows: Iterable[Sequence[Any]]) -> str:
    """Rows as lines of CSV; nothing stands where a cell is None."""
    text = _Lines()
    csv.writer(text).writerows(rows)
    return "".join(text)


def export_text(rows: Iterable[Sequence[Any]]) -> str:
    """Rows as lines of CSV for people who open them in a spreadsheet: what others wrote must not run there.

    A text that a spreadsheet would take for a formula gets an apostrophe before it. Numbers stay as they are.
    """
    return csv_text([_harmless(cell) for cell in row] for row in rows)


def write_workbook(stream: IO[bytes], rows: Iterable[Sequence[Any]]) -> None:
    """Rows as the sheet of a workbook (openpyxl, the extra ``excel``); what others wrote does not run there."""
    with needs("a workbook", "openpyxl", "'nextlabel[excel]', or use CSV"):
        from openpyxl import Workbook
        from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE
    book = Workbook(write_only=True)
    sheet = book.create_sheet()
    for number, row in enumerate(rows):
        if number == SHEET_ROWS:
            raise InputError(f"a sheet has at most {SHEET_ROWS:,} rows.", "Use CSV.")
        cells = map(_harmless, row)
        sheet.append([ILLEGAL_CHARACTERS_RE.sub("", one) if isinstance(one, str) else one for one in cells])
    book.save(stream)


def _harmless(cell: Any) -> Any:
    if isinstance(cell, str) and len(cell) > 1 and cell.startswith(_RUN) and _NUMBER.fullmatch(cell) is None:
        return f"'{cell}"
    return cell


class _Lines(list[str]):
    """Lines that end as Unix ends them; the csv module writes them with both marks, and so puts cells that hold either
    mark in quotation marks.
    """

    def write(self, line: str) -> int:
        """Take one line."""
        self.append(line.removesuffix("\r\n") + "\n")
        return len(line)


def write_csv(rows: Sequence[Mapping[str, Any]], path: str | os.PathLike[str]) -> None:
    """Rows below a header with the keys of the first one; an empty line if there are no rows."""
    header = list(rows[0]) if rows else []
    with whole_file(path) as stream:
        stream.write(csv_text([header]))
        stream.write(csv_text([row.get(name) for name in header] for row in rows))
