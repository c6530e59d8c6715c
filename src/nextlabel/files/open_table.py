"""A table from anything that holds one: a file's path, an open file, or a data frame.

The format follows from the name where its ending is known (``.csv``, ``.tsv``, ``.txt``, ``.jsonl``, ``.ndjson``,
``.json``, ``.parquet``, each also packed as ``.gz``), else from the first bytes.
"""

from __future__ import annotations

import gzip
import os
import shutil
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import chain
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, Literal, Protocol, TypeVar, cast

from nextlabel.errors import FileFormatError, InputError
from nextlabel.files.delimited import Batch, DelimitedTable
from nextlabel.files.frames import FrameTable, NamedColumns, ParquetTable, is_frame
from nextlabel.files.json_values import read_json_lines, read_json_list
from nextlabel.files.report import TableReport

Format = Literal["csv", "jsonl", "json", "parquet"]
Read = TypeVar("Read")
#: Formats by the ending of a name.
ENDINGS: dict[str, Format] = {
    ".csv": "csv", ".tsv": "csv", ".tab": "csv", ".txt": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "json",
    ".parquet": "parquet", ".pq": "parquet",
}  # fmt: skip
#: Characters of one JSON value where all of them are held in memory anyway.
LONGEST = 1 << 27
ALLOWED = "Give CSV, TSV, JSON lines, a JSON list or Parquet."


class Table(Protocol):
    """Named columns and their rows in batches; ``report`` is complete after the last one."""

    columns: list[str]
    report: TableReport

    def batches(self, places: Sequence[int] | None = None) -> Iterator[Batch]:
        """All rows, of the columns at ``places`` or of all."""
        ...


@contextmanager
def open_stream(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A file's bytes, unpacked if it is packed by gzip."""
    path = Path(path)
    if path.is_dir():
        raise FileFormatError(f"{path} is a folder, not a file.", "Give the path of a file.")
    try:
        stream: IO[bytes] = path.open("rb")
    except FileNotFoundError as error:
        raise FileFormatError(f"there is no file {path}.", "Check the path.") from error
    except OSError as error:
        raise FileFormatError(f"{path} cannot be read: {error.strerror or error}.", ALLOWED) from error
    with ExitStack() as closing:
        closing.enter_context(stream)
        if not stream.seekable():  # a pipe: its beginning is looked at before it is read
            pipe, stream = stream, closing.enter_context(TemporaryFile())
            shutil.copyfileobj(pipe, stream)
            stream.seek(0)
        packed = stream.read(2) == b"\x1f\x8b"
        stream.seek(0)
        try:
            yield cast("IO[bytes]", gzip.GzipFile(fileobj=stream)) if packed else stream
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise FileFormatError(f"{path} cannot be unpacked: {error}.", "Pack it again.") from error


def format_of(stream: IO[bytes], name: str) -> Format:
    """The format of a file, by the ending of its name or by how it starts."""
    stem, ending = os.path.splitext(name.lower().removesuffix(".gz"))
    if ending in ENDINGS and stem:
        return ENDINGS[ending]
    start = stream.read(1024)
    stream.seek(0)
    if start.startswith(b"PAR1"):
        return "parquet"
    if start.startswith(b"PK\x03\x04"):
        raise FileFormatError(f"{name} is a workbook or another packed file.", "Save the sheet as 'CSV UTF-8'.")
    first = start.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    return {b"[": "json", b"{": "jsonl"}.get(first, "csv")  # type: ignore[return-value]


def open_table(stream: IO[bytes], name: str, format: Format | None = None) -> Table:
    """The table in a file; JSON is read at once and must be one object per row."""
    kind = format or format_of(stream, name)
    if kind == "csv":
        return DelimitedTable(stream, name)
    if kind == "parquet":
        return ParquetTable(stream, name)
    return table_of_objects(list(json_values(stream, name, kind, LONGEST)), name, kind)


def json_values(stream: IO[bytes], name: str, kind: Format, longest: int) -> Iterator[Any]:
    """The values of JSON lines or of a JSON list."""
    read = read_json_lines if kind == "jsonl" else read_json_list
    stream.seek(0)
    return read(stream, name, longest)


def table_of_objects(values: Sequence[Any], name: str, kind: Format) -> Table:
    """JSON objects as a table whose columns are all the keys that occur."""
    for place, value in enumerate(values, start=1):
        if not isinstance(value, Mapping):
            raise FileFormatError(f"value {place:,} of {name} is not a JSON object.", "Give one object per row.")
    if not values:
        raise FileFormatError(f"{name} is a list without rows.", "Give at least one object.")
    keys = dict.fromkeys(chain.from_iterable(values))
    format = "JSON lines" if kind == "jsonl" else "JSON list"
    return FrameTable({key: [value.get(key) for value in values] for key in keys}, name, format)


def read_source(
    source: Any, what: str, read: Callable[[Table], Read], read_json: Callable[[list[Any], str], Read]
) -> Read:
    """What ``read`` makes of a table in a data frame or a file, or ``read_json`` of the values of a JSON file.

    ``what`` is the name of what is read, for the message where it can be read from nothing of that kind.
    """
    if is_frame(source):
        return read(FrameTable(source, source.name if isinstance(source, NamedColumns) else "the data frame"))
    if not isinstance(source, str | os.PathLike):
        raise InputError(
            f"{what} cannot be read from {type(source).__name__}.", "Give the path of a file or a data frame."
        )
    name = os.fspath(source)
    with open_stream(source) as stream:
        kind = format_of(stream, name)
        if kind != "json":
            return read(open_table(stream, name, kind))
        values = list(json_values(stream, name, kind, LONGEST))
    return read_json(values, name)
