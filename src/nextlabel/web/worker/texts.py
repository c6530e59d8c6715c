"""What the workers' page says, in the campaign's language: one file of ``languages`` for each, with the same keys.

A text has a key such as ``page.skip``; names in braces are filled in. One that says a number has a form for each plural
of the language (``plurals``) and is chosen by ``n``::

    texts = worker_texts("de")
    texts("time.minutes", n=5)                                       # noch 5 Minuten
    texts.html("page.last_answer", label=Markup("<b>ja</b>"))        # the text is escaped, the value is not

The language is the campaign's setting. Where that is left out each worker's browser decides, and a browser that
asks for none of ours gets English.

Which form of a text goes with a whole number: the plural rules of Unicode's CLDR for the page's languages.

Browsers have the same rules in ``Intl.PluralRules``, which the page's script uses; a test compares the two.
"""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Final

from markupsafe import Markup

from nextlabel.campaign.declaration import LANGUAGES
from nextlabel.campaign.states import CLOSING

FOLDER = Path(__file__).parent / "languages"
DEFAULT = "en"

#: Reasons why there is no task that no waiting changes.
FINAL_REASONS: Final = frozenset((*CLOSING, "nothing_left_for_you", "worker_blocked", "quota_reached", "turned_away"))

#: The sections that the page's script needs.
IN_SCRIPT: Final = ("time", "status", "media")

#: Up to how many seconds a time is said in this unit, and how many seconds the unit has.
UNITS: Final = (("seconds", 90, 1), ("minutes", 5400, 60), ("hours", 2 * 86_400, 3600), ("days", math.inf, 86_400))

#: Parts of the header Accept-Language that are read.
MOST_ASKED = 20


class WorkerTexts:
    """The texts of one language."""

    def __init__(self, language: str, tables: Mapping[str, Any]) -> None:
        self.language, self.tag, self.direction = language, str(tables["tag"]), str(tables["direction"])
        self.sections = {name: table for name, table in tables.items() if isinstance(table, dict)}
        self.texts = dict(_flat("", self.sections))
        self.plural = PLURALS[language]
        self.for_script = json.dumps({name: self.sections[name] for name in IN_SCRIPT}, ensure_ascii=False)

    def __contains__(self, key: object) -> bool:
        return key in self.texts

    def __call__(self, key: str, **values: object) -> str:
        """A text, with values filled in."""
        return self._form(key, values).format(**values)

    def html(self, key: str, **values: object) -> Markup:
        """A text as HTML, with values that may be HTML filled in."""
        return Markup.escape(self._form(key, values)).format(**values)

    def time_left(self, seconds: float) -> str:
        """Roughly how long a lease still runs."""
        if seconds <= 0:
            return self("time.up")
        unit, _, length = next(one for one in UNITS if seconds < one[1])
        return self(f"time.{unit}", n=math.ceil(seconds) if length == 1 else round(seconds / length))

    def _form(self, key: str, values: Mapping[str, object]) -> str:
        found = self.texts[key]
        if isinstance(found, str):
            return found
        number = values["n"]
        assert isinstance(number, int)
        return found[self.plural(number)]


@cache
def worker_texts(language: str) -> WorkerTexts:
    """The texts of a language of ``LANGUAGES``."""
    return WorkerTexts(language, tomllib.loads((FOLDER / f"{language}.toml").read_text(encoding="utf-8")))


def texts_for(setting: str | None, accepted: str) -> WorkerTexts:
    """The texts of the campaign's setting, or else of the browser's header Accept-Language."""
    return worker_texts(setting if setting in LANGUAGES else preferred(accepted))


def preferred(accepted: str) -> str:
    """The language of ours that a browser likes best: a header such as ``de-CH, fr;q=0.8``."""
    best, found = 0.0, DEFAULT
    for part in accepted.split(",")[:MOST_ASKED]:
        name, _, parameters = part.partition(";")
        language = name.strip().lower().split("-")[0]
        with suppress(ValueError):
            weight = float((parameters.strip() or "q=1").removeprefix("q="))
            if language in LANGUAGES and best < weight <= 1:
                best, found = weight, language
    return found


def _flat(prefix: str, tables: Mapping[str, Any]) -> Iterator[tuple[str, str | dict[str, str]]]:
    """Texts by their whole keys; a table with the form ``other`` is one text."""
    for name, value in tables.items():
        if isinstance(value, str) or "other" in value:
            yield prefix + name, value
        else:
            yield from _flat(f"{prefix}{name}.", value)


def _ones(*ones: int) -> Callable[[int], str]:
    return lambda n: "one" if n in ones else "other"


def _arabic(n: int) -> str:
    if n < 3:
        return ("zero", "one", "two")[n]
    if 3 <= n % 100 <= 10:
        return "few"
    return "many" if n % 100 >= 11 else "other"


PLURALS: Final[dict[str, Callable[[int], str]]] = {
    "en": _ones(1), "de": _ones(1), "es": _ones(1), "fr": _ones(0, 1), "pt": _ones(0, 1), "hi": _ones(0, 1),
    "zh": _ones(), "ar": _arabic,
}  # fmt: skip
