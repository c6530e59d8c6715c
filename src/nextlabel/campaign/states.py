"""The vocabulary of a campaign: its states, and the reasons why a worker gets no task, with one sentence for each.

The command line, the API, the dashboard and Python all use these words. A campaign that is closed has a reason, one of
``CLOSING``.
"""

from __future__ import annotations

from typing import Any, Final, Literal

from nextlabel.errors import InputError
from nextlabel.wording import is_text

#: A model's name as a worker begins with it.
PREFIX: Final = "model:"
State = Literal["open", "paused", "closed"]

Reason = Literal[
    "budget_spent", "all_leased", "nothing_left_for_you", "paused", "deadline_passed", "finished", "preparing",
    "below_price", "worker_paused", "worker_blocked", "quota_reached", "turned_away",
]  # fmt: skip

REASONS: Final[dict[Reason, str]] = {
    "budget_spent": "All labels of this campaign have been bought.",
    "all_leased": "Every task that needs a label is with somebody else right now.",
    "nothing_left_for_you": "You have seen every task that still needs a label.",
    "paused": "The campaign is paused.",
    "deadline_passed": "The campaign's deadline has passed.",
    "finished": "Every task has all the labels that it can have.",
    "preparing": "The campaign is being prepared: its tasks, or the tables of its policy, are not there yet.",
    "below_price": "No task would gain as much from another label as the label costs.",
    "worker_paused": "The requester has paused this worker.",
    "worker_blocked": "The requester gives this worker no more tasks.",
    "quota_reached": "This worker has given as many labels as one worker may give.",
    "turned_away": "At present the labels that are left do more with other workers.",
}

#: Reasons that close a campaign.
CLOSING: Final[tuple[Reason, ...]] = ("budget_spent", "deadline_passed", "finished", "below_price")
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
    if not isinstance(reason, str) or len(reason) > LONGEST_REASON or not is_text(reason):
        raise InputError(f"a reason is a text of at most {LONGEST_REASON} characters.", "Give a shorter reason.")
    return reason.strip()
