"""Labels per task from a CSV file with a header and one label a row, as crowd-kit writes it: task, worker, label.

Other columns are passed over, the worker's too: workers are exchangeable to a prior. Labels are 0 and 1, or any words
of which one is said to be the positive one. Cost: a million rows in about two seconds.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from nextlabel.errors import FileFormatError, InputError
from nextlabel.learn.counts import LabelCounts

#: What counts as 0 and 1 by itself; pandas writes whole numbers like the second pair where a cell was empty.
PLAIN = {"0": 0, "1": 1, "0.0": 0, "1.0": 1}
#: Columns or labels named in a message.
MOST_SHOWN = 12


def read_counts(
    path: str | Path, task_column: str = "task", label_column: str = "label", positive: str | None = None
) -> LabelCounts:
    """Ones and labels of every task; with ``positive`` that label is a 1 and every other one a 0."""
    path = Path(path)
    places: dict[str, int] = {}
    words: dict[str, int] = {}
    lines: list[int] = []
    tasks: list[int] = []
    given: list[int] = []
    for line, task, label in _rows(path, task_column, label_column):
        if label not in words:
            lines.append(line)
        tasks.append(places.setdefault(task, len(places)))
        given.append(words.setdefault(label, len(words)))
    value = np.array(_values(path, list(words), lines, positive), dtype=np.int64)
    labels = np.bincount(tasks, minlength=len(places))
    ones = np.bincount(tasks, value[given], minlength=len(places))
    return LabelCounts.of_ones(ones, labels)


def _values(path: Path, words: list[str], lines: list[int], positive: str | None) -> list[int]:
    """0 or 1 for each word that occurs."""
    if positive is not None:
        wanted = positive.strip()
        if wanted not in words:
            raise InputError(f"no label in {path} is {wanted!r}.", f"The labels are {_listed(words)}.")
        return [int(word == wanted) for word in words]
    for word, line in zip(words, lines, strict=True):
        if word not in PLAIN:
            raise FileFormatError(
                f"{path}, line {line}: label {word!r} is not 0 or 1; the labels are {_listed(words)}.",
                f"Say which one counts as 1, e.g. --positive {word}; all others then count as 0.",
            )
    return [PLAIN[word] for word in words]


def _rows(path: Path, task_column: str, label_column: str) -> Iterator[tuple[int, str, str]]:
    """Line, task and label of every row."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as stream:
            yield from _checked(path, csv.reader(stream), task_column, label_column)
    except OSError as error:
        raise FileFormatError(
            f"cannot read {path}: {error.strerror or error}.", "Give the path of a CSV file with a header."
        ) from error
    except UnicodeDecodeError as error:
        raise FileFormatError(f"{path} is not UTF-8 text.", "Save it as CSV in UTF-8.") from error
    except csv.Error as error:
        raise FileFormatError(f"{path} is not CSV: {error}.", "Save it as CSV in UTF-8.") from error


def _checked(path: Path, reader: Iterator[list[str]], *columns: str) -> Iterator[tuple[int, str, str]]:
    header = [name.strip() for name in next(reader, [])]
    if not any(header):
        raise FileFormatError(f"{path} is empty.", "Its first line must name the columns, e.g. task,worker,label.")
    at, label = (_place(path, header, name, flag) for name, flag in zip(columns, ("task", "label"), strict=True))
    empty = True
    for row in reader:
        line = getattr(reader, "line_num", 0)
        if not any(cell.strip() for cell in row):
            continue
        if len(row) <= max(at, label):
            raise FileFormatError(
                f"{path}, line {line} has {len(row)} cells where the header has {len(header)}.",
                "Give every row as many cells as the header.",
            )
        task, word = row[at].strip(), row[label].strip()
        if not task or not word:
            raise FileFormatError(
                f"{path}, line {line} has no {'task' if not task else 'label'}.", "Fill it in, or leave the row out."
            )
        empty = False
        yield line, task, word
    if empty:
        raise FileFormatError(f"{path} has a header and no rows.", "Give one label a row.")


def _place(path: Path, header: list[str], name: str, flag: str) -> int:
    """Where the column is; upper and lower case are the same where that leaves no doubt."""
    for names, wanted in ((header, name), ([one.lower() for one in header], name.lower())):
        if names.count(wanted) == 1:
            return names.index(wanted)
    there = "no column" if name.lower() not in (one.lower() for one in header) else "more than one column"
    raise FileFormatError(
        f"{path} has {there} {name!r}; it has the columns {_listed(header)}.",
        f"Name the one that holds the {flag} with --{flag}-column.",
    )


def _listed(words: list[str]) -> str:
    more = "" if len(words) <= MOST_SHOWN else f" and {len(words) - MOST_SHOWN} more"
    return ", ".join(words[:MOST_SHOWN]) + more
