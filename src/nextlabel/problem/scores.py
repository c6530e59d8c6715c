"""Priors from a model's scores: one item a row of a CSV file, its probability of answer 1 in a column.

====== ============ ===============================================================
symbol code         meaning
====== ============ ===============================================================
p      values       score of an item
s      strength     labels that the score is worth: theta ~ Beta(s p, s (1 - p))
q      accuracy     instead: workers are right with probability q, P(truth is 1) = p
====== ============ ===============================================================

A score of 0 or 1 would leave nothing for labels to say, so that scores are moved into [LEAST, 1 - LEAST] and counted.
Cost: 100,000 rows are read in a tenth of a second and made into classes in one.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import numpy as np
from numpy.typing import ArrayLike

from nextlabel.arrays import Floats
from nextlabel.beliefs.one_coin import OneCoin
from nextlabel.beliefs.prior import Prior
from nextlabel.beliefs.rewards import Accuracy, Reward
from nextlabel.errors import FileFormatError, ProblemError
from nextlabel.problem.problem import TaskClass
from nextlabel.problem.tables import beta_of_score, checked_strength

#: No score is nearer to 0 or 1 than this.
LEAST = 0.001
DEFAULT_COLUMN = "probability"
#: Columns named in a message.
MOST_SHOWN = 20


@dataclass(frozen=True, slots=True)
class ItemScores:
    """One score an item, in the order of the rows; ``moved`` of them were nearer to 0 or 1 than allowed."""

    values: Floats
    moved: int

    def note(self, path: str | Path) -> str:
        """What was done to the scores, if anything was."""
        if self.moved == 0:
            return ""
        were = "was" if self.moved == 1 else "were"
        return (
            f"{self.moved:,} of {len(self.values):,} scores {were} moved to {LEAST:g} or {1 - LEAST:g} ({path}): "
            "labels could say nothing of a task that is certain beforehand."
        )


def read_scores(path: str | Path, column: str = DEFAULT_COLUMN) -> ItemScores:
    """The scores in ``column`` of a CSV file with a header."""
    path = Path(path)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            places, cells = _column(path, csv.reader(file), column)
    except OSError as error:
        raise FileFormatError(
            f"cannot read {path}: {error.strerror or error}.", "Give the path of a CSV file with a header."
        ) from error
    except UnicodeDecodeError as error:
        raise FileFormatError(f"{path} is not UTF-8 text.", "Save it as CSV in UTF-8.") from error
    except csv.Error as error:
        raise FileFormatError(f"{path} is not CSV: {error}.", "Save it as CSV in UTF-8.") from error
    if not cells:
        raise FileFormatError(f"{path} has a header and no rows.", "Give one item a row.")
    try:
        values = np.array([float(cell) for cell in cells])
    except ValueError:
        _refuse(path, column, places, cells)
    if not ((values >= 0.0) & (values <= 1.0)).all():
        _refuse(path, column, places, cells)
    inside = np.clip(values, LEAST, 1.0 - LEAST)
    return ItemScores(inside, int((inside != values).sum()))


def score_classes(
    values: ArrayLike,
    *,
    strength: float | None = None,
    accuracy: float | None = None,
    threshold: float = 0.5,
    reward: Reward | None = None,
) -> tuple[TaskClass, ...]:
    """One class for each different score, in the order in which they first appear."""
    if (strength is None) == (accuracy is None):
        raise ProblemError(
            "scores need either a strength or an accuracy.",
            "Give --strength 4 if a score is worth four labels, or --accuracy 0.8 if workers are right that often.",
        )
    worth = reward or Accuracy()
    scores = np.asarray(values, dtype=np.float64)
    different, first, count = np.unique(scores, return_index=True, return_counts=True)
    order = np.argsort(first)
    if strength is not None:
        checked_strength(strength)

    def prior(p: float) -> Prior:
        return OneCoin(p, accuracy) if accuracy is not None else beta_of_score(p, strength)

    pairs = zip(different[order].tolist(), count[order].tolist(), strict=True)
    return tuple(TaskClass(n, prior(p), threshold, worth) for p, n in pairs)


def _column(path: Path, rows: Iterator[list[str]], column: str) -> tuple[list[int], list[str]]:
    """Row numbers and cells of the column; the header is row 1, empty rows are passed over."""
    header = [name.strip() for name in next(rows, [])]
    if not any(header):
        raise FileFormatError(f"{path} is empty.", "Give a CSV file with a header and one item a row.")
    if header.count(column) != 1:
        there = "no column" if column not in header else "more than one column"
        more = "" if len(header) <= MOST_SHOWN else f" and {len(header) - MOST_SHOWN} more"
        raise FileFormatError(
            f"{path} has {there} {column!r}.", f"It has the columns {', '.join(header[:MOST_SHOWN])}{more}."
        )
    k = header.index(column)
    places: list[int] = []
    cells: list[str] = []
    for place, row in enumerate(rows, start=2):
        if len(row) > k:
            places.append(place)
            cells.append(row[k])
        elif row:
            raise FileFormatError(
                f"row {place} of {path} ends before the column {column!r}.",
                "Give every row as many cells as the header.",
            )
    return places, cells


def _refuse(path: Path, column: str, places: list[int], cells: list[str]) -> NoReturn:
    """Name the first row whose score is none."""
    for place, cell in zip(places, cells, strict=True):
        where, hint = f"{column} in row {place} of {path}", "Give probabilities from 0 to 1."
        try:
            value = float(cell)
        except ValueError:
            raise FileFormatError(f"{where} is {cell!r}, which is not a number.", hint) from None
        if not 0.0 <= value <= 1.0:
            raise FileFormatError(f"{where} is {cell.strip()}, which is outside [0, 1].", hint)
    raise AssertionError("every score is one")
