"""Recorded labels from CSV files: ``labels.csv`` (task, worker, label) and ``gold.csv`` (task, label), labels 0 or 1.

The order of the rows is kept: it is a task's 'file order'. RTE and TEMP, the sets of the paper's second experiment and
ours, are not part of this package: ``find_set`` says where they come from.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from nextlabel.errors import FileFormatError, InputError
from nextlabel.simulation.replay import Recorded

SETS = ("rte", "temp")
SOURCE = (
    "The sets are those of Snow, O'Connor, Jurafsky and Ng, 'Cheap and Fast - But is it Good?' (EMNLP 2008): save them "
    "as rte/labels.csv (task,worker,label), rte/gold.csv (task,label), temp/labels.csv and temp/gold.csv in one folder "
    "and give it with --data DIR."
)


def find_set(data: str | Path | None, name: str) -> Recorded:
    """The set called ``name`` below the folder ``data``."""
    if data is None:
        raise InputError(f"the labels of {name.upper()} are needed and no folder is given.", SOURCE)
    folder = Path(data) / name
    for file in ("labels.csv", "gold.csv"):
        if not (folder / file).is_file():
            raise FileFormatError(f"there is no file {folder / file}.", SOURCE)
    return read_recorded(folder / "labels.csv", folder / "gold.csv")


def read_recorded(labels: str | Path, gold: str | Path | None = None) -> Recorded:
    """Labels by task in the order of the file, with the truth from ``gold`` where it is given."""
    by_task: dict[str, list[int]] = {}
    for row in _rows(Path(labels), ("task", "worker", "label")):
        by_task.setdefault(row[0], []).append(int(row[2]))
    truth: dict[str, int] = {}
    if gold is not None:
        for task, label in _rows(Path(gold), ("task", "label")):
            if task not in by_task:
                raise FileFormatError(
                    f"{gold} has gold for task {task!r}, which has no labels in {labels}.",
                    "Leave it out, or give the labels file that it belongs to.",
                )
            if truth.setdefault(task, int(label)) != int(label):
                raise FileFormatError(f"{gold} says both 0 and 1 for task {task!r}.", "Give each task one label.")
    most = max(len(given) for given in by_task.values())
    padded = np.array([given + [-1] * (most - len(given)) for given in by_task.values()], dtype=np.int64)
    return Recorded(
        tasks=tuple(by_task),
        labels=padded,
        counts=np.array([len(given) for given in by_task.values()], dtype=np.int64),
        gold=np.array([truth.get(task, -1) for task in by_task], dtype=np.int64),
    )


def _rows(path: Path, columns: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The named columns of every row; the last one is a label and is checked to be 0 or 1."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as stream:
            yield from _checked(path, csv.reader(stream), columns)
    except FileNotFoundError as error:
        raise FileFormatError(f"there is no file {path}.", "Check the path.") from error
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise FileFormatError(f"{path} cannot be read as CSV: {error}.", "Give a UTF-8 text file.") from error


def _checked(path: Path, reader: Iterator[list[str]], columns: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    wanted = ",".join(columns)
    header = [name.strip().lower() for name in next(reader, [])]
    if not header:
        raise FileFormatError(f"{path} is empty.", f"Its first line must name the columns {wanted}.")
    for name in columns:
        if name not in header:
            raise FileFormatError(
                f"{path} has no column {name!r}; its first line is {','.join(header)!r}.",
                f"Its first line must name the columns {wanted}.",
            )
    at = [header.index(name) for name in columns]
    any_row = False
    for number, row in enumerate(reader, start=2):
        if not row:
            continue
        if len(row) <= max(at):
            raise FileFormatError(f"{path}, line {number} has {len(row)} of the columns {wanted}.", "Fill them in.")
        found = tuple(row[k].strip() for k in at)
        if found[-1] not in ("0", "1"):
            raise FileFormatError(f"{path}, line {number}: label {found[-1]!r} is not 0 or 1.", "Give binary labels.")
        any_row = True
        yield found
    if not any_row:
        raise FileFormatError(f"{path} has a header and no rows.", f"Give at least one row of {wanted}.")
