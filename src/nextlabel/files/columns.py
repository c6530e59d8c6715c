"""Columns as codes and names, whatever type they have in the file.

Words lose blanks at both ends. A cell that is empty, or missing as Parquet knows it, has the code -1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.errors import FileFormatError, InputError
from nextlabel.prose import listed

#: Cells that hold no label, besides empty ones; in small letters.
NO_LABEL = ("nan", "null", "<na>")


@dataclass(frozen=True, slots=True, eq=False)
class Words:
    """A column of words: ``names`` in the order of their first row, -1 where a cell is blank."""

    codes: Ints
    names: tuple[str, ...]

    @classmethod
    def of(cls, cells: Iterable[str | None]) -> Words:
        """From words one by one."""
        place: dict[str, int] = {}
        codes = [-1 if not cell else place.setdefault(cell, len(place)) for cell in cells]
        return cls(np.array(codes, dtype=np.int64), tuple(place))

    def kept(self, rows: Ints) -> Words:
        """The rows, with the names that they use."""
        codes = self.codes[rows]
        first = np.full(len(self.names) + 1, len(codes), dtype=np.int64)  # the last place is that of blank cells
        first[codes[::-1]] = np.arange(len(codes))[::-1]
        first[-1] = len(codes)
        order = np.argsort(first, kind="stable")[: int((first < len(codes)).sum())]
        to = np.full(len(first), -1, dtype=np.int64)
        to[order] = np.arange(len(order))
        return Words(to[codes], tuple(self.names[k] for k in order))


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """The columns asked for by role; those that may be missing are None where they are."""

    task: Words
    label: Words
    worker: Words | None = None
    assigned_at: Floats | None = None
    submitted_at: Floats | None = None
    gold_marks: int = 0

    def __len__(self) -> int:
        return len(self.task.codes)


def arrow() -> Any:
    """The package pyarrow, or a sentence on how to get it."""
    try:
        import pyarrow
        import pyarrow.compute
        import pyarrow.csv
        import pyarrow.parquet
    except ImportError as error:
        raise InputError(
            "reading files of labels needs the packages pandas and pyarrow.", "pip install 'nextlabel[data]'."
        ) from error
    return pyarrow


def find_columns(
    path: Path, header: Sequence[str], roles: Mapping[str, str], optional: Sequence[str]
) -> dict[str, int]:
    """Where each role's column is; upper and lower case are the same where that leaves no doubt."""
    at = {}
    small = [name.casefold() for name in header]
    for role, name in roles.items():
        for names, wanted in ((list(header), name), (small, name.casefold())):
            if names.count(wanted) == 1:
                at[role] = names.index(wanted)
                break
        else:
            if role in optional and name.casefold() not in small:
                continue
            there = "more than one column" if name.casefold() in small else "no column"
            raise FileFormatError(
                f"{path} has {there} {name!r}; it has the columns {listed(list(header))}.",
                f"Name the one that holds it with --{role.replace('_at', '')}-column.",
            )
    return at


def as_words(path: Path, name: str, cells: Any, blank: Sequence[str] = ()) -> Words:
    """A column of any plain type as words."""
    pa = arrow()
    pc = pa.compute
    try:
        if pa.types.is_floating(cells.type):
            cells = pc.if_else(pc.is_nan(cells), None, cells)
            whole = pc.all(pc.equal(cells, pc.round(cells))).as_py()
            cells = cells.cast(pa.int64()) if whole is not False else cells
        if not pa.types.is_dictionary(cells.type):
            cells = cells.dictionary_encode()
        cells = cells.unify_dictionaries().combine_chunks()
        names = pc.utf8_trim_whitespace(cells.dictionary.cast(pa.string()))
    except (pa.ArrowException, TypeError) as error:
        raise FileFormatError(
            f"column {name!r} of {path} holds {cells.type}, not words or numbers.", "Give a plain column."
        ) from error
    empty = pc.is_in(pc.utf8_lower(names), value_set=pa.array(["", *blank]))
    merged = pc.if_else(empty, None, names).dictionary_encode()
    to = np.append(_codes(merged), -1)
    out = Words(to[_codes(cells)], tuple(merged.dictionary.to_pylist()))
    long = next((word for word in out.names if "\n" in word), None)
    if long is not None:
        raise FileFormatError(
            f"a cell of column {name!r} of {path} runs over several lines, from {long.splitlines()[0][:40]!r} on.",
            "Close its quotation mark.",
        )
    return out


def _codes(cells: Any) -> Ints:
    return np.asarray(cells.indices.fill_null(-1).to_numpy(zero_copy_only=False), dtype=np.int64)
