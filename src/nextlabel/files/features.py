"""What is known of items beside their labels: columns of numbers, columns of text, or vectors, one row per item.

============================== =================================================================================
source                         form
============================== =================================================================================
a table (``files.tables``)     a column ``task``; every other column is one of numbers, of vectors or of text
``NAME.npy`` and ``NAME.txt``  an array with a row per item, and the items' names, one per line
``NAME.npz``                   arrays ``task`` (names) and ``features`` (a row per item)
a mapping                      from the item's name to a vector, a text or a mapping of cells; or columns by name
a callable                     called with each item's name, returns one of these
============================== =================================================================================

A column is one of numbers if all of its cells are, blank ones aside, else one of text. Blank cells and items without
a row are missing. Texts are cut after ``LONGEST`` characters.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nextlabel.arrays import Ints
from nextlabel.errors import FileFormatError, InputError
from nextlabel.files.columns import cell_text, find_columns
from nextlabel.files.tables import NamedColumns, open_stream, open_table
from nextlabel.wording import counted, is_text, listed

#: Characters of a text that are read, numbers of an item, and items that a message names.
LONGEST, MOST_NUMBERS, SHOWN = 20_000, 20_000, 3
#: Words in cells of numbers for one that is missing.
MISSING = frozenset({"", "nan", "na", "n/a", "null", "none", "<na>"})
#: How a ``.npz`` begins.
ZIP = b"PK\x03\x04"
SAME_LENGTH = "Give every item a vector of the same length."

Numbers = NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class Features:
    """``numbers`` (n, d) of n items, nan where one is missing, and ``texts``: a tuple for each column of text.

    ``inputs`` are what a learner of one's own is given in their place, one for each item, if there are any.
    """

    tasks: tuple[str, ...]
    numbers: Numbers
    texts: tuple[tuple[str, ...], ...] = ()
    name: str = "the features"
    inputs: tuple[Any, ...] | None = None

    def __len__(self) -> int:
        return len(self.tasks)

    def rows_of(self, tasks: Sequence[Any]) -> Ints:
        """(K,) the row of each task, -1 where there is none."""
        place = {task: row for row, task in enumerate(self.tasks)}
        return np.array([place.get(cell_text(task), -1) for task in tasks], dtype=np.int64)

    def kept(self, rows: Ints) -> Features:
        """The same of these rows only."""
        texts = tuple(tuple(column[k] for k in rows) for column in self.texts)
        inputs = None if self.inputs is None else tuple(self.inputs[k] for k in rows)
        return Features(tuple(self.tasks[k] for k in rows), self.numbers[rows], texts, self.name, inputs)

    def beside(self, other: Features) -> Features:
        """The same items with the columns of ``other`` as well, missing where it has no such item."""
        rows = other.rows_of(self.tasks)
        numbers = np.where((rows < 0)[:, None], np.float32(np.nan), other.numbers[rows])
        texts = tuple(tuple("" if k < 0 else column[k] for k in rows) for column in other.texts)
        return Features(self.tasks, np.hstack([self.numbers, numbers]), self.texts + texts, self.name)

    def then(self, more: Features) -> Features:
        """With the items of ``more`` that are not here after these; the columns must be the same."""
        if (self.numbers.shape[1], len(self.texts)) != (more.numbers.shape[1], len(more.texts)):
            raise InputError(
                f"{self.name} has {_columns(self)} for each item, and {more.name} {_columns(more)}.",
                "Give every item the same columns.",
            )
        more = more.kept(np.flatnonzero(self.rows_of(more.tasks) < 0))
        texts = tuple((*old, *new) for old, new in zip(self.texts, more.texts, strict=True))
        return Features(self.tasks + more.tasks, np.vstack([self.numbers, more.numbers]), texts, self.name)

    def sentences(self) -> list[str]:
        """What was read, in plain English."""
        return [f"{self.name}: features of {counted(len(self), 'item')} read, {_columns(self)} each."]

    def as_dict(self) -> dict[str, Any]:
        """The report as ``--json`` prints it, under ``read``."""
        shape = {"items": len(self), "numbers": self.numbers.shape[1], "texts": len(self.texts)}
        return {"name": self.name, **shape, "sentences": self.sentences()}

    def dump(self) -> bytes:
        """As ``NAME.npz`` has them."""
        file = io.BytesIO()
        texts = np.frombuffer(json.dumps(self.texts).encode(), dtype=np.uint8)
        save = np.savez_compressed if self.texts else np.savez
        save(file, task=np.array(self.tasks, dtype=np.str_), features=self.numbers, texts=texts)
        return file.getvalue()


def _columns(features: Features) -> str:
    numbers, texts = features.numbers.shape[1], len(features.texts)
    return (
        " and ".join(counted(many, what) for many, what in ((numbers, "number"), (texts, "text")) if many)
        or "0 numbers"
    )


def read_features(source: Any, tasks: Sequence[Any] = (), *, task: str = "task") -> Features:
    """The features of items in any of the forms above; ``tasks`` are the items a callable is asked about."""
    if isinstance(source, Features):
        return source
    if callable(source) and not isinstance(source, Mapping):
        return _called(source, tasks)
    if isinstance(source, str | os.PathLike) and Path(source).suffix.lower() in (".npy", ".npz"):
        return _arrays(Path(source))
    if isinstance(source, bytes):
        return _packed(io.BytesIO(source), "what is there")
    if hasattr(source, "read"):
        start = source.read(len(ZIP))
        source.seek(0)
        if start == ZIP:
            return _packed(source, "the file")
    if isinstance(source, Mapping) and task not in source:
        return _by_item(source)
    return _table(source, task)


def _table(source: Any, task: str) -> Features:
    with open_table(source, "features") as table:
        name = table.report.name
        at = find_columns(table, {"task": task})["task"]
        places = [k for k in range(len(table.columns)) if k != at]
        if not places:
            raise FileFormatError(f"{name} has no column beside {table.columns[at]!r}.", "Give columns of features.")
        tasks: list[str] = []
        found: dict[int, list[Numbers]] = {place: [] for place in places}
        for batch in table.batches([at, *places]):
            tasks += map(cell_text, batch.columns[0])
            for place, cells in zip(places, batch.columns[1:], strict=True):
                if place in found:
                    part = _numbers(cells, table.columns[place], name)
                    if part is None:
                        del found[place]
                    else:
                        found[place].append(part)
        wordy = [place for place in places if place not in found]
        texts: list[list[str]] = [[] for _ in wordy]
        for batch in table.batches(wordy) if wordy else ():
            for text, cells in zip(texts, batch.columns, strict=True):
                text += ["" if cell is None else str(cell)[:LONGEST] for cell in cells]
    joined = [_joined(parts, table.columns[place], name) for place, parts in found.items()]
    numbers = np.hstack(joined) if joined else np.zeros((len(tasks), 0), dtype=np.float32)
    return check_features(Features(tuple(tasks), numbers, tuple(map(tuple, texts)), name))


def _joined(parts: list[Numbers], title: str, name: str) -> Numbers:
    """(n, d) from the parts of a column; a part without any vector has one blank number per item."""
    width = max((part.shape[1] for part in parts), default=1)
    for k, part in enumerate(parts):
        if part.shape[1] == width:
            continue
        if part.shape[1] > 1 or np.isfinite(part).any():
            raise FileFormatError(
                f"column {title!r} of {name} has vectors of {part.shape[1]:,} and of {width:,} numbers.", SAME_LENGTH
            )
        parts[k] = np.full((len(part), width), np.nan, dtype=np.float32)
    return np.vstack(parts) if parts else np.zeros((0, 1), dtype=np.float32)


def _numbers(cells: Sequence[Any], title: str, file: str) -> Numbers | None:
    """(n, d) of cells that are numbers or vectors; None if they are not."""
    if any(isinstance(cell, list | tuple | np.ndarray) for cell in cells):
        lengths = {len(cell) for cell in cells if isinstance(cell, list | tuple | np.ndarray)}
        if len(lengths) > 1:
            raise FileFormatError(
                f"column {title!r} of {file} has vectors of {listed(sorted(lengths))} numbers.",
                SAME_LENGTH,
            )
        none = [np.nan] * lengths.pop()
        try:
            return np.array([none if cell is None else cell for cell in cells], dtype=np.float32)
        except (TypeError, ValueError):
            raise FileFormatError(f"column {title!r} of {file} has a vector that is not of numbers.", "") from None
    with suppress(TypeError, ValueError):
        return np.array(cells, dtype=np.float64).astype(np.float32)[:, None]
    words = [cell_text(cell) for cell in cells]
    with suppress(ValueError):
        found = [np.nan if word.casefold() in MISSING else float(word.replace(",", ".")) for word in words]
        return np.array(found, dtype=np.float32)[:, None]
    return None


def check_features(features: Features) -> Features:
    """The features if they can be learnt from, else one sentence."""
    name, tasks = features.name, features.tasks
    if not tasks:
        raise FileFormatError(f"{name} has no items.", "Give one row per item.")
    if "" in tasks:
        raise FileFormatError(f"row {tasks.index('') + 1:,} of {name} has no task.", "Give every row its item.")
    if len(set(tasks)) < len(tasks):
        seen: set[str] = set()
        twice = next(one for one in tasks if one in seen or seen.add(one))  # type: ignore[func-returns-value]
        raise FileFormatError(f"{name} has two rows for task {twice[:60]!r}.", "Give one row per item.")
    if features.numbers.shape[1] > MOST_NUMBERS:
        many = f"{features.numbers.shape[1]:,}"
        raise FileFormatError(f"{name} has {many} numbers per item.", f"Give at most {MOST_NUMBERS:,}.")
    if len(features.numbers) != len(tasks):
        raise FileFormatError(
            f"{name} has {counted(len(tasks), 'name')} for {counted(len(features.numbers), 'row')} of numbers.",
            "Give one name per row.",
        )
    if np.isinf(features.numbers).any():
        row = int(np.argmax(np.isinf(features.numbers).any(axis=1)))
        raise FileFormatError(f"a number of task {tasks[row][:60]!r} in {name} is infinite.", "Leave it blank.")
    for column in features.texts:
        if len(column) != len(tasks):
            raise FileFormatError(f"{name} has a column of {len(column):,} texts.", "Give one text per item.")
        row = next((k for k, text in enumerate(column) if not is_text(text)), -1)
        if row >= 0:
            raise FileFormatError(
                f"the text of task {tasks[row][:60]!r} in {name} has a NUL or half a character.",
                "Take it out of the text.",
            )
    return features


def _arrays(path: Path) -> Features:
    with open_stream(path) as file:
        if path.suffix.lower() == ".npz":
            return _packed(file, str(path))
        names, found = path.with_suffix(".txt"), _loaded(file, str(path))
    if not names.exists():
        raise FileFormatError(
            f"{path} does not say whose its rows are.",
            f"Write the items' names, one per line, to {names}, or give a table with a column 'task'.",
        )
    tasks = [cell_text(line) for line in names.read_text(encoding="utf-8").splitlines() if line.strip()]
    return _of_array(found, tasks, str(path))


def _loaded(file: Any, name: str) -> Any:
    try:
        return np.load(file, allow_pickle=False)
    except (ValueError, EOFError, OSError, zipfile.BadZipFile) as error:
        raise FileFormatError(f"{name} is no array of numbers that NumPy has saved.", "Use numpy.save.") from error


def _packed(file: Any, name: str) -> Features:
    found = _loaded(file, name)
    if not hasattr(found, "files") or not {"task", "features"} <= set(found.files):
        raise FileFormatError(f"{name} does not hold the arrays 'task' and 'features'.", "Save both by numpy.savez.")
    try:
        tasks = [cell_text(task) for task in found["task"].tolist()]
        texts = json.loads(found["texts"].tobytes()) if "texts" in found.files else []
        columns = tuple(tuple(str(text)[:LONGEST] for text in column) for column in texts)
        return _of_array(found["features"], tasks, name, columns)
    except (ValueError, TypeError, zipfile.BadZipFile, zlib.error) as error:
        raise FileFormatError(f"the arrays in {name} cannot be read.", "Save both by numpy.savez.") from error


def _of_array(found: Any, tasks: list[str], name: str, texts: tuple[tuple[str, ...], ...] = ()) -> Features:
    if found.ndim != 2 or found.dtype.kind not in "fiub":
        raise FileFormatError(
            f"{name} holds an array of shape {found.shape} and type {found.dtype}.",
            "Give numbers with one row per item.",
        )
    with np.errstate(over="ignore"):
        return check_features(Features(tuple(tasks), found.astype(np.float32), texts, name))


def _by_item(source: Mapping[Any, Any]) -> Features:
    """Features from a mapping from each item's name to a vector, a text or a mapping of cells."""
    values = list(source.values())
    if any(isinstance(value, Mapping) for value in values):
        keys = dict.fromkeys(key for value in values if value is not None for key in value)
        columns = {f"feature {key}": [None if value is None else value.get(key) for value in values] for key in keys}
    else:
        columns = {"features": values}
    return _table(NamedColumns("the features", task=list(source), **columns), "task")


def _called(source: Callable[[Any], Any], tasks: Sequence[Any]) -> Features:
    try:
        found = {task: source(task) for task in tasks}
    except Exception as error:
        raise InputError(
            f"the callable for features failed: {type(error).__name__}: {str(error)[:200]}.",
            "It is called with the name of each item and returns a vector, a text or a mapping.",
        ) from error
    return _by_item(found)
