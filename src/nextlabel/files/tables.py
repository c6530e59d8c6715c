"""The one reader of tables: a path, an open file (text, JSON, Parquet), a data frame, or columns by name.

The format follows from the name where its ending is known (``.csv``, ``.tsv``, ``.txt``, ``.jsonl``, ``.ndjson``,
``.json``, ``.parquet``, ``.xlsx``, each also packed as ``.gz``), else from the first bytes. Of a workbook the first
sheet is read (openpyxl, the extra ``excel``), as if it had been saved as CSV.

**Text**: one row per line or more, cells separated by commas, semicolons, tabs or bars. The delimiter is the one under
which the rows at the start have as many cells as the header, and at least two; where several do, the one that makes
more columns, then the first of tab, semicolon, comma, bar. (``csv.Sniffer`` refuses tables with one column and takes
letters for delimiters.) Excel's first line ``sep=;`` is obeyed. Rows are numbered as a spreadsheet numbers them, the
header being row 1. Blank rows, and cells to the right of the header's last name if all of them are blank, are left out
and counted. Memory: one batch of rows.

**Encoding**: a byte order mark decides for UTF-8 or UTF-16. Without one the file is UTF-8 if all of it is; else, if
nothing before the first offending byte looks like UTF-8 either, it is Windows-1252, or Latin-1 where Windows-1252 has
no character. A file that is UTF-8 in one place and not in another is damaged and refused. Cost: a second per gigabyte.

**Frames**: pandas, Polars, Arrow and whatever else narwhals reads, by the interchange protocols (``__dataframe__``,
``__arrow_c_stream__``) where it has no columns of its own; or a mapping from names to columns. Parquet is read in
batches. The protocols and Parquet need pyarrow (the extra ``data``). Moments are ``datetime``; NaN and NaT are None.

**JSON** is UTF-8, with or without a byte order mark: a list, or one value per line.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import json
import os
import re
import shutil
import warnings
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime, time
from io import BytesIO, StringIO, TextIOWrapper
from itertools import chain, islice
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, cast

from nextlabel.errors import FileFormatError, InputError
from nextlabel.wording import counted, listed, needs, tallied

if TYPE_CHECKING:
    import narwhals as nw
    from narwhals.typing import IntoDataFrame

Format = Literal["csv", "jsonl", "json", "parquet", "xlsx"]

#: Formats by the ending of a name.
ENDINGS: dict[str, Format] = {
    ".csv": "csv", ".tsv": "csv", ".tab": "csv", ".txt": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "json",
    ".parquet": "parquet", ".pq": "parquet", ".xlsx": "xlsx",
}  # fmt: skip
JSON_FORMATS = {"jsonl": "JSON lines", "json": "JSON list"}
ALLOWED = "Give CSV, TSV, JSON lines, a JSON list, Parquet or Excel (.xlsx)."

#: Bytes read at once, bytes that a line may have, and characters of one JSON value where it is read on its own.
CHUNK, LONGEST_LINE, LONGEST_VALUE = 1 << 16, 1 << 20, 1 << 20
#: Characters of one JSON value where all of them are held in memory anyway.
LONGEST = 1 << 27
#: Characters looked at to find the delimiter; rows of text (few enough to stay in the processor's cache) and of Parquet
#: that are held at once.
SAMPLE, BATCH, PARQUET_BATCH = 1 << 16, 1024, 1 << 14

#: Delimiters with the word for them, in the order in which they are preferred where nothing else decides.
DELIMITERS = {"\t": "tabs", ";": "semicolons", ",": "commas", "|": "bars"}
#: Bytes to which a workbook may unpack.
WORKBOOK = 1 << 28
#: Bytes to which a Parquet file may unpack, at least and for each byte of it; its rows, the values of one of them, and
#: the bytes that are unpacked at once.
UNPACKED, UNPACKED_RATIO, ROWS, VALUES_PER_ROW, SLICE = 1 << 30, 100, 500_000_000, 100_000, 1 << 26
#: Arrow's types of texts.
TEXTS = ("string", "large_string", "binary", "large_binary")
_EXCEL = re.compile(r'^"?sep=([,;\t|])"?\r?\n', re.IGNORECASE)
_HINT = "Give every row as many cells as the header, in quotation marks where a cell holds the delimiter."
_SPACE = re.compile(r"[ \t\r\n]*")

#: Names of the encodings by their codecs.
SHOWN = {"utf-8-sig": "UTF-8", "utf-16": "UTF-16", "cp1252": "Windows-1252", "latin-1": "Latin-1"}
#: Bytes that stand for no character in Windows-1252.
_UNDEFINED = (b"\x81", b"\x8d", b"\x8f", b"\x90", b"\x9d")
_UTF8_HINT = "Save it as UTF-8; a spreadsheet calls that 'CSV UTF-8'."


class Batch(NamedTuple):
    """Some rows of a table: their numbers, and the cells of the columns that were asked for, column by column."""

    numbers: Sequence[int]
    columns: Sequence[Sequence[Any]]


@dataclass(slots=True)
class TableSummary:
    """How a table is written and what was left out of it; the counts are complete when its last row has been read."""

    name: str = ""
    format: str = ""
    encoding: str | None = None
    delimiter: str | None = None
    rows: int = 0
    blank_rows: int = 0
    empty_columns: int = 0
    decimal_commas: int = 0
    columns: dict[str, str] = field(default_factory=dict)

    @property
    def form(self) -> str:
        """Format, delimiter and encoding in a few words."""
        return ", ".join(filter(None, [self.format, DELIMITERS.get(self.delimiter or ""), self.encoding]))

    def notes(self) -> list[str]:
        """Which columns were used, and what was left out or taken for something else."""
        out = []
        if self.columns:
            used = [column if column == role else f"{column} ({role})" for role, column in self.columns.items()]
            out.append(f"{'Columns' if len(used) > 1 else 'Column'} used: {listed(used)}.")
        out += tallied(
            (self.blank_rows, "blank row", "left out."),
            (self.empty_columns, "empty column", "at the right edge left out."),
            (self.decimal_commas, "number", "with a decimal comma."),
        )
        if self.encoding in ("Windows-1252", "Latin-1"):
            out.append(f"The file is not UTF-8 and was read as {self.encoding}: check letters with accents.")
        return out

    def sentences(self, more: str = "") -> list[str]:
        """The report in plain English, nothing said about what did not happen."""
        return [f"{self.name}: {counted(self.rows, 'row')} read ({self.form}){more}.", *self.notes()]

    def as_dict(self) -> dict[str, Any]:
        """The report as ``--json`` prints it, under ``read``."""
        return {name: getattr(self, name) for name in self.__slots__} | {"sentences": self.sentences()}


@contextmanager
def open_table(source: Any, what: str = "a table") -> Iterator[Table]:
    """The table in a file or a data frame; ``what`` is read from it, for the message where it is neither."""
    if is_frame(source):
        yield FrameTable(source, source.name if isinstance(source, NamedColumns) else "the data frame")
    elif isinstance(source, str | os.PathLike):
        with open_stream(source) as stream:
            yield read_table(stream, os.fspath(source))
    elif hasattr(source, "read"):
        yield read_table(source, "the file")
    else:
        raise InputError(
            f"{what} cannot be read from {type(source).__name__}.", "Give the path of a file or a data frame."
        )


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
        return "xlsx"
    first = start.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    return {b"[": "json", b"{": "jsonl"}.get(first, "csv")  # type: ignore[return-value]


def uploaded_format(stream: IO[bytes], name: str) -> Format:
    """The format of a file that came over the network: a small Parquet file can be gigabytes of cells."""
    kind = format_of(stream, name)
    if kind == "parquet":
        raise InputError(f"{name[:100]} is a Parquet file, which is not uploaded.", "Give CSV, JSON lines or JSON.")
    return kind


def read_table(stream: IO[bytes], name: str, format: Format | None = None) -> Table:
    """The table in an open file; JSON is read at once and must be one object per row."""
    kind = format or format_of(stream, name)
    if kind == "csv":
        return DelimitedTable(stream, name)
    if kind == "xlsx":
        return DelimitedTable(sheet_text(stream, name), name, "Excel")
    if kind == "parquet":
        return ParquetTable(stream, name)
    return JsonTable(list(json_values(stream, name, kind, LONGEST)), name, kind)


def sheet_text(stream: IO[bytes], name: str) -> IO[bytes]:
    """The first sheet of a workbook as CSV, in memory: a workbook unpacks to so much and no more."""
    with needs(f"{name} is a workbook, which", "openpyxl", "'nextlabel[excel]', or give CSV"):
        import openpyxl
    try:
        with zipfile.ZipFile(stream) as packed:
            if sum(one.file_size for one in packed.infolist()) > WORKBOOK:
                raise FileFormatError(f"{name} unpacks to more than {WORKBOOK >> 20:,} MiB.", "Save the sheet as CSV.")
        stream.seek(0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about styles and the like
            rows = (
                openpyxl.load_workbook(stream, read_only=True, data_only=True).worksheets[0].iter_rows(values_only=True)
            )
            out = BytesIO()
            text = TextIOWrapper(out, encoding="utf-8", newline="")
            csv.writer(text).writerows([_sheet_cell(cell) for cell in row] for row in rows)
    except (zipfile.BadZipFile, KeyError, IndexError, ValueError, TypeError, AttributeError, SyntaxError) as error:
        raise FileFormatError(f"{name} cannot be read as a workbook.", "Save the sheet as 'CSV UTF-8'.") from error
    text.detach()
    return out


def delimited(stream: IO[bytes], name: str) -> IO[bytes]:
    """A file that came over the network as text with delimiters: the first sheet of a workbook, or as it is."""
    kind = uploaded_format(stream, name)
    if kind == "xlsx":
        return sheet_text(stream, name)
    if kind != "csv":
        raise InputError(f"{name[:100]} is no table with a header.", "Give CSV or Excel (.xlsx).")
    return stream


def _sheet_cell(cell: Any) -> Any:
    """A cell as people see it in a sheet: whole numbers without a point, days without an hour."""
    if isinstance(cell, datetime):
        return cell.date().isoformat() if cell.time() == time() else cell.isoformat(sep=" ")
    return int(cell) if isinstance(cell, float) and cell.is_integer() and abs(cell) < 1e15 else cell


@contextmanager
def decoded(stream: IO[bytes], codec: str) -> Iterator[TextIOWrapper]:
    """The text of a file from its start; the file stays open."""
    stream.seek(0)
    text = TextIOWrapper(stream, encoding=codec, newline="")
    try:
        yield text
    finally:
        if not stream.closed:
            text.detach()


class Table(ABC):
    """A table: the names of its columns, its rows as often as they are asked for, and what was met in them."""

    columns: list[str]
    report: TableSummary

    def batches(self, places: Sequence[int] | None = None) -> Iterator[Batch]:
        """All rows, of the columns at ``places`` or of all."""
        return self._batches(range(len(self.columns)) if places is None else places)

    @abstractmethod
    def _batches(self, wanted: Sequence[int]) -> Iterator[Batch]: ...

    def rows(self, places: Sequence[int] | None = None) -> Iterator[tuple[Any, ...]]:
        """The number of each row and its cells."""
        for batch in self.batches(places):
            yield from zip(batch.numbers, *batch.columns, strict=True)


class DelimitedTable(Table):
    """A text table in a stream that can be read again from its start; below its header rows are numbered from 2."""

    def __init__(self, stream: IO[bytes], name: str, format: str = "CSV") -> None:
        self._stream = stream
        self._codec = find_encoding(stream, name)
        with decoded(stream, self._codec) as text:
            sample = text.read(SAMPLE)
        announced = _EXCEL.match(sample)
        self._skip = 0 if announced is None else 1
        delimiter = announced[1] if announced is not None else find_delimiter(sample, len(sample) < SAMPLE)
        self.report = TableSummary(name, format, SHOWN[self._codec], delimiter)
        with decoded(stream, self._codec) as text:
            _, header = self._header(self._reader(text))
        self.columns = [cell.strip() for cell in header]
        while not self.columns[-1]:
            self.columns.pop()

    def _batches(self, wanted: Sequence[int]) -> Iterator[Batch]:
        report, width = self.report, len(self.columns)
        with decoded(self._stream, self._codec) as text:
            reader = self._reader(text)
            row, header = self._header(reader)
            report.rows, report.blank_rows, report.empty_columns = 0, row - 1, len(header) - width
            while cells := self._read(reader, BATCH):
                numbers: Sequence[int] = range(row + 1, row + 1 + len(cells))
                row += len(cells)
                if set(map(len, cells)) != {width} or not all(map(str.strip, map(itemgetter(0), cells))):
                    numbers, cells = self._checked(numbers, cells)
                report.rows += len(cells)
                if cells:
                    columns = list(zip(*cells, strict=True))
                    yield Batch(numbers, [columns[k] for k in wanted])

    def _reader(self, text: TextIOWrapper) -> Any:
        for _ in range(self._skip):
            text.readline()
        return csv.reader(text, delimiter=self.report.delimiter or ",", strict=True)

    def _read(self, reader: Any, most: int) -> list[list[str]]:
        try:
            return list(islice(reader, most))
        except csv.Error as error:
            name = self.report.name
            if "end of data" in str(error):
                raise FileFormatError(f"{name} ends inside a quoted cell.", "Close its quotation mark.") from None
            line = reader.line_num + self._skip
            raise FileFormatError(f"line {line:,} of {name} cannot be read: {error}.", "Correct that line.") from None

    def _header(self, reader: Any) -> tuple[int, list[str]]:
        """The first row that is not blank, with its number."""
        row = 0
        while rows := self._read(reader, 1):
            row += 1
            if _filled(rows[0]):
                return row, rows[0]
        raise FileFormatError(f"{self.report.name} is empty.", "Its first row must name the columns.")

    def _checked(self, numbers: Sequence[int], rows: list[list[str]]) -> tuple[list[int], list[list[str]]]:
        """The rows that are not blank, each as wide as the header."""
        report, width = self.report, len(self.columns)
        kept, cells_of = [], []
        for number, cells in zip(numbers, rows, strict=True):
            if not _filled(cells):
                report.blank_rows += 1
                continue
            if len(cells) < width or _filled(cells[width:]):
                there = counted(len(cells), "cell")
                raise FileFormatError(f"row {number:,} of {report.name} has {there} and its header {width}.", _HINT)
            report.empty_columns = max(report.empty_columns, len(cells) - width)
            kept.append(number)
            cells_of.append(cells[:width])
        return kept, cells_of


def find_delimiter(sample: str, whole: bool) -> str:
    """The delimiter of a table that starts with ``sample``; a comma if it has one column."""
    best, chosen = (0.0, 0), ","
    for delimiter in DELIMITERS:
        try:
            rows = [cells for cells in csv.reader(StringIO(sample, newline=""), delimiter=delimiter) if _filled(cells)]
        except csv.Error:
            continue
        rows = rows if whole or len(rows) < 3 else rows[:-1]  # the last row may be cut off
        width = len(rows[0]) if rows else 0
        if width < 2:
            continue
        like_header = sum(len(cells) == width for cells in rows) / len(rows)
        if (like_header, width) > best:
            best, chosen = (like_header, width), delimiter
    return chosen


def _filled(cells: Sequence[str]) -> bool:
    return any(map(str.strip, cells))


def find_encoding(stream: IO[bytes], name: str) -> str:
    """The codec of a file, which is left at its start; a null character or an endless line is refused."""
    stream.seek(0)
    start = stream.read(3)
    stream.seek(0)
    codec = "utf-16" if start[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else "utf-8-sig"
    decoder = codecs.getincrementaldecoder(codec)()
    certain = codec == "utf-16" or start == codecs.BOM_UTF8
    line, since_break, more = 1, 0, True
    while more:
        chunk = stream.read(CHUNK)
        more = bool(chunk)
        try:
            text = decoder.decode(chunk, final=not more)
        except UnicodeDecodeError as error:
            if certain or not error.object[: error.start].isascii():
                line += error.object[: error.start].count(b"\n")
                raise FileFormatError(f"line {line:,} of {name} is not {SHOWN[codec]}.", _UTF8_HINT) from None
            stream.seek(0)
            odd = any(byte in chunk for chunk in iter(lambda: stream.read(CHUNK), b"") for byte in _UNDEFINED)
            stream.seek(0)
            return "latin-1" if odd else "cp1252"
        certain = certain or not chunk.isascii()
        if "\x00" in text:
            line += text[: text.index("\x00")].count("\n")
            raise FileFormatError(f"line {line:,} of {name} has a null character.", _UTF8_HINT)
        last_break = max(chunk.rfind(b"\n"), chunk.rfind(b"\r"))
        since_break = len(chunk) - 1 - last_break + (since_break if last_break < 0 else 0)
        if since_break > LONGEST_LINE:
            raise FileFormatError(
                f"line {line:,} of {name} is longer than {LONGEST_LINE:,} bytes.", "Give shorter lines."
            )
        line += text.count("\n")
    stream.seek(0)
    return codec


class NamedColumns(dict[str, list[Any]]):
    """Columns in memory with a name of their own, by which messages speak of them."""

    def __init__(self, name: str, **columns: list[Any]) -> None:
        super().__init__(columns)
        self.name = name


class FrameTable(Table):
    """A data frame, or a mapping from names to columns of one length; the first row is row 1."""

    def __init__(self, frame: Any, name: str, format: str = "data frame") -> None:
        self._frame = frame = frame if isinstance(frame, Mapping) else to_narwhals(frame)
        self._open(list(frame if isinstance(frame, Mapping) else frame.columns), name, format)

    def _open(self, names: list[Any], name: str, format: str) -> None:
        self._names, self.columns = names, [str(column).strip() for column in names]
        self.report = TableSummary(name, format)
        if not names:
            raise FileFormatError(f"{name} has no columns.", "Give a table with named columns.")

    def _batches(self, wanted: Sequence[int]) -> Iterator[Batch]:
        report = self.report
        report.rows = 0
        for columns in self._parts([self._names[k] for k in wanted]):
            length = len(columns[0]) if columns else 0
            if any(len(column) != length for column in columns):
                raise FileFormatError(f"the columns of {report.name} differ in length.", "Give every row all cells.")
            first, report.rows = report.rows + 1, report.rows + length
            if length:
                yield Batch(range(first, first + length), columns)

    def _parts(self, names: list[Any]) -> Iterator[list[list[Any]]]:
        yield [cells_of(self._frame[name]) for name in names]


class JsonTable(FrameTable):
    """JSON objects, whose columns are all the keys that occur; ``values`` are the objects."""

    def __init__(self, values: Sequence[Any], name: str, kind: Format) -> None:
        for place, value in enumerate(values, start=1):
            if not isinstance(value, Mapping):
                raise FileFormatError(f"value {place:,} of {name} is not a JSON object.", "Give one object per row.")
        if not values:
            raise FileFormatError(f"{name} is a list without rows.", "Give at least one object.")
        self.values = values
        keys = dict.fromkeys(chain.from_iterable(values))
        super().__init__({key: [value.get(key) for value in values] for key in keys}, name, JSON_FORMATS[kind])


class ParquetTable(FrameTable):
    """A Parquet file."""

    def __init__(self, stream: IO[bytes], name: str) -> None:
        with needs(f"{name} is a Parquet file, which", "pyarrow", "'nextlabel[data]'"):
            from pyarrow import ArrowException, parquet
        try:
            names = [one.name for one in parquet.read_schema(stream) if str(one.type) in TEXTS]
            stream.seek(0)
            self._file = parquet.ParquetFile(stream, read_dictionary=names)  # a text that is repeated is held once
        except (ArrowException, OSError) as error:
            why = " ".join(str(error).split()).rstrip(".")[:200]
            raise FileFormatError(f"{name} cannot be read as Parquet: {why}.", "Write the file again.") from error
        self._open(self._file.schema_arrow.names, name, "Parquet")
        place = stream.tell()
        self._most = max(UNPACKED, UNPACKED_RATIO * stream.seek(0, os.SEEK_END))
        stream.seek(place)
        whole = self._file.metadata
        for group in map(whole.row_group, range(whole.num_row_groups)):
            columns = [group.column(k) for k in range(group.num_columns)]
            values = max((one.num_values for one in columns), default=0)
            unpacked = sum(one.total_uncompressed_size for one in columns)
            if unpacked > self._most or values > VALUES_PER_ROW * max(group.num_rows, 1):
                raise self._too_large()
        if whole.num_rows > ROWS:
            raise self._too_large()

    def _parts(self, names: list[str]) -> Iterator[list[list[Any]]]:
        import pyarrow as pa

        unpacked = 0
        for rows in self._file.iter_batches(PARQUET_BATCH, columns=list(dict.fromkeys(names))):
            size = sum(_unpacked_size(column) for column in rows.columns)
            unpacked += size
            if unpacked > self._most:
                raise self._too_large()
            step = max(1, rows.num_rows // (1 + size // SLICE))
            for first in range(0, rows.num_rows, step):
                frame = to_narwhals(pa.table(rows.slice(first, step)))
                yield [cells_of(frame[name]) for name in names]

    def _too_large(self) -> FileFormatError:
        return FileFormatError(
            f"{self.report.name} unpacks to more than {self._most >> 20:,} MiB or {ROWS:,} rows, or to rows of "
            f"more than {VALUES_PER_ROW:,} values.",
            "Give the columns that are needed, or write them as CSV.",
        )


def _unpacked_size(column: Any) -> int:
    """The bytes of a column of Arrow once each of its texts is written out."""
    if not hasattr(column, "dictionary"):
        return int(column.nbytes)
    import pyarrow.compute as pc

    sizes = pc.binary_length(column.dictionary)
    return int(pc.sum(pc.take(sizes, column.indices)).as_py() or 0)


#: Tables that are in memory.
Frame: TypeAlias = "IntoDataFrame | Mapping[str, Sequence[Any]]"


def is_frame(source: object) -> bool:
    """Whether something is a table in memory."""
    import narwhals.dependencies as known

    if isinstance(source, Mapping) or bool(known.is_into_dataframe(source)):
        return True
    return not isinstance(source, type) and any(hasattr(source, way) for way in ("__arrow_c_stream__", "__dataframe__"))


def to_narwhals(frame: Any) -> nw.DataFrame[Any]:
    """A frame of any library; by the interchange protocols where narwhals does not know its own."""
    import narwhals as nw

    try:
        if not nw.dependencies.is_into_dataframe(frame):
            with needs(f"a {type(frame).__name__} is read through Arrow, which", "pyarrow", "'nextlabel[data]'"):
                import pyarrow as pa
                from pyarrow.interchange import from_dataframe

            frame = pa.table(frame) if hasattr(frame, "__arrow_c_stream__") else from_dataframe(frame)
        return nw.from_native(frame, eager_only=True)
    except nw.exceptions.DuplicateError as error:
        raise FileFormatError(
            f"two columns of the data frame have one name: {error}.", "Rename one of them."
        ) from error


def cells_of(column: Any) -> list[Any]:
    """The cells of a column as plain Python values."""
    native = column.to_native() if hasattr(column, "to_native") else column
    if str(getattr(native, "type", "")).startswith("timestamp[ns"):
        import pyarrow as pa

        native = native.cast(pa.timestamp("us", tz=native.type.tz), safe=False)  # nanoseconds would need pandas
        values = native.to_pylist()
    else:
        values = column.to_list() if hasattr(column, "to_list") else getattr(column, "tolist", lambda: column)()
    return [None if _missing(value) else value for value in values]


def _missing(value: Any) -> bool:
    """NaN, and pandas' NaT and NA, which cannot be compared."""
    return (isinstance(value, float) and value != value) or type(value).__name__ in ("NaTType", "NAType")


