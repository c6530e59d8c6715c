"""Numbers and times as the pages show them."""

from __future__ import annotations

import math
from datetime import UTC, datetime

from nextlabel.campaign.rows import CampaignRow
from nextlabel.campaign.states import REASONS


def percent(share: float | None, digits: int = 1) -> str:
    """0.9312 as 93.1%."""
    return "–" if share is None else f"{100 * share:.{digits}f}%"


def points(share: float) -> str:
    """0.013 as +1.3 points; small numbers with more digits."""
    x = 100 * share
    if x == 0:
        return "+0 points"
    digits = 1 if abs(x) >= 0.1 else min(1 - math.floor(math.log10(abs(x))), 6)
    return f"{x:+.{digits}f} points"


def count(number: float | None) -> str:
    """12345 as 12,345."""
    return "–" if number is None else f"{number:,.0f}"


def shortly(number: float) -> str:
    """A number with three significant digits, or without decimals from 1,000 on."""
    return f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.3g}"


def plural(number: int, one: str, many: str | None = None) -> str:
    """1 task, 2 tasks."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def duration(seconds: float | None) -> str:
    """Seconds in a suitable unit."""
    if seconds is None:
        return "–"
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    if seconds < 48 * 3600:
        return f"{seconds / 3600:.0f} h"
    return f"{seconds / 86_400:.0f} days"


def rate(per_second: float | None) -> str:
    """Events per second as events per minute or hour."""
    if per_second is None:
        return "not known yet"
    if per_second >= 1 / 60:
        return f"{shortly(per_second * 60)} per minute"
    return f"{shortly(per_second * 3600)} per hour"


def when(seconds: float) -> str:
    """A time, e.g. 15 Nov 2026, 14:03 UTC."""
    moment = datetime.fromtimestamp(seconds, UTC)
    return f"{moment.day} {moment:%b %Y, %H:%M} UTC"


def clock(seconds: float) -> str:
    """A time with its seconds, e.g. 15 Nov, 14:03:22."""
    moment = datetime.fromtimestamp(seconds, UTC)
    return f"{moment.day} {moment:%b, %H:%M:%S}"


def stamp(seconds: float) -> str:
    """A time as ``<time datetime>`` has it."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def until(seconds: float) -> str:
    """How far a time is in the future or in the past."""
    return f"in {duration(seconds)}" if seconds >= 0 else f"{duration(-seconds)} ago"


def sentence(text: str) -> str:
    """The text with a capital first letter."""
    return text[:1].upper() + text[1:]


def reason_of(row: CampaignRow) -> str:
    """Why a campaign is not open, as a sentence; empty if it is."""
    if row.closed_reason is not None:
        return REASONS[row.closed_reason]
    return (row.rules.paused_because or REASONS["paused"]) if row.paused else ""


def title_of(row: CampaignRow) -> str:
    """A campaign's name, or its id."""
    return row.config.name or row.id
