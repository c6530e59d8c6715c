"""Numbers checked at the edge: what was given, what is allowed, what to do."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

from nextlabel.errors import ProblemError

#: Largest count or budget accepted.
LARGEST = 10**9


def whole(name: str, value: Any, least: int, hint: str) -> int:
    """``value`` as a whole number of at least ``least``, or a ProblemError."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ProblemError(f"{name} is {value!r}, which is not a whole number.", hint)
    if not isinstance(value, Integral) and not float(value).is_integer():
        raise ProblemError(f"{name} is {value!r}, which is not a whole number.", hint)
    number = int(float(value)) if not isinstance(value, Integral) else int(value)
    if not least <= number <= LARGEST:
        shown = f"{number}" if abs(number) <= LARGEST else "too large a number"
        raise ProblemError(f"{name} is {shown}: give a whole number from {least} to {LARGEST:,}.", hint)
    return number


def positive(name: str, value: Any, hint: str, *, infinite: bool = False) -> float:
    """``value`` as a positive float, or a ProblemError."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ProblemError(f"{name} is {value!r}, which is not a number.", hint)
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not number > 0 or (math.isinf(number) and not infinite):
        raise ProblemError(f"{name} is {number:g}, which is not a positive number.", hint)
    return number
