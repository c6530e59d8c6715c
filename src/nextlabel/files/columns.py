"""The columns that labels are made of: found by their names, and read as codes and names.

Columns are looked for by the name given, then without regard to upper and lower case, spaces and underscores. A role
that has its usual name (``task``, ``worker``, ``label`` ...) is also found under the other names in ``USUAL``.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.errors import FileFormatError
from nextlabel.files.open_table import Table
from nextlabel.files.report import TableReport
from nextlabel.files.times import seconds
from nextlabel.prose import listed

#: Cells that hold no label, besides empty ones; in small letters.
NO_LABEL = frozenset({"nan", "null", "<na>"})
#: Names under which a role's column is looked for, the best known first.
USUAL = {
    "task": ("task", "task_id", "item", "item_id", "example_id", "question_id", "hit_id", "id"),
    "worker": ("worker", "worker_id", "annotator", "annotator_id", "performer", "rater", "user", "user_id"),
    "label": ("label", "answer", "response", "judgment", "judgement", "annotation", "vote"),
    "assigned_at": ("assigned_at", "accept_time", "started_at", "started"),
    "submitted_at": ("submitted_at", "submit_time", "submitted"),
    "batch": ("batch", "batch_id"),
    "score": ("probability", "score", "model_score", "prob"),
}
#: Roles that may be missing where their usual name was asked for.
OPTIONAL = ("worker", "assigned_at", "submitted_at", "batch")


@dataclass(frozen=True, slots=True, eq=False)
class CodedColumn:
    """A column of words: ``names`` in the order of their first row, the code -1 where a cell is blank."""

    codes: Ints
    names: tuple[str, ...]

    @classmethod
    def of(cls, cells: Iterable[Any], blank: frozenset[str] = frozenset()) -> CodedColumn:
        """From cells one by one."""
        code = _Codes(blank)
        codes = np.array([code[cell] for cell in cells], dtype=np.int64)
        return cls(codes, tuple(code.names))

    def kept(self, rows: Ints) -> CodedColumn:
        """The rows, with the names that they use."""
        codes = self.codes[rows]
        first = np.full(len(self.names) + 1, len(codes), dtype=np.int64)  # the last place is that of blank cells
        first[codes[::-1]] = np.arange(len(codes))[::-1]
        first[-1] = len(codes)
        order = np.argsort(first, kind="stable")[: int((first < len(codes)).sum())]
        to = np.full(len(first), -1, dtype=np.int64)
        to[order] = np.arange(len(order))
        return CodedColumn(to[codes], tuple(self.names[k] for k in order))


@dataclass(frozen=True, slots=True, eq=False)
class LabelColumns:
    """The columns of a file of labels; those that may be missing are None where they are."""

    report: TableReport
    task: CodedColumn
    label: CodedColumn
    worker: CodedColumn | None = None
    assigned_at: Floats | None = None
    submitted_at: Floats | None = None
    batch: CodedColumn | None = None
    gold_marks: int = 0
    times_unread: str = ""

    def __len__(self) -> int:
        return len(self.task.codes)


class _Codes(dict[Any, int]):
    """Cell to code, filled as cells are met."""

    def __init__(self, blank: frozenset[str]) -> None:
        self.names: dict[str, int] = {}
        self._blank = blank

    def __missing__(self, cell: Any) -> int:
        text = cell_text(cell)
        blank = not text or text.casefold() in self._blank
        self[cell] = code = -1 if blank else self.names.setdefault(text, len(self.names))
        return code


def cell_text(cell: Any) -> str:
    """A cell as a word; whole numbers without '.0', nothing where there is no value."""
    if isinstance(cell, str):
        return cell.strip()
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return "" if cell is None else str(cell).lower() if isinstance(cell, bool) else str(cell)


def find_columns(table: Table, roles: Mapping[str, str]) -> dict[str, int]:
    """Where the column of each role is; one that may be missing is left out where it is."""
    header, name = table.columns, table.report.name
    plain = [_plain(column) for column in header]
    at = {}
    for role, wanted in roles.items():
        usual = USUAL.get(role, ())
        others = usual[1:] if usual and wanted == usual[0] else ()
        if header.count(wanted) == 1:
            at[role] = header.index(wanted)
            continue
        known = next((other for other in (wanted, *others) if _plain(other) in plain), None)
        if known is None and others and role in OPTIONAL:
            continue
        if known is None or plain.count(_plain(known)) > 1:
            there = "no column" if known is None else "more than one column"
            raise FileFormatError(
                f"{name} has {there} {known or wanted!r}; it has the columns {listed(header)}.",
                f"Name the one that holds the {role.removesuffix('_at')} with --{role.removesuffix('_at')}-column.",
            )
        at[role] = plain.index(_plain(known))
    table.report.columns = {role: header[k] for role, k in at.items()}
    return at


def read_label_columns(table: Table, roles: Mapping[str, str]) -> LabelColumns:
    """The columns of a table by their role; times that cannot be read are left out, with the reason."""
    at = find_columns(table, roles)
    codes = {role: _Codes(NO_LABEL if role == "label" else frozenset()) for role in at if not role.endswith("_at")}
    parts: dict[str, list[Ints]] = {role: [] for role in codes}
    times: dict[str, list[Any]] = {role: [] for role in at if role.endswith("_at")}
    order = [*codes, *times]
    with _garbage_kept():
        for batch in table.batches([at[role] for role in order]):
            for role, cells in zip(order, batch.columns, strict=True):
                if role in times:
                    times[role].extend(cells)
                    continue
                try:
                    parts[role].append(np.fromiter(map(codes[role].__getitem__, cells), np.int64, len(cells)))
                except TypeError:
                    raise FileFormatError(
                        f"column {table.columns[at[role]]!r} of {table.report.name} holds lists or tables, not words "
                        "or numbers.",
                        "Give a plain column.",
                    ) from None
    if table.report.rows == 0:
        raise FileFormatError(f"{table.report.name} has a header and no rows.", "Give one label per row.")
    found = {role: CodedColumn(np.concatenate(parts[role]), tuple(codes[role].names)) for role in codes}
    for role, column in found.items():
        _refuse_line_breaks(table, table.columns[at[role]], column.names)
    read: dict[str, Floats] = {}
    unread = ""
    for role, cells in times.items():
        try:
            read[role] = seconds(table.report.name, table.columns[at[role]], cells)
        except FileFormatError as error:
            unread = unread or error.message
            del table.report.columns[role]
    return LabelColumns(
        table.report,
        found["task"],
        found["label"],
        found.get("worker"),
        read.get("assigned_at"),
        read.get("submitted_at"),
        found.get("batch"),
        times_unread=unread,
    )


@contextmanager
def _garbage_kept() -> Iterator[None]:
    """No garbage collection: millions of short-lived rows without cycles make it a third of the time of reading."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _plain(name: str) -> str:
    return "".join(character for character in name.casefold() if character.isalnum())


def _refuse_line_breaks(table: Table, column: str, names: Sequence[str]) -> None:
    long = next((name for name in names if "\n" in name), None)
    if long is not None:
        raise FileFormatError(
            f"a cell of column {column!r} of {table.report.name} runs over several lines, from "
            f"{long.splitlines()[0][:40]!r} on.",
            "Close its quotation mark.",
        )
