"""The columns that labels are made of: found by their names, and read as codes, labels, numbers and times.

Columns are looked for by the name given, then without regard to upper and lower case, spaces and underscores. A role
that has its usual name (``task``, ``worker``, ``label`` ...) is also found under the other names in ``USUAL``.

Names of tasks, workers and labels keep the type that they came with. Cells that read alike (``1``, ``1.0``, ``"1"``)
are one name, the first of them; whole numbers are integers, since a column of integers with a gap is one of floats.

Words that people use for labels, as numbers: 0 and 1 where there are two, else 0, 1, 2 ... in sorted order.

Spellings that differ in upper and lower case, in spaces, or by the '.0' that spreadsheets add to whole numbers are one
label, called as it was first met. 0 and 1, false and true, no and yes speak for themselves. Other words are numbered in
sorted order, so that of two the last one counts as 1. A positive one that is named counts as 1, and all others as 0.

Times as seconds: ISO 8601 with or without a zone, moments as data frames have them, or numbers.

A time without a zone is taken as UTC. Numbers are seconds from any origin; those that would lie past the year 5138 are
milliseconds, microseconds or nanoseconds, as clocks of computers count them.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from shlex import quote
from typing import Any

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.errors import FileFormatError, InputError
from nextlabel.files.tables import Table, TableSummary
from nextlabel.wording import listed

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

#: Words that stand for 0 and for 1 by themselves.
PAIRS = (("0", "1"), ("false", "true"), ("no", "yes"))
PLAIN = {word: value for pair in PAIRS for value, word in enumerate(pair)}
REST = "other"
_WHOLE = re.compile(r"^(-?\d+)[.,]0+$")

#: From so many seconds on a number counts thousandths of the unit that it was taken to have.
TOO_LATE, THOUSANDTH = 1e11, 1e-3

#: Cells that hold no time, in small letters.
NO_TIME = ("", "nan", "nat", "null", "none", "<na>")
HINT = "Write times as 2026-01-31T09:30:00Z or as seconds."
_EPOCH, _EPOCH_UTC = datetime(1970, 1, 1), datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, eq=False)
class CodedColumn:
    """A column of names: ``names`` in the order of their first row, the code -1 where a cell is blank."""

    codes: Ints
    names: tuple[Any, ...]

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

    report: TableSummary
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

    def kept(self, rows: Ints) -> LabelColumns:
        """The rows of all columns."""
        columns = {one.name: getattr(self, one.name) for one in fields(self)}
        some: dict[str, Any] = {name: x[rows] for name, x in columns.items() if isinstance(x, np.ndarray)}
        some |= {name: x.kept(rows) for name, x in columns.items() if isinstance(x, CodedColumn)}
        return replace(self, **some)


class _Codes(dict[Any, int]):
    """Cell to code, filled as cells are met."""

    def __init__(self, blank: frozenset[str]) -> None:
        self.names: list[Any] = []
        self._by_text: dict[str, int] = {}
        self._blank = blank

    def __missing__(self, cell: Any) -> int:
        text = cell_text(cell)
        if not text or text.casefold() in self._blank:
            code = -1
        elif (code := self._by_text.setdefault(text, len(self.names))) == len(self.names):
            self.names.append(cell_name(cell))
        self[cell] = code
        return code


def cell_text(cell: Any) -> str:
    """A cell as a word; whole numbers without '.0', nothing where there is no value."""
    if isinstance(cell, str):
        return cell.strip()
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return "" if cell is None else str(cell).lower() if isinstance(cell, bool | np.bool_) else str(cell)


def cell_name(cell: Any) -> Any:
    """A cell as the name that is given back: in its own type, a word without spaces around it."""
    if isinstance(cell, str):
        return cell.strip()
    plain = cell.item() if isinstance(cell, np.generic) else cell
    return int(plain) if isinstance(plain, float) and plain.is_integer() else plain


def find_columns(table: Table, roles: Mapping[str, str]) -> dict[str, int]:
    """Where the column of each role is; one that may be missing is left out where it is."""
    header, at = table.columns, dict[str, int]()
    for role, wanted in roles.items():
        usual = USUAL.get(role, ())
        others = usual[1:] if usual and wanted == usual[0] else ()
        exact = header.count(wanted) == 1
        known = wanted if exact else known_name(header, (wanted, *others))
        if known is None and others and role in OPTIONAL:
            continue
        if known is None or (not exact and [*map(plain_name, header)].count(plain_name(known)) > 1):
            there, word = "no column" if known is None else "more than one column", role.removesuffix("_at")
            flag = f"Name the one that holds the {word} with --{word}-column."  # results have no flag for probabilities
            raise FileFormatError(
                f"{table.report.name} has {there} {known or wanted!r}; it has the columns {listed(header)}.",
                "Give the probability of each label in a column 'probability'." if wanted == "probability" else flag,
            )
        at[role] = header.index(known)
    table.report.columns = {role: header[k] for role, k in at.items()}
    return at


def read_label_columns(table: Table, roles: Mapping[str, str]) -> LabelColumns:
    """The columns of a table by their role; times that cannot be read are left out, with the reason."""
    at = find_columns(table, roles)
    codes = {role: _Codes(NO_LABEL if role == "label" else frozenset()) for role in at if not role.endswith("_at")}
    parts: dict[str, list[Ints]] = {role: [] for role in codes}
    times: dict[str, list[Any]] = {role: [] for role in at if role.endswith("_at")}
    order, collecting = [*codes, *times], gc.isenabled()
    gc.disable()  # millions of short-lived rows without cycles make it a third of the time of reading
    try:
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
    finally:
        if collecting:
            gc.enable()
    if table.report.rows == 0:
        raise FileFormatError(f"{table.report.name} has a header and no rows.", "Give one label per row.")
    found: dict[str, Any] = {}
    for role, code in codes.items():
        found[role] = CodedColumn(np.concatenate(parts[role]), tuple(code.names))
        long = next((name for name in code.names if isinstance(name, str) and "\n" in name), None)
        if long is not None:
            raise FileFormatError(
                f"a cell of column {table.columns[at[role]]!r} of {table.report.name} runs over several lines, from "
                f"{long.splitlines()[0][:40]!r} on.",
                "Close its quotation mark.",
            )
    unread = ""
    for role, cells in times.items():
        try:
            found[role] = seconds(table.report.name, table.columns[at[role]], cells)
        except FileFormatError as error:
            unread = unread or error.message
            del table.report.columns[role]
    return LabelColumns(table.report, **found, times_unread=unread)


def plain_name(name: str) -> str:
    """What the spellings of a column's name have in common."""
    return "".join(character for character in name.casefold() if character.isalnum())


