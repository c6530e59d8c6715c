"""Times as seconds: ISO 8601 with or without a zone, moments as data frames have them, or numbers.

A time without a zone is taken as UTC. Numbers are seconds from any origin; those that would lie past the year 5138 are
milliseconds, microseconds or nanoseconds, as clocks of computers count them.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from nextlabel.arrays import Floats
from nextlabel.errors import FileFormatError
from nextlabel.files.numbers import number

#: From so many seconds on a number counts thousandths of the unit that it was taken to have.
TOO_LATE, THOUSANDTH = 1e11, 1e-3
#: Cells that hold no time, in small letters.
NO_TIME = ("", "nan", "nat", "null", "none", "<na>")
HINT = "Write times as 2026-01-31T09:30:00Z or as seconds."
_EPOCH, _EPOCH_UTC = datetime(1970, 1, 1), datetime(1970, 1, 1, tzinfo=UTC)


def seconds(name: str, column: str, cells: Sequence[Any]) -> Floats:
    """A column of times as seconds, nan where a cell is blank."""
    try:
        return _scaled(np.array([_number(cell) for cell in cells], dtype=np.float64))
    except (TypeError, ValueError):
        return np.array([_moment(name, column, cell) for cell in cells], dtype=np.float64)


def _number(cell: Any) -> float:
    if isinstance(cell, str):
        try:
            return float(cell)
        except ValueError:
            return np.nan if cell.strip().casefold() in NO_TIME else number(cell)
    return np.nan if cell is None else float(cell)


def _moment(name: str, column: str, cell: Any) -> float:
    text = cell if isinstance(cell, str) else str(cell)
    if text.strip().casefold() in NO_TIME:
        return np.nan
    try:
        moment = cell if isinstance(cell, datetime) else datetime.fromisoformat(text.strip())
        return (moment - (_EPOCH if moment.tzinfo is None else _EPOCH_UTC)).total_seconds()
    except (ValueError, OverflowError):
        raise FileFormatError(f"column {column!r} of {name} holds {text!r}, which is not a time.", HINT) from None


def _scaled(numbers: Floats) -> Floats:
    finite = np.isfinite(numbers)
    largest = float(np.abs(numbers[finite]).max(initial=0.0))
    scale = 1.0
    while largest * scale >= TOO_LATE:
        scale *= THOUSANDTH
    return np.where(finite, numbers * scale, np.nan)
