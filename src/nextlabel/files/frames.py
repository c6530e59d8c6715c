"""Tables that are in memory or in Parquet files: pandas, Polars and Arrow tables, and mappings from names to columns.

No package is imported for them: a column is anything that can be iterated over. Frames of other libraries come through
the data-frame interchange protocol (``__dataframe__``) or Arrow's (``__arrow_c_stream__``). These and Parquet, which is
read in batches, need pyarrow (the extra ``data``). Moments become ``datetime``; NaN and NaT become None, a blank cell.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any, Protocol, TypeGuard

import numpy as np

from nextlabel.errors import FileFormatError, InputError
from nextlabel.files.delimited import Batch
from nextlabel.files.report import TableReport

#: Rows of a Parquet file that are held at once.
BATCH = 1 << 14


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
