"""Texts typed after a flag, as numbers, lists and matrices; every refusal says what was given and what is allowed.

Only the form is checked here; ranges are checked by Problem.
"""

from __future__ import annotations

import json
import re
import tomllib
from typing import Any

from nextlabel.errors import ProblemError

Number = int | float


def parse_number(name: str, text: str, hint: str, kind: str = "number") -> Number:
    """``text`` as an int where it is written as one, else as a float."""
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        raise ProblemError(f"{name} is {text!r}, which is not a {kind}.", hint) from None


def parse_whole(flag: str, text: str, least: int, hint: str) -> int:
    """``text`` as a whole number of at least ``least``."""
    try:
        number = int(text)
    except ValueError:
        raise ProblemError(f"{flag} is {text!r}, which is not a whole number.", hint) from None
    if number < least:
        raise ProblemError(f"{flag} is {number}, which is less than {least}.", hint)
    return number


def parse_prior(text: str) -> list[float] | dict[str, Any]:
    """``a,b``, one weight per answer, or what ``nextlabel prior`` recommends: its line, or the table in it."""
    hint = (
        "Give two positive numbers with a comma between them, e.g. --prior 1,1, one per answer: 1,1,1, or, in quotes, "
        "the line that nextlabel prior prints."
    )
    if "{" in text or "[" in text:
        return _prior_table(text, hint)
    try:
        weights = [float(part) for part in text.split(",")]
    except ValueError:
        weights = []
    if len(weights) < 2:
        raise ProblemError(f"prior {text!r} is not a pair of numbers.", hint)
    return weights


def _prior_table(text: str, hint: str) -> list[float] | dict[str, Any]:
    """A line of a problem file, the value in it, or the same value as JSON."""
    value = (text.partition("=")[2] if re.match(r"\s*prior\s*=", text) else text).strip()
    for wrapped, read in ((f"prior = {value}", tomllib.loads), (f'{{"prior": {value}}}', json.loads)):
        try:
            found = read(wrapped)["prior"]
        except ValueError:  # what both readers raise
            continue
        if isinstance(found, dict | list):
            return found
    raise ProblemError(f"prior {text!r} cannot be read as a table.", hint)


def parse_matrix(text: str) -> list[list[float]]:
    """Rows with semicolons between them, numbers with commas between them."""
    try:
        return [[float(cell) for cell in row.split(",")] for row in text.split(";")]
    except ValueError:
        raise ProblemError(
            f"utility {text!r} is not a matrix.",
            'Give one row per decision with one number per truth: --utility "1,-5;0,1".',
        ) from None


def parse_rate(text: str) -> Number | list[list[float]]:
    """One rate, or ``start:rate`` pieces with commas between them."""
    hint = "Give workers per unit of time, e.g. --arrival-rate 0.1, or pieces with their starts: 0:2,16:0.2."
    if ":" not in text:
        return parse_number("arrival rate", text, hint)
    pieces = [piece.split(":") for piece in text.split(",")]
    try:
        return [[float(start), float(rate)] for start, rate in pieces]
    except ValueError:
        raise ProblemError(f"arrival rate {text!r} is not a list of starts and rates.", hint) from None
