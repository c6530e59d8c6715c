"""What the page says."""

from __future__ import annotations

import math
from typing import Final, NamedTuple


class Reason(NamedTuple):
    """Why there is no task, to a worker; ``final``: nothing will come for them that they should wait for."""

    heading: str
    text: str
    final: bool


#: For every reason of ``campaign.replies``.
REASONS: Final = {
    "budget_spent": Reason("All done", "All labels of this campaign have been given. Thank you for your help.", True),
    "finished": Reason("All done", "Every item has all the labels it needs. Thank you for your help.", True),
    "below_price": Reason("All done", "The items are clear enough: no more labels are needed. Thank you.", True),
    "deadline_passed": Reason("The campaign is over", "Its deadline has passed. Thank you for your help.", True),
    "nothing_left_for_you": Reason(
        "Nothing left for you", "You have seen every item that still needs a label. Thank you for your help.", True
    ),
    "all_leased": Reason(
        "Just a moment", "Every item that needs a label is with somebody else right now. One may come back soon.", False
    ),
    "paused": Reason("On a break", "The campaign is paused. Nothing you did is lost; please wait or come back.", False),
    "preparing": Reason("Nearly ready", "The campaign is being prepared. The first item is here in a moment.", False),
}

#: What became of something that did not go the usual way.
NOTES: Final = {
    "again": "Your answer was saved already. Here is the current item.",
    "answered": "You had answered that item already, and that answer stands. Here is the current item.",
    "late": "The time for that item was over, but your answer was kept.",
    "not_needed": "The time for that item was over and its label is no longer needed. Your answer was kept aside.",
    "not_yours": "That item is not with you any more. Here is the current one.",
    "too_late": "It is too late to take that answer back: the item's time is over.",
}

SKIP_KEY, UNDO_KEY = "s", "u"
DIGITS = "123456789"


class Choice(NamedTuple):
    """An answer as a button; ``keys`` choose it on a keyboard."""

    number: int
    label: str
    keys: tuple[str, ...]


def choices(labels: tuple[str, ...]) -> list[Choice]:
    """The answers: the first nine by digit, all by their first letter where no other begins with it."""
    firsts = [label[0].lower() for label in labels]
    found = []
    for number, first in enumerate(firsts):
        digit = (DIGITS[number],) if number < len(DIGITS) else ()
        own = first.isalpha() and firsts.count(first) == 1 and first not in (SKIP_KEY, UNDO_KEY)
        found.append(Choice(number, labels[number], (*digit, first) if own else digit))
    return found


def time_left(seconds: float) -> str:
    """How long a lease is still out, roughly."""
    if seconds <= 0:
        return "time is over"
    if seconds < 90:
        return f"{math.ceil(seconds)} seconds left"
    if seconds < 5400:
        return f"{round(seconds / 60)} minutes left"
    if seconds < 2 * 86_400:
        return f"{round(seconds / 3600)} hours left"
    return f"{round(seconds / 86_400)} days left"