def known_name(names: Sequence[str], wanted: Iterable[str]) -> str | None:
    """The first of the names that are wanted which is there, however it is spelt."""
    plain = {plain_name(name): name for name in reversed(names)}
    return next((plain[plain_name(one)] for one in wanted if plain_name(one) in plain), None)


def without_zeros(name: Any) -> Any:
    """``1.0`` and ``1,0`` as ``1``, with single spaces; any other name as it is."""
    return _WHOLE.sub(r"\1", " ".join(name.split())) if isinstance(name, str) else name


def folded(name: Any) -> str:
    """What all spellings of a label have in common."""
    return cell_text(without_zeros(name)).casefold()


def fold_spellings(column: CodedColumn) -> tuple[CodedColumn, dict[Any, list[Any]]]:
    """The column with one name per label, and the spellings of each label that has several."""
    spellings: dict[str, list[Any]] = {}
    for name in column.names:
        spellings.setdefault(folded(name), []).append(name)
    place = {key: code for code, key in enumerate(spellings)}
    to = np.array([*(place[folded(name)] for name in column.names), -1], dtype=np.int64)
    names = {key: without_zeros(spelt[0]) for key, spelt in spellings.items()}
    several = {names[key]: spelt for key, spelt in spellings.items() if len(spelt) > 1}
    return CodedColumn(to[column.codes], tuple(names.values())), several


def code_labels(words: Sequence[Any], positive: Any, path: str) -> tuple[Ints, tuple[Any, ...], Any]:
    """A code for each of the different words, the names of the codes, and the positive word as it is spelt here."""
    keys = [folded(word) for word in words]
    if positive is not None:
        if folded(positive) not in keys:
            raise InputError(
                f"no label in {path} is {positive!r}; the labels are {listed(words)}.",
                f"Name the one that counts as 1, e.g. --positive {quote(str(words[-1]))}.",
            )
        wanted = words[keys.index(folded(positive))]
        rest = [word for word in words if word != wanted]
        names = (rest[0] if len(rest) == 1 else REST if wanted != REST else "rest", wanted)
        return np.array([int(word == wanted) for word in words], dtype=np.int64), names, wanted
    if all(key in PLAIN for key in keys):
        codes = np.array([PLAIN[key] for key in keys], dtype=np.int64)
        return codes, _pair(words, keys), None
    if len(words) == 1:
        raise InputError(
            f"every label in {path} is {words[0]!r}, which says neither 0 nor 1.",
            f"Give labels of both kinds, or say that this one counts as 1: --positive {quote(str(words[0]))}.",
        )
    classes = _in_order(words)
    place = {name: code for code, name in enumerate(classes)}
    return np.array([place[word] for word in words], dtype=np.int64), classes, None


