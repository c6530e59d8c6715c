"""Words that people use for labels, as numbers: 0 and 1 where there are two, else 0, 1, 2 ... in sorted order.

Spellings that differ in upper and lower case, in spaces, or by the '.0' that spreadsheets add to whole numbers are one
label, called as it was first met. 0 and 1, false and true, no and yes speak for themselves. Other words are numbered in
sorted order, so that of two the last one counts as 1. A positive one that is named counts as 1, and all others as 0.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from shlex import quote

import numpy as np

from nextlabel.arrays import Ints
from nextlabel.errors import InputError
from nextlabel.files.columns import CodedColumn
from nextlabel.prose import listed

#: Words that stand for 0 and for 1 by themselves.
PAIRS = (("0", "1"), ("false", "true"), ("no", "yes"))
PLAIN = {word: value for pair in PAIRS for value, word in enumerate(pair)}
REST = "other"
_WHOLE = re.compile(r"^(-?\d+)[.,]0+$")


def without_zeros(word: str) -> str:
    """``1.0`` and ``1,0`` as ``1``, with single spaces; any other word as it is."""
    return _WHOLE.sub(r"\1", " ".join(word.split()))


def folded(word: str) -> str:
    """What all spellings of a label have in common."""
    return without_zeros(word).casefold()


def fold_spellings(column: CodedColumn) -> tuple[CodedColumn, dict[str, list[str]]]:
    """The column with one name per label, and the spellings of each label that has several."""
    spellings: dict[str, list[str]] = {}
    for name in column.names:
        spellings.setdefault(folded(name), []).append(name)
    if len(spellings) == len(column.names):
        return CodedColumn(column.codes, tuple(map(without_zeros, column.names))), {}
    place = {key: code for code, key in enumerate(spellings)}
    to = np.array([*(place[folded(name)] for name in column.names), -1], dtype=np.int64)
    names = {key: without_zeros(found[0]) for key, found in spellings.items()}
    several = {names[key]: found for key, found in spellings.items() if len(found) > 1}
    return CodedColumn(to[column.codes], tuple(names.values())), several


def code_labels(words: Sequence[str], positive: str | None, path: str) -> tuple[Ints, tuple[str, ...], str | None]:
    """A code for each of the different words, the names of the codes, and the positive word as it is spelt here."""
    keys = [folded(word) for word in words]
    if positive is not None:
        if folded(positive) not in keys:
            raise InputError(
                f"no label in {path} is {positive!r}; the labels are {listed(words)}.",
                f"Name the one that counts as 1, e.g. --positive {quote(words[-1])}.",
            )
        wanted = words[keys.index(folded(positive))]
        rest = [word for word in words if word != wanted]
        names = (rest[0] if len(rest) == 1 else REST if wanted != REST else "rest", wanted)
        return np.array([int(word == wanted) for word in words], dtype=np.int64), names, wanted
    if all(key in PLAIN for key in keys):
        pair = next((pair for pair in PAIRS if set(keys) <= set(pair)), PAIRS[0])
        return np.array([PLAIN[key] for key in keys], dtype=np.int64), pair, None
    if len(words) == 1:
        raise InputError(
            f"every label in {path} is {words[0]!r}, which says neither 0 nor 1.",
            f"Give labels of both kinds, or say that this one counts as 1: --positive {quote(words[0])}.",
        )
    classes = _in_order(words)
    place = {name: code for code, name in enumerate(classes)}
    return np.array([place[word] for word in words], dtype=np.int64), classes, None


def code_gold(words: Sequence[str], labels: Sequence[str], positive: str | None, path: str) -> Ints:
    """Codes of gold labels, by the coding that the table's labels have."""
    keys = [folded(word) for word in words]
    if positive is not None:
        return np.array([int(key == folded(positive)) for key in keys], dtype=np.int64)
    place = PLAIN if tuple(labels) in PAIRS else {folded(name): code for code, name in enumerate(labels)}
    unknown = next((word for word, key in zip(words, keys, strict=True) if key not in place), None)
    if unknown is not None:
        raise InputError(
            f"{path} has the gold label {unknown!r}, which no worker gave; their labels are {listed(list(labels))}.",
            "Use the same words in both files, or name the one that counts as 1 with --positive.",
        )
    return np.array([place[key] for key in keys], dtype=np.int64)


def _in_order(words: Sequence[str]) -> tuple[str, ...]:
    """Numbers by their size, anything else by the alphabet."""
    try:
        return tuple(sorted(words, key=lambda word: (float(word), word)))
    except ValueError:
        return tuple(sorted(words))
