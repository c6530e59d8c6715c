"""Times as seconds: ISO 8601 with or without a zone, moments as Parquet knows them, or numbers.

A time without a zone is taken as UTC. Numbers are seconds from any origin; those that would lie past the year 5138 are
milliseconds, microseconds or nanoseconds, as clocks of computers count them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from nextlabel.arrays import Floats
from nextlabel.errors import FileFormatError, InputError

#: From so many seconds on a number counts thousandths of the unit that it was taken to have.
TOO_LATE, THOUSANDTH = 1e11, 1e-3
HINT = "Write times as 2026-01-31T09:30:00Z or as seconds."


def seconds(path: Path, name: str, cells: Any) -> Floats:
    """A column of times as seconds, nan where a cell is blank."""
    import pyarrow as pa

    kind = cells.type
    if pa.types.is_dictionary(kind):
        cells = cells.unify_dictionaries().combine_chunks()
        values = _of_values(path, name, cells.dictionary)
        return np.asarray(np.append(values, np.nan)[cells.indices.fill_null(-1).to_numpy(zero_copy_only=False)])
    if isinstance(cells, pa.ChunkedArray):
        cells = cells.combine_chunks()
    if pa.types.is_timestamp(kind):
        return _moments(cells)
    return _of_values(path, name, cells)


def _of_values(path: Path, name: str, cells: Any) -> Floats:
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = cells.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return _plain(_floats(cells.cast(pa.float64())))
    if not pa.types.is_string(kind) and not pa.types.is_large_string(kind):
        raise FileFormatError(f"column {name!r} of {path} holds {kind}, not times.", HINT)
    text = pc.utf8_trim_whitespace(cells)
    text = pc.if_else(pc.is_in(pc.utf8_lower(text), value_set=pa.array(["", "nan", "nat", "null"], kind)), None, text)
    try:
        return _plain(_floats(text.cast(pa.float64())))
    except pa.ArrowInvalid:
        pass
    for zone in (None, "UTC"):
        try:
            return _moments(text.cast(pa.timestamp("ns", tz=zone)))
        except pa.ArrowInvalid:
            continue
    return _iso(path, name, text.to_pylist())


def _moments(cells: Any) -> Floats:
    """Moments of any step and zone."""
    import pyarrow as pa

    micro = cells.cast(pa.timestamp("us", tz=cells.type.tz), safe=False)
    return _floats(micro.cast(pa.int64()).cast(pa.float64())) / 1e6


def _iso(path: Path, name: str, text: list[str | None]) -> Floats:
    """What is left: spellings and zones of many kinds in one column."""
    try:
        import pandas as pd
    except ImportError as error:
        raise InputError("reading times needs the package pandas.", "pip install 'nextlabel[data]'.") from error
    found = pd.to_datetime(pd.Series(text, dtype=object), format="ISO8601", utc=True, errors="coerce")
    moments = found.to_numpy(dtype="datetime64[us]")
    bad = next((word for word, moment in zip(text, np.isnat(moments), strict=True) if moment and word), None)
    if bad is not None:
        raise FileFormatError(f"column {name!r} of {path} holds {bad!r}, which is not a time.", HINT)
    out = np.asarray(moments.astype(np.int64) / 1e6, dtype=np.float64)
    out[np.isnat(moments)] = np.nan
    return out


def _plain(numbers: Floats) -> Floats:
    finite = np.isfinite(numbers)
    largest = float(np.abs(numbers[finite]).max(initial=0.0))
    scale = 1.0
    while largest * scale >= TOO_LATE:
        scale *= THOUSANDTH
    return np.where(finite, numbers * scale, np.nan)


def _floats(cells: Any) -> Floats:
    return np.array(cells.fill_null(np.nan).to_numpy(zero_copy_only=False), dtype=np.float64)
