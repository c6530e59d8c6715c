"""Which form of a text goes with a whole number: the plural rules of Unicode's CLDR for the page's languages.

Browsers have the same rules in ``Intl.PluralRules``, which the page's script uses; a test compares the two.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final


def _only_one(n: int) -> str:
    return "one" if n == 1 else "other"


def _none_or_one(n: int) -> str:
    return "one" if n in (0, 1) else "other"


def _without(_: int) -> str:
    return "other"


def _arabic(n: int) -> str:
    if n < 3:
        return ("zero", "one", "two")[n]
    if 3 <= n % 100 <= 10:
        return "few"
    return "many" if n % 100 >= 11 else "other"


PLURALS: Final[dict[str, Callable[[int], str]]] = {
    "en": _only_one, "de": _only_one, "es": _only_one, "fr": _none_or_one, "pt": _none_or_one, "hi": _none_or_one,
    "zh": _without, "ar": _arabic,
}  # fmt: skip
#: The forms that a language's texts have, from the smallest number on.
FORMS: Final = {language: tuple(dict.fromkeys(map(rule, range(1000)))) for language, rule in PLURALS.items()}
