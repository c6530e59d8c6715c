"""Text tables: one row per line or more, cells separated by commas, semicolons, tabs or bars.

The delimiter is the one under which the rows at the start have as many cells as the header, and at least two; where
several do, the one that makes more columns, then the first of tab, semicolon, comma, bar. (``csv.Sniffer`` refuses
tables with one column and takes letters for delimiters.) Excel's first line ``sep=;`` is obeyed.

Rows are numbered as a spreadsheet numbers them, the header being row 1. Blank rows, and cells to the right of the
header's last name if all of them are blank, are left out and counted. Memory: one batch of rows.

Which encoding a text file has: found by looking through all of it once, in bounded memory.

A byte order mark decides for UTF-8 or UTF-16. Without one the file is UTF-8 if all of it is; else, if nothing before
the first offending byte looks like UTF-8 either, it is Windows-1252, or Latin-1 where Windows-1252 has no character.
A file that is UTF-8 in one place and not in another is damaged and refused. Cost: about a second per gigabyte.
"""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import StringIO, TextIOWrapper
from itertools import islice
from operator import itemgetter
from typing import IO, Any, NamedTuple

from nextlabel.errors import FileFormatError
from nextlabel.files.report import TableReport
from nextlabel.prose import counted

#: Characters looked at to find the delimiter, and rows of a batch: few enough to stay in the processor's cache.
SAMPLE, BATCH = 1 << 16, 1024

#: Delimiters in the order in which they are preferred where nothing else decides.
PREFERRED = "\t;,|"
_EXCEL = re.compile(r'^"?sep=([,;\t|])"?\r?\n', re.IGNORECASE)
_HINT = "Give every row as many cells as the header, in quotation marks where a cell holds the delimiter."

#: Bytes read at once, and bytes that a line may have.
CHUNK, LONGEST_LINE = 1 << 16, 1 << 20

#: Names of the encodings by their codecs.
SHOWN = {"utf-8-sig": "UTF-8", "utf-16": "UTF-16", "cp1252": "Windows-1252", "latin-1": "Latin-1"}

#: Bytes that stand for no character in Windows-1252.
_UNDEFINED = (b"\x81", b"\x8d", b"\x8f", b"\x90", b"\x9d")
_UTF8_HINT = "Save it as UTF-8; a spreadsheet calls that 'CSV UTF-8'."


class Batch(NamedTuple):
    """Some rows of a table: their numbers, and the cells of the columns that were asked for, column by column."""

    numbers: Sequence[int]
    columns: Sequence[Sequence[Any]]


class DelimitedTable:
    """A text table in a stream that can be read again from its start."""

    def __init__(self, stream: IO[bytes], name: str) -> None:
        self._stream = stream
        self._codec = find_encoding(stream, name)
        with self._opened() as text:
            sample = text.read(SAMPLE)
        announced = _EXCEL.match(sample)
        self._skip = 0 if announced is None else 1
        delimiter = announced[1] if announced is not None else find_delimiter(sample, len(sample) < SAMPLE)
        self.report = TableReport(name, "CSV", SHOWN[self._codec], delimiter)
        with self._opened() as text:
            _, header = self._header(self._reader(text))
        self.columns = [cell.strip() for cell in header]
        while not self.columns[-1]:
            self.columns.pop()

    def batches(self, places: Sequence[int] | None = None) -> Iterator[Batch]:
        """All rows below the header, of the columns at ``places`` or of all."""
        report, width = self.report, len(self.columns)
        wanted = range(width) if places is None else places
        with self._opened() as text:
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

    def __iter__(self) -> Iterator[tuple[int, list[str]]]:
        """(row number, cells) one by one."""
        for batch in self.batches():
            for number, *cells in zip(batch.numbers, *batch.columns, strict=True):
                yield number, cells

    @contextmanager
    def _opened(self) -> Iterator[TextIOWrapper]:
        self._stream.seek(0)
        text = TextIOWrapper(self._stream, encoding=self._codec, newline="")
        try:
            yield text
        finally:
            if not self._stream.closed:
                text.detach()

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
        while found := self._read(reader, 1):
            row += 1
            if _filled(found[0]):
                return row, found[0]
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
    best, found = (0.0, 0), ","
    for delimiter in PREFERRED:
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
            best, found = (like_header, width), delimiter
    return found


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
            return _single_byte(stream)
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


def _single_byte(stream: IO[bytes]) -> str:
    stream.seek(0)
    codec = "cp1252"
    while chunk := stream.read(CHUNK):
        if any(byte in chunk for byte in _UNDEFINED):
            codec = "latin-1"
            break
    stream.seek(0)
    return codec
