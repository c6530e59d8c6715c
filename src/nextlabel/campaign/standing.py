"""How a worker stands with the requester."""

from __future__ import annotations

from typing import Any, Final, Literal

from nextlabel.errors import InputError

Standing = Literal["active", "paused", "blocked"]
STANDINGS: Final[dict[Standing, str]] = {
    "active": "Gets tasks.",
    "paused": "Gets no new task until restored; an answer to an item that they hold counts.",
    "blocked": "Gets no task until restored; answers that still come are kept but do not count.",
}
#: Characters of a reason.
LONGEST_REASON: Final = 500


def checked_reason(reason: Any) -> str:
    """Why somebody was paused or blocked, or their labels dropped: for the log, not for the worker; may be empty."""
    if not isinstance(reason, str) or len(reason) > LONGEST_REASON or "\x00" in reason:
        raise InputError(f"a reason is a text of at most {LONGEST_REASON} characters.", "Give a shorter reason.")
    return reason.strip()
