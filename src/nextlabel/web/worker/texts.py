"""The texts of the workers' page."""

from __future__ import annotations

import math
from typing import Final, NamedTuple


class Reason(NamedTuple):
    """Why there is no task; if ``final``, there is nothing to wait for."""

    heading: str
    text: str
    final: bool


#: For every reason of ``campaign.replies``.
REASONS: Final = {
    "budget_spent": Reason("All done", "This campaign has all its labels. Thank you for your help.", True),
    "finished": Reason("All done", "Every item has all the labels it needs. Thank you for your help.", True),
    "below_price": Reason(
        "All done", "The items are clear enough, so no more labels are needed. Thank you for your help.", True
    ),
    "deadline_passed": Reason("The campaign is over", "Its deadline has passed. Thank you for your help.", True),
    "nothing_left_for_you": Reason(
        "Nothing left for you",
        "You have seen every item that still needs a label. Thank you for your help.",
        True,
    ),
    "worker_blocked": Reason("Thank you for your help", "There are no more items for you in this campaign.", True),
    "quota_reached": Reason(
        "Thank you for your help", "You have given as many labels as one person may give in this campaign.", True
    ),
    "worker_paused": Reason(
        "A short break",
        "There is no item for you at the moment. Your answers are saved; please come back later.",
        False,
    ),
    "all_leased": Reason(
        "Just a moment", "All items that need a label are with other people right now. One may become free soon.", False
    ),
    "paused": Reason(
        "On a break", "The campaign is paused. Your answers are saved; please wait or come back later.", False
    ),
    "preparing": Reason(
        "Nearly ready", "The campaign is being prepared. The first item will appear in a moment.", False
    ),
}

#: Notes on actions that did not have the usual effect.
NOTES: Final = {
    "taken_back": "That item is no longer assigned to you. Your answer was kept, but does not count.",
    "again": "Your answer had already been saved. Here is the current item.",
    "answered": "You had already answered that item, and your first answer stands. Here is the current item.",
    "late": "The time for that item had run out, but your answer was kept.",
    "not_needed": "The time for that item had run out, and it needs no more labels. Your answer does not count.",
    "not_yours": "That item is no longer assigned to you. Here is the current one.",
    "too_late": "It is too late to undo that answer: the time for the item has run out.",
}

SKIP_KEY, UNDO_KEY = "s", "u"
DIGITS = "123456789"


class Choice(NamedTuple):
    """An answer as a button; any of ``keys`` chooses it."""

    number: int
    label: str
    keys: tuple[str, ...]


def choices(labels: tuple[str, ...]) -> list[Choice]:
    """The answers with their keys: digits for the first nine, and the first letter if no other label has it."""
    firsts = [label[0].lower() for label in labels]
    found = []
    for number, first in enumerate(firsts):
        digit = (DIGITS[number],) if number < len(DIGITS) else ()
        own = first.isalpha() and firsts.count(first) == 1 and first not in (SKIP_KEY, UNDO_KEY)
        found.append(Choice(number, labels[number], (*digit, first) if own else digit))
    return found


def time_left(seconds: float) -> str:
    """Roughly how long a lease still runs."""
    if seconds <= 0:
        return "time is up"
    if seconds < 90:
        return f"{math.ceil(seconds)} seconds left"
    if seconds < 5400:
        return f"{round(seconds / 60)} minutes left"
    if seconds < 2 * 86_400:
        return f"{round(seconds / 3600)} hours left"
    return f"{round(seconds / 86_400)} days left"
