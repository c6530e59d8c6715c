"""Numbers as people write them in tables, with a decimal point or a decimal comma."""

from __future__ import annotations

from typing import Any


def number(cell: Any) -> float:
    """A cell as a number; a ValueError if it is none."""
    try:
        return float(cell)
    except ValueError:
        return float(with_point(cell))


def with_point(text: str) -> str:
    """``0,5`` as ``0.5``; anything else as it is, without spaces around it."""
    text = text.strip()
    whole, comma, rest = text.partition(",")
    return f"{whole}.{rest}" if comma and whole.lstrip("+-").isdecimal() and rest.isdecimal() else text