def _pair(words: Sequence[Any], keys: Sequence[str]) -> tuple[Any, ...]:
    """The names of 0 and 1: words as they are usually spelt, numbers and truth values in their type."""
    usual = next((pair for pair in PAIRS if set(keys) <= set(pair)), PAIRS[0])
    first = {PLAIN[key]: word for word, key in zip(reversed(words), reversed(keys), strict=True)}
    like: list[Any] = [first.get(code, first.get(1 - code)) for code in (0, 1)]
    return tuple(usual[code] if isinstance(word, str) else type(word)(code) for code, word in enumerate(like))


def code_gold(words: Sequence[Any], labels: Sequence[Any], positive: Any, path: str) -> Ints:
    """Codes of gold labels, by the coding that the table's labels have."""
    keys = [folded(word) for word in words]
    if positive is not None:
        return np.array([int(key == folded(positive)) for key in keys], dtype=np.int64)
    known = [folded(name) for name in labels]
    place = PLAIN if tuple(known) in PAIRS else {key: code for code, key in enumerate(known)}
    unknown = next((word for word, key in zip(words, keys, strict=True) if key not in place), None)
    if unknown is not None:
        raise InputError(
            f"{path} has the gold label {unknown!r}, which no worker gave; their labels are {listed(labels)}.",
            "Use the same words in both files, or name the one that counts as 1 with --positive.",
        )
    return np.array([place[key] for key in keys], dtype=np.int64)


def _in_order(words: Sequence[Any]) -> tuple[Any, ...]:
    """Numbers by their size, anything else by the alphabet."""
    try:
        return tuple(sorted(words, key=lambda word: (float(word), cell_text(word))))
    except (TypeError, ValueError):
        return tuple(sorted(words, key=cell_text))


def probability(cell: Any) -> float:
    """A cell as a probability; nan if it is none."""
    try:
        p = float("nan") if isinstance(cell, bool) else number(cell)
    except (TypeError, ValueError):
        return float("nan")
    return p if 0.0 <= p <= 1.0 else float("nan")


def seconds(name: str, column: str, cells: Sequence[Any]) -> Floats:
    """A column of times as seconds, nan where a cell is blank."""
    try:
        return _scaled(np.array([_number(cell) for cell in cells], dtype=np.float64))
    except (TypeError, ValueError):
        return np.array([_moment(name, column, cell) for cell in cells], dtype=np.float64)


def _number(cell: Any) -> float:
    if isinstance(cell, str):
        try:
            return float(cell)
        except ValueError:
            return np.nan if cell.strip().casefold() in NO_TIME else number(cell)
    return np.nan if cell is None else float(cell)


def _moment(name: str, column: str, cell: Any) -> float:
    text = cell if isinstance(cell, str) else str(cell)
    if text.strip().casefold() in NO_TIME:
        return np.nan
    try:
        moment = cell if isinstance(cell, datetime) else datetime.fromisoformat(text.strip())
        return (moment - (_EPOCH if moment.tzinfo is None else _EPOCH_UTC)).total_seconds()
    except (ValueError, OverflowError):
        raise FileFormatError(f"column {column!r} of {name} holds {text!r}, which is not a time.", HINT) from None


def _scaled(numbers: Floats) -> Floats:
    finite = np.isfinite(numbers)
    largest = float(np.abs(numbers[finite]).max(initial=0.0))
    scale = 1.0
    while largest * scale >= TOO_LATE:
        scale *= THOUSANDTH
    return np.where(finite, numbers * scale, np.nan)


def number(cell: Any) -> float:
    """A cell as a number; a ValueError if it is none."""
    try:
        return float(cell)
    except ValueError:
        return float(with_point(cell))


def with_point(text: str) -> str:
    """``0,5`` as ``0.5``; anything else as it is, without spaces around it."""
    text = text.strip()
    whole, comma, rest = text.partition(",")
    return f"{whole}.{rest}" if comma and whole.lstrip("+-").isdecimal() and rest.isdecimal() else text