def json_values(stream: IO[bytes], name: str, kind: Format, longest: int = LONGEST_VALUE) -> Iterator[Any]:
    """The values of JSON lines or of a JSON list, one after the other; a value may have ``longest`` characters."""
    stream.seek(0)
    return _json_lines(stream, name, longest) if kind == "jsonl" else _json_list(stream, name, longest)


def _json_lines(stream: IO[bytes], name: str, longest: int) -> Iterator[Any]:
    """One JSON value per line; empty lines are left out."""
    line = 0
    while text := stream.readline(longest + 1):
        line += 1
        if len(text) > longest:
            raise FileFormatError(f"line {line:,} of {name} is longer than {longest:,} bytes.", "Give shorter lines.")
        text = text.removeprefix(codecs.BOM_UTF8) if line == 1 else text
        if not text.strip():
            continue
        try:
            value = json.loads(text)
        except UnicodeDecodeError:
            raise FileFormatError(f"line {line:,} of {name} is not UTF-8.", "Save it as UTF-8.") from None
        except (ValueError, RecursionError):
            raise FileFormatError(f"line {line:,} of {name} is not JSON.", "Give one JSON value per line.") from None
        yield value


def _json_list(stream: IO[bytes], name: str, longest: int) -> Iterator[Any]:
    """The values of the list that the file is; a value is complete only when something follows it."""
    text, at, over, place, decode = "", 0, False, 0, json.JSONDecoder().raw_decode
    with decoded(stream, "utf-8-sig") as file:

        def read_on() -> bool:
            nonlocal text, at, over
            try:
                new = file.read(CHUNK)
            except UnicodeDecodeError:
                raise FileFormatError(f"{name} is not UTF-8.", "Save it as UTF-8.") from None
            text, at, over = text[at:] + new, 0, not new
            return not over

        def mark() -> str:
            """The next character that is no space, or nothing at the end."""
            nonlocal at
            while (at := _SPACE.match(text, at).end()) == len(text) and read_on():  # type: ignore[union-attr]
                pass
            return text[at : at + 1]

        if (start := mark()) != "[":
            is_what = "is not a JSON list" if start else "is empty"
            raise FileFormatError(f"{name} {is_what}.", "Give a list in square brackets.")
        at += 1
        ended = mark() == "]"
        at += ended
        while not ended:
            place += 1
            mark()
            while True:
                try:
                    value, end = decode(text, at)
                    if end < len(text) or over:
                        break
                except (ValueError, RecursionError):
                    if over or len(text) - at > longest:
                        why = "is not JSON" if over else f"is longer than {longest:,} characters or not JSON"
                        raise FileFormatError(f"value {place:,} of {name} {why}.", "Give a JSON list.") from None
                read_on()
            at = end
            yield value
            if (after := mark()) not in (",", "]"):
                raise FileFormatError(f"{name} breaks off after value {place:,}.", "Give a complete JSON list.")
            at, ended = at + 1, after == "]"
        if mark():
            raise FileFormatError(f"something follows the list of {place:,} values in {name}.", "Give one JSON list.")
