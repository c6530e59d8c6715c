"""Numbers and names as words, for reports and error messages; and what a text that comes in may hold."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime

from nextlabel.errors import InputError

#: Names shown in a message.
MOST_SHOWN = 12

#: The password in an address, between a colon and the last @; and one that is given as a parameter.
_PASSWORD = re.compile(r"(\w://[^\s:/@]*):\S+@")
_PARAMETER = re.compile(r"\b((?:ssl)?password=)[^\s&]+")
#: A null character, and half of a pair of surrogates: JSON can say them, and no database or file takes them.
_BROKEN = re.compile("[\x00\ud800-\udfff]")


def is_text(value: object) -> bool:
    """Whether something is a text that databases, files and browsers take; every text that comes in is asked."""
    return isinstance(value, str) and _BROKEN.search(value) is None


def looks(text: str) -> str:
    """A text as a reader sees it: without invisible characters, with one space for many, each letter in one form."""
    shown = (c for c in unicodedata.normalize("NFKC", text) if unicodedata.category(c) not in ("Cf", "Cc"))
    return " ".join("".join(shown).split())


def counted(number: int, noun: str, many: str = "") -> str:
    """``number`` of a thing, in English."""
    return f"{number:,} {noun if number == 1 else many or noun + 's'}"


def tallied(*tallies: tuple[int, str, str]) -> list[str]:
    """A sentence for each number that is not 0: of what there are so many (``one|many``), and what about them."""
    return [f"{counted(number, *nouns.split('|'))} {end}" for number, nouns, end in tallies if number]


def listed(names: Sequence[object]) -> str:
    """Names with commas, the first few of them where there are many."""
    more = "" if len(names) <= MOST_SHOWN else f" and {len(names) - MOST_SHOWN:,} more"
    return ", ".join(map(str, names[:MOST_SHOWN])) + more


def joined(parts: Sequence[str], word: str = "and") -> str:
    """Parts of a sentence: a, b and c."""
    *before, last = parts
    return f"{', '.join(before)} {word} {last}" if before else last


def percent(share: float) -> str:
    """A share as a percentage, with more digits where it is small."""
    return f"{100 * share:.0f}%" if share == 0 or share >= 0.1 else f"{100 * share:.2g}%"


def without_passwords(text: str) -> str:
    """A text with the passwords of addresses in it replaced by ***."""
    return _PARAMETER.sub(r"\1***", _PASSWORD.sub(r"\1:***@", text))


def has_password(address: str) -> bool:
    """Whether an address contains a password."""
    return without_passwords(address) != address


def iso(seconds: float) -> str:
    """Seconds since 1970, written as ``2026-07-01T12:00:00.000Z``."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"


def iso_or_none(seconds: float | None) -> str | None:
    """The same, with None for no time."""
    return None if seconds is None else iso(seconds)


@contextmanager
def needs(what: str, package: str, install: str = "") -> Iterator[None]:
    """Imports that ``what`` needs: where the package is missing, one sentence says how to get it."""
    try:
        yield
    except ImportError as error:
        raise InputError(f"{what} needs the package {package}.", f"pip install {install or package}.") from error
