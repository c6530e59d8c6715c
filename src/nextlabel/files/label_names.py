"""Words that people use for labels, as numbers: 0 and 1 where there are two, else 0, 1, 2 ... in sorted order.

0 and 1, false and true, no and yes speak for themselves. Of two other words one has to be said to be the positive one.
With more than two, the positive one is set against all others, or each is a class of its own where none is said.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from shlex import quote

import numpy as np

from nextlabel.arrays import Ints
from nextlabel.errors import InputError
from nextlabel.prose import listed

#: Words that stand for 0 and for 1 by themselves.
PAIRS = (("0", "1"), ("false", "true"), ("no", "yes"))
PLAIN = {word: value for pair in PAIRS for value, word in enumerate(pair)}
REST = "other"


def normal(words: Sequence[str]) -> list[str]:
    """Words as they are; whole numbers without their '.0', which pandas adds where a cell was empty."""
    return [re.sub(r"^(-?\d+)\.0+$", r"\1", word) for word in words]


def code_words(words: Sequence[str], positive: str | None, path: str) -> tuple[Ints, tuple[str, ...], str | None]:
    """A code for each word, the names of the codes, and the positive word as it is spelt here."""
    spelt = normal(words)
    different = list(dict.fromkeys(spelt))
    if positive is not None:
        wanted = normal([positive.strip()])[0]
        if wanted not in different:
            raise InputError(
                f"no label in {path} is {positive!r}; the labels are {listed(different)}.",
                f"Say which one counts as 1, e.g. --positive {quote(different[-1])}.",
            )
        rest = [word for word in different if word != wanted]
        names = (rest[0] if len(rest) == 1 else REST if wanted != REST else "rest", wanted)
        return np.array([int(word == wanted) for word in spelt], dtype=np.int64), names, wanted
    folded = [word.casefold() for word in different]
    if all(word in PLAIN for word in folded):
        pair = next((pair for pair in PAIRS if set(folded) <= set(pair)), PAIRS[0])
        return np.array([PLAIN[word.casefold()] for word in spelt], dtype=np.int64), pair, None
    if len(different) <= 2:
        ones = " and ".join(map(repr, different))
        raise InputError(
            f"{path} has the {'labels' if len(different) == 2 else 'label'} {ones}, which "
            f"{'are' if len(different) == 2 else 'is'} not 0 or 1.",
            f"Say which one counts as 1, e.g. --positive {quote(different[-1])}.",
        )
    classes = _in_order(different)
    place = {name: code for code, name in enumerate(classes)}
    return np.array([place[word] for word in spelt], dtype=np.int64), classes, None


def code_gold(words: Sequence[str], labels: Sequence[str], positive: str | None, path: str) -> Ints:
    """Codes of gold labels, by the coding that the table's labels have."""
    spelt = normal(words)
    if positive is not None:
        return np.array([int(word == positive) for word in spelt], dtype=np.int64)
    place = dict(PLAIN) if tuple(labels) in PAIRS else {name: code for code, name in enumerate(labels)}
    fold = tuple(labels) in PAIRS
    for word in spelt:
        if (word.casefold() if fold else word) not in place:
            raise InputError(
                f"{path} has the gold label {word!r}, which no worker gave; their labels are {listed(list(labels))}.",
                "Use the same words in both files, or say which one counts as 1 with --positive.",
            )
    return np.array([place[word.casefold() if fold else word] for word in spelt], dtype=np.int64)


def _in_order(words: Sequence[str]) -> tuple[str, ...]:
    """Numbers by their size, anything else by the alphabet."""
    try:
        return tuple(sorted(words, key=lambda word: (float(word), word)))
    except ValueError:
        return tuple(sorted(words))
