"""Times as the service writes and reads them: ISO 8601, in UTC."""

from __future__ import annotations

from datetime import UTC, datetime

from nextlabel.errors import InputError


def iso(seconds: float) -> str:
    """Seconds since 1970, written as ``2026-07-01T12:00:00.000Z``."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"


def iso_or_none(seconds: float | None) -> str | None:
    """The same, with None for no time."""
    return None if seconds is None else iso(seconds)


def parse_time(what: str, value: str | float | None) -> float | None:
    """The seconds since 1970 of a time with a time zone; numbers are returned as they are."""
    if not isinstance(value, str):
        return value
    hint = "Give e.g. 2026-07-01T12:00:00Z, or seconds since 1970."
    try:
        time = datetime.fromisoformat(value)
        if time.tzinfo is None:
            raise InputError(f"{what} {value[:40]!r} has no time zone.", hint)
        return time.timestamp()
    except (ValueError, OverflowError):
        raise InputError(f"{what} {value[:40]!r} is not a time.", hint) from None
