"""Which columns of a task workers are shown: those that the campaign's setting ``show`` names.

All columns of a file are kept with their task and come back with the results. Without the setting, workers are shown
all columns but those whose names look personal or like a model's score; ``*`` stands for all of them. Payloads that are
not tables (a text, a list) are shown as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from nextlabel.errors import InputError
from nextlabel.files.tasks import SCORE_NAMES
from nextlabel.prose import listed

ALL: Final = "*"
#: Words that make a column's name look personal.
_PERSONAL: Final = frozenset({
    "email", "mail", "phone", "telephone", "tel", "mobile", "fax", "ip", "address", "street", "postcode", "zip",
    "zipcode", "ssn", "passport", "iban", "birth", "birthday", "birthdate", "birthplace", "dob", "surname", "firstname",
    "lastname", "fullname", "username", "nickname", "forename", "salary", "gender", "religion", "ethnicity", "latitude",
    "longitude",
})  # fmt: skip
#: Words before 'name' that make it a person's; 'name' alone is one too.
_WHOSE: Final = frozenset({
    "first", "last", "full", "middle", "given", "family", "user", "nick", "maiden", "customer", "client", "patient",
    "person", "author", "employee", "student", "contact", "sender", "recipient", "worker", "reviewer", "member",
    "owner",
})  # fmt: skip
_WORD: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[^\W\d_]+")


def looks_personal(column: str) -> bool:
    """Whether a column's name says that it is about a person: an address, a name, a number to call ..."""
    words = [word.lower() for word in _WORD.findall(column)]
    if not _PERSONAL.isdisjoint(words):
        return True
    return any(word == "name" and (k == 0 or words[k - 1] in _WHOSE) for k, word in enumerate(words))


def is_shown(show: Sequence[str] | None, column: str) -> bool:
    """Whether workers are shown a column."""
    if show is None:
        return not looks_personal(column) and column.strip().lower() not in SCORE_NAMES
    return ALL in show or column in show


def shown_payload(show: Sequence[str] | None, payload: Any) -> Any:
    """The part of a payload that workers are shown."""
    if not isinstance(payload, Mapping) or (show is not None and ALL in show):
        return payload
    return {name: value for name, value in payload.items() if is_shown(show, name)}


def columns_of(payloads: Iterable[Any]) -> list[str]:
    """The columns of some payloads, those that come first first."""
    return list(dict.fromkeys(name for one in payloads if isinstance(one, Mapping) for name in one))


def check_columns(show: Sequence[str], payloads: Sequence[Any]) -> None:
    """Refuse columns that none of the first tasks has: workers would be shown less than was meant."""
    known = columns_of(payloads)
    unknown = [name for name in show if name != ALL and name not in known]
    if known and unknown:
        raise InputError(f"the tasks have no column {unknown[0][:60]!r}.", f"They have {listed(known)}.")


def columns_notes(show: Sequence[str] | None, columns: Iterable[str], score_column: str | None) -> list[str]:
    """What whoever added a table should know: columns that workers are not shown, and a score that was not used."""
    names = list(columns)
    score = next((name for name in names if name.lower() == SCORE_NAMES[0]), None) if score_column is None else None
    used = "" if score is None else f"Column {score!r} was not used: name it as the score column to start from it."
    return [note for note in (columns_sentence(show, names), used) if note]


def columns_sentence(show: Sequence[str] | None, columns: Iterable[str]) -> str:
    """Which of some columns workers are shown and which not, for whoever added them; empty if there are none."""
    names = list(columns)
    seen, hidden = [n for n in names if is_shown(show, n)], [n for n in names if not is_shown(show, n)]
    if not hidden:
        return ""
    why = ""
    if show is None:
        personal = [name for name in hidden if looks_personal(name)]
        scores = [name for name in hidden if name not in personal]
        said = [f"{listed(personal)}: looks personal"] if personal else []
        said += [f"{listed(scores)}: looks like a model's score"] if scores else []
        why = f" ({'; '.join(said)})"
    return f"Workers are shown {listed(seen) or 'nothing'}; kept but not shown: {listed(hidden)}{why}."
