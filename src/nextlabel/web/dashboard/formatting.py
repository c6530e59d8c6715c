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


#: Up to how many seconds a time is said in a unit, how many seconds the unit has, and how it is written.
UNITS = (
    (10, 1, "{:.1f} s"), (90, 1, "{:.0f} s"), (90 * 60, 60, "{:.0f} min"), (48 * 3600, 3600, "{:.0f} h"),
    (math.inf, 86_400, "{:.0f} days"),
)  # fmt: skip


def duration(seconds: float | None) -> str:
    """Seconds in a suitable unit."""
    return "–" if seconds is None else next(form.format(seconds / one) for most, one, form in UNITS if seconds < most)


def rate(per_second: float | None) -> str:
    """Events per second as events per minute or hour."""
    if per_second is None:
        return "not known yet"
    often = per_second >= 1 / 60
    return f"{shortly(per_second * (60 if often else 3600))} per {'minute' if often else 'hour'}"


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
    return (row.paused_because or REASONS["paused"]) if row.paused else ""


def title_of(row: CampaignRow) -> str:
    """A campaign's name, or its id."""
    return row.config.name or row.id
