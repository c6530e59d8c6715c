"""A table from anything that holds one: a path, an open file (text, JSON, Parquet), a data frame, columns by name.

The format follows from the name where its ending is known (``.csv``, ``.tsv``, ``.txt``, ``.jsonl``, ``.ndjson``,
``.json``, ``.parquet``, each also packed as ``.gz``), else from the first bytes.

Tables that are in memory or in Parquet files: pandas, Polars and Arrow tables, and mappings from names to columns.

No package is imported for them: a column is anything that can be iterated over. Frames of other libraries come through
the data-frame interchange protocol (``__dataframe__``) or Arrow's (``__arrow_c_stream__``). These and Parquet, which is
read in batches, need pyarrow (the extra ``data``). Moments become ``datetime``; NaN and NaT become None, a blank cell.

The values of a JSON list or of JSON lines, one after the other, without holding all of them.

JSON is UTF-8, with or without a byte order mark. A value may have ``longest`` characters.
"""

from __future__ import annotations

import codecs
import gzip
import json
import os
import shutil
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import chain
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, Literal, Protocol, TypeGuard, TypeVar, cast

import numpy as np

from nextlabel.errors import FileFormatError, InputError
from nextlabel.files.delimited import Batch, DelimitedTable
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

#: Rows of a Parquet file that are held at once.
BATCH = 1 << 14

#: Bytes read at once, and characters that one value may have.
CHUNK, LONGEST_VALUE = 1 << 16, 1 << 20
_SPACE = " \t\r\n"


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


class DataFrameLike(Protocol):
    """What is asked of a data frame: the names of its columns, and a column by its name."""

    @property
    def columns(self) -> Any:
        """The names."""
        ...

    def __getitem__(self, name: Any, /) -> Any:
        """A column."""
        ...


#: Tables that are in memory.
Frame = DataFrameLike | Mapping[str, Sequence[Any]]


class FrameTable:
    """A data frame, or a mapping from names to columns of one length."""

    def __init__(self, frame: Frame, name: str, format: str = "data frame") -> None:
        self._frame = with_columns(frame)
        self.columns = [str(column).strip() for column in self._names()]
        self.report = TableReport(name, format)
        if not self.columns:
            raise FileFormatError(f"{name} has no columns.", "Give a table with named columns.")

    def batches(self, places: Sequence[int] | None = None) -> Iterator[Batch]:
        """All rows at once, of the columns at ``places`` or of all; the first row is row 1."""
        names = self._names()
        wanted = range(len(names)) if places is None else places
        frame: Any = self._frame
        columns = [cells_of(frame[names[k]]) for k in wanted]
        length = len(columns[0]) if columns else 0
        if any(len(column) != length for column in columns):
            raise FileFormatError(f"the columns of {self.report.name} differ in length.", "Give every row all cells.")
        self.report.rows = length
        if length:
            yield Batch(range(1, length + 1), columns)

    def _names(self) -> list[Any]:
        frame: Any = self._frame
        return list(frame if isinstance(frame, Mapping) else getattr(frame, "column_names", None) or frame.columns)


class ParquetTable:
    """A Parquet file."""

    def __init__(self, stream: IO[bytes], name: str) -> None:
        try:
            from pyarrow import ArrowException, parquet
        except ImportError as error:
            raise InputError(
                f"{name} is a Parquet file, which needs the package pyarrow.", "pip install 'nextlabel[data]'."
            ) from error
        try:
            self._file = parquet.ParquetFile(stream)
        except (ArrowException, OSError) as error:
            why = " ".join(str(error).split()).rstrip(".")[:200]
            raise FileFormatError(f"{name} cannot be read as Parquet: {why}.", "Write the file again.") from error
        self.columns = [column.strip() for column in self._file.schema_arrow.names]
        self.report = TableReport(name, "Parquet")

    def batches(self, places: Sequence[int] | None = None) -> Iterator[Batch]:
        """All rows, of the columns at ``places`` or of all; the first row is row 1."""
        names = self._file.schema_arrow.names
        wanted = [names[k] for k in (range(len(names)) if places is None else places)]
        self.report.rows = 0
        for some in self._file.iter_batches(BATCH, columns=list(dict.fromkeys(wanted))):
            first = self.report.rows + 1
            self.report.rows += len(some)
            if len(some):
                yield Batch(range(first, first + len(some)), [cells_of(some[name]) for name in wanted])


class NamedColumns(dict[str, list[Any]]):
    """Columns in memory with a name of their own, by which messages speak of them."""

    def __init__(self, name: str, **columns: list[Any]) -> None:
        super().__init__(columns)
        self.name = name


def with_columns(frame: Any) -> Any:
    """The frame itself, or what the interchange protocols hand over of one whose columns cannot be had by name."""
    if isinstance(frame, Mapping) or _has_columns(frame):
        return frame
    try:
        import pyarrow as pa
        from pyarrow.interchange import from_dataframe
    except ImportError as error:
        raise InputError(
            f"a {type(frame).__name__} is read through Arrow, which needs the package pyarrow.",
            "pip install 'nextlabel[data]'.",
        ) from error
    return pa.table(frame) if hasattr(frame, "__arrow_c_stream__") else from_dataframe(frame)


