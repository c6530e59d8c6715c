"""Times as the service writes and reads them: ISO 8601, in UTC."""

from __future__ import annotations

from datetime import UTC, datetime


def iso(seconds: float) -> str:
    """Seconds since 1970, written as ``2026-07-01T12:00:00.000Z``."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"


def iso_or_none(seconds: float | None) -> str | None:
    """The same, with None for no time."""
    return None if seconds is None else iso(seconds)
