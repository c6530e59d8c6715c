"""CSV, TSV and Parquet files with a label a row; cost: about a second a million rows."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nextlabel.arrays import Floats
from nextlabel.errors import FileFormatError
from nextlabel.files.columns import NO_LABEL, Columns, arrow, as_words, find_columns
from nextlabel.files.times import seconds


def read_csv(path: Path, roles: Mapping[str, str], optional: Sequence[str]) -> Columns:
    """Columns of a CSV or TSV file, packed or not; ``roles``: the name of the column for each role."""
    pa = arrow()
    header, delimiter = _header(path)
    at = find_columns(path, header, roles, optional)
    names = [f"c{k}" for k in range(len(header))]
    wanted = sorted({names[k] for k in at.values()})
    broken: list[Any] = []

    def refuse(row: Any) -> str:
        broken.append(row)
        return "error"

    words = pa.dictionary(pa.int32(), pa.string())
    types = {names[k]: pa.string() if role.endswith("_at") else words for role, k in at.items()}
    try:
        table = pa.csv.read_csv(
            str(path),
            read_options=pa.csv.ReadOptions(column_names=names, skip_rows=1),
            parse_options=pa.csv.ParseOptions(
                delimiter=delimiter,
                newlines_in_values=True,
                invalid_row_handler=refuse,
            ),
            convert_options=pa.csv.ConvertOptions(
                include_columns=wanted, column_types=types, strings_can_be_null=False
            ),
        )
    except (pa.ArrowInvalid, OSError) as error:
        raise _not_csv(path, len(header), broken, error) from error
    return _columns(path, {role: (header[k], table[names[k]]) for role, k in at.items()})


def read_parquet(path: Path, roles: Mapping[str, str], optional: Sequence[str]) -> Columns:
    """Columns of a Parquet file."""
    pa = arrow()
    try:
        file = pa.parquet.ParquetFile(path)
        header = list(file.schema_arrow.names)
        at = find_columns(path, header, roles, optional)
        table = file.read(columns=sorted({header[k] for k in at.values()}))
    except (pa.ArrowException, OSError) as error:
        raise FileFormatError(
            f"{path} cannot be read as Parquet: {_one_line(error)}.", "Write it again, e.g. with pandas' to_parquet."
        ) from error
    return _columns(path, {role: (header[k], table[header[k]]) for role, k in at.items()})


def _columns(path: Path, found: Mapping[str, tuple[str, Any]]) -> Columns:
    if len(next(iter(found.values()))[1]) == 0:
        raise FileFormatError(f"{path} has a header and no rows.", "Give one label a row.")

    def times(role: str) -> Floats | None:
        return seconds(path, *found[role]) if role in found else None

    return Columns(
        task=as_words(path, *found["task"]),
        label=as_words(path, *found["label"], NO_LABEL),
        worker=as_words(path, *found["worker"]) if "worker" in found else None,
        assigned_at=times("assigned_at"),
        submitted_at=times("submitted_at"),
    )


def _header(path: Path) -> tuple[list[str], str]:
    """Names of the columns, and what parts them."""
    opened: Any = gzip.open if path.suffix.lower() == ".gz" else open
    try:
        with opened(path, "rt", encoding="utf-8-sig", newline="") as stream:
            line = stream.readline()
    except UnicodeDecodeError as error:
        raise FileFormatError(f"{path} is not UTF-8 text.", "Save it as CSV in UTF-8.") from error
    except (OSError, EOFError) as error:
        raise FileFormatError(f"{path} cannot be read: {_one_line(error)}.", "Give a CSV file.") from error
    if not line.strip():
        raise FileFormatError(f"{path} is empty.", "Its first line must name the columns, e.g. task,worker,label.")
    if not line.endswith(("\n", "\r")):
        raise FileFormatError(f"{path} has a header and no rows.", "Give one label a row.")
    delimiter = max(",;\t", key=line.count)
    return [name.strip() for name in next(csv.reader([line], delimiter=delimiter))], delimiter


def _not_csv(path: Path, width: int, broken: Sequence[Any], error: Exception) -> FileFormatError:
    if broken:
        row = broken[0]
        text = row.text if len(row.text) <= 60 else f"{row.text[:60]}..."
        return FileFormatError(
            f"a row of {path} has {row.actual_columns} cells where the header has {width}: {text!r}.",
            "Give every row as many cells as the header, in quotation marks where they hold the separator.",
        )
    if "UTF8" in str(error):
        return FileFormatError(f"{path} is not UTF-8 text.", "Save it as CSV in UTF-8.")
    return FileFormatError(f"{path} cannot be read as CSV: {_one_line(error)}.", "Save it as CSV in UTF-8.")


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()).rstrip(".")[:200]
