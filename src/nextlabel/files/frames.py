"""Data frames of the libraries that people go on in, by narwhals.

Tasks or labels whose names are all whole numbers are integers, so that they compare with the integers that they came
from.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Literal, get_args

import narwhals as nw

from nextlabel.errors import InputError
from nextlabel.wording import joined, needs

Library = Literal["pandas", "polars", "pyarrow"]
#: Names that users give, which may be numbers of theirs.
NAMES = frozenset(("task", "label"))
_INTEGER = re.compile(r"-?[1-9][0-9]*|0")


def make_frame(names: Sequence[str], rows: Sequence[Sequence[Any]], library: Library) -> Any:
    """A data frame of the library from names of columns and rows."""
    if library not in get_args(Library):
        raise InputError(f"library {library!r} is not known.", f"Use {joined(get_args(Library), 'or')}.")
    columns = {name: [row[k] for row in rows] for k, name in enumerate(names)}
    for name in NAMES & columns.keys():
        columns[name] = as_integers(columns[name])
    if library != "pandas":  # the others have one type for each column
        columns = {name: _one_type(cells) for name, cells in columns.items()}
    with needs("a data frame", library):
        return nw.from_dict(columns, backend=library).to_native()


def as_integers(cells: list[Any]) -> list[Any]:
    """Names that are whole numbers, all of them, as integers: what came in as integers comes out as integers."""
    known = [cell for cell in cells if cell is not None]
    if not all(_INTEGER.fullmatch(cell) for cell in known):
        return cells
    return [None if cell is None else int(cell) for cell in cells]


def _one_type(cells: list[Any]) -> list[Any]:
    """Cells of different types as texts; whole and other numbers go together."""
    kinds = {float if type(cell) is int else type(cell) for cell in cells if cell is not None}
    return cells if len(kinds) <= 1 else [None if cell is None else str(cell) for cell in cells]
