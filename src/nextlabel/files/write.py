"""CSV as it is written everywhere: UTF-8, commas, quotation marks where they are needed, a file whole or not at all."""

from __future__ import annotations

import csv
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from nextlabel.errors import InputError


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
