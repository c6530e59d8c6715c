"""The time of a command, held against the campaign's log: a clock that is far off is refused before it does harm.

=============================== ========================================================================
the clock against the last event what happens
=============================== ========================================================================
at most MOST_BEHIND_S behind    the time of the last event is used: time never runs backwards in a log
further behind                  ClockError: the clock is wrong now, or it was wrong at the last event
at most MOST_AHEAD_S ahead      its time is used
further ahead                   ClockError: the clock is wrong, or nobody worked for that long
=============================== ========================================================================

Only what would be written is refused: who asks a campaign that is closed is told so at any time. A refused command may
be repeated. If the clock is right, ``accept_time`` says so in the log, and the
campaign goes on from there; what a wrong clock did to leases, rates and the deadline is put right.
"""

from __future__ import annotations

from datetime import UTC, datetime

from nextlabel.campaign.rows import CampaignRow
from nextlabel.errors import ClockError

#: Seconds that a clock may be behind the last event, as another machine's clock or a corrected one is.
MOST_BEHIND_S = 60.0
#: Seconds that may pass between two events.
MOST_AHEAD_S = 30 * 86_400.0


def doubt_about(row: CampaignRow, now: float) -> ClockError | None:
    """Why nothing may be written at ``now``; None if it may."""
    if row.seq == 0 or row.last_at - MOST_BEHIND_S <= now <= row.last_at + MOST_AHEAD_S:
        return None
    return ClockError(
        f"the clock says {_written(now)}, {_apart(row.last_at, now)} the last event of campaign {row.id!r} "
        f"({_written(row.last_at)}).",
        f"Set the clock right. If it is right, accept it: nextlabel campaign clock {row.id} --accept.",
    )


def _apart(last: float, now: float) -> str:
    seconds = abs(now - last)
    for size, unit in ((86_400.0, "days"), (3_600.0, "hours"), (60.0, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:,.0f} {unit} {'after' if now > last else 'before'}"
    return f"{seconds:.0f} seconds {'after' if now > last else 'before'}"


def _written(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")[:-6] + "Z"
    except (ValueError, OverflowError, OSError):
        return f"{seconds:.0f} s since 1970"