def _has_columns(source: object) -> bool:
    return (hasattr(source, "columns") or hasattr(source, "column_names")) and hasattr(source, "__getitem__")


def is_frame(source: object) -> TypeGuard[Frame]:
    """Whether something is a table in memory."""
    exchanged = hasattr(source, "__arrow_c_stream__") or hasattr(source, "__dataframe__")
    return isinstance(source, Mapping) or _has_columns(source) or (exchanged and not isinstance(source, type))


def cells_of(column: Any) -> list[Any]:
    """The cells of a column as plain Python values."""
    if str(getattr(column, "type", "")).startswith("timestamp[ns"):
        import pyarrow as pa

        column = column.cast(pa.timestamp("us", tz=column.type.tz), safe=False)  # nanoseconds would need pandas
    if hasattr(column, "to_pylist"):
        values = column.to_pylist()
    else:
        values = column.to_numpy() if hasattr(column, "to_numpy") else column
        if isinstance(values, np.ndarray):
            values = values.astype("datetime64[us]") if values.dtype.kind == "M" else values
            values = values.tolist()
    return [None if _missing(value) else value for value in values]


def _missing(value: Any) -> bool:
    """NaN, and pandas' NaT and NA, which cannot be compared."""
    return (isinstance(value, float) and value != value) or type(value).__name__ in ("NaTType", "NAType")


def read_json_lines(stream: IO[bytes], name: str, longest: int = LONGEST_VALUE) -> Iterator[Any]:
    """One JSON value per line; empty lines are left out."""
    place = line = 0
    while text := stream.readline(longest + 1):
        line += 1
        if len(text) > longest:
            raise FileFormatError(f"line {line:,} of {name} is longer than {longest:,} bytes.", "Give shorter lines.")
        text = text.removeprefix(codecs.BOM_UTF8) if line == 1 else text
        if not text.strip():
            continue
        place += 1
        try:
            value = json.loads(text)
        except UnicodeDecodeError:
            raise FileFormatError(f"line {line:,} of {name} is not UTF-8.", "Save it as UTF-8.") from None
        except (ValueError, RecursionError):
            raise FileFormatError(f"line {line:,} of {name} is not JSON.", "Give one JSON value per line.") from None
        yield value


def read_json_list(stream: IO[bytes], name: str, longest: int = LONGEST_VALUE) -> Iterator[Any]:
    """The values of the list that the file is."""
    text = _Text(stream, name, longest)
    start = text.first()
    if start != "[":
        is_what = "is not a JSON list" if start else "is empty"
        raise FileFormatError(f"{name} {is_what}.", "Give a list in square brackets.")
    text.skip(1)
    place = 0
    if text.first() == "]":
        text.skip(1)
    else:
        while True:
            place += 1
            yield text.value(place)
            mark = text.first()
            if mark not in (",", "]"):
                raise FileFormatError(f"{name} breaks off after value {place:,}.", "Give a complete JSON list.")
            text.skip(1)
            if mark == "]":
                break
    if text.first():
        raise FileFormatError(f"something follows the list of {place:,} values in {name}.", "Give one JSON list.")


class _Text:
    """The part of a file that was read and not used yet, from ``_at`` on."""

    def __init__(self, stream: IO[bytes], name: str, longest: int) -> None:
        self._stream, self._name, self._longest = stream, name, longest
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._rest, self._at, self._over = "", 0, False
        self._json = json.JSONDecoder()

    def first(self) -> str:
        """The next character that is no space, or nothing at the end."""
        while True:
            while self._at < len(self._rest) and self._rest[self._at] in _SPACE:
                self._at += 1
            if self._at < len(self._rest):
                return self._rest[self._at]
            if not self._more():
                return ""

    def skip(self, count: int) -> None:
        """Use up some characters."""
        self._at += count

    def value(self, place: int) -> Any:
        """The next value; it is complete only when something follows it."""
        self.first()
        while True:
            try:
                found, end = self._json.raw_decode(self._rest, self._at)
                if end < len(self._rest) or self._over:
                    self._at = end
                    return found
            except (ValueError, RecursionError):
                if self._over or len(self._rest) - self._at > self._longest:
                    why = "is not JSON" if self._over else f"is longer than {self._longest:,} characters or not JSON"
                    raise FileFormatError(f"value {place:,} of {self._name} {why}.", "Give a JSON list.") from None
            if not self._more():
                self._over = True

    def _more(self) -> bool:
        data = self._stream.read(CHUNK)
        self._over = self._over or not data
        try:
            new = self._decoder.decode(data, final=not data)
        except UnicodeDecodeError:
            raise FileFormatError(f"{self._name} is not UTF-8.", "Save it as UTF-8.") from None
        self._rest, self._at = self._rest[self._at :] + new, 0
        return bool(data)
