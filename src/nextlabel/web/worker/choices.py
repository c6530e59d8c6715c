"""The answers as buttons, and the keys that press them."""

from __future__ import annotations

from typing import NamedTuple

SKIP_KEY, UNDO_KEY, INSTRUCTIONS_KEY = "s", "u", "?"
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
