"""Priors from a model's scores: a table with one row per item, its probability of answer 1 in a column.

====== ============ ===============================================================
symbol code         meaning
====== ============ ===============================================================
p      values       score of an item
s      strength     labels that the score is worth: theta ~ Beta(s p, s (1 - p))
q      accuracy     instead: workers are right with probability q, P(truth is 1) = p
====== ============ ===============================================================

A score of 0 or 1 would leave nothing for labels to say, so that scores are moved into [LEAST, 1 - LEAST] and counted.
Cost: some microseconds per row; classes stay numbers (``score_classes``).
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from nextlabel.arrays import Floats
from nextlabel.beliefs.rewards import Accuracy, Reward
from nextlabel.errors import FileFormatError, ProblemError
from nextlabel.files.columns import find_columns
from nextlabel.files.frames import Frame, FrameTable
from nextlabel.files.numbers import number
from nextlabel.files.open_table import Table, open_stream, open_table
from nextlabel.files.report import TableReport
from nextlabel.problem.score_classes import ScoreClasses
from nextlabel.problem.score_priors import checked_strength, prior_of_score
from nextlabel.problem.task_class import TaskClass

#: No score is nearer to 0 or 1 than this.
LEAST = 0.001
DEFAULT_COLUMN = "probability"


@dataclass(frozen=True, slots=True)
class ItemScores:
    """One score per item, in the order of the rows; ``moved`` of them were nearer to 0 or 1 than allowed."""

    values: Floats
    moved: int
    report: TableReport = field(default_factory=TableReport)

    def note(self, path: str | Path) -> str:
        """What was done to the scores, if anything was."""
        if self.moved == 0:
            return ""
        were = "was" if self.moved == 1 else "were"
        return (
            f"{self.moved:,} of {len(self.values):,} scores {were} moved to {LEAST:g} or {1 - LEAST:g} ({path}): "
            "labels could say nothing about a task that is certain beforehand."
        )


def read_scores(source: str | os.PathLike[str] | Frame, column: str = DEFAULT_COLUMN) -> ItemScores:
    """The scores in ``column`` of a file with a header, or of a data frame."""
    if not isinstance(source, str | os.PathLike):
        return _scores(FrameTable(source, "the data frame"), column)
    with open_stream(source) as stream:
        return _scores(open_table(stream, os.fspath(source)), column)


def score_classes(
    values: ArrayLike,
    *,
    strength: float | None = None,
    accuracy: float | None = None,
    threshold: float = 0.5,
    reward: Reward | None = None,
) -> ScoreClasses:
    """One class for each different score, in the order in which they first appear."""
    if (strength is None) == (accuracy is None):
        raise ProblemError(
            "scores need either a strength or an accuracy.",
            "Give --strength 4 if a score is worth four labels, or --accuracy 0.8 if workers are right that often.",
        )
    scores = np.asarray(values, dtype=np.float64).ravel()
    wrong = ~((scores >= 0.0) & (scores <= 1.0))
    if wrong.any():
        place = int(np.argmax(wrong))
        raise ProblemError(
            f"score {scores[place]:g} of task {place + 1:,} is outside (0, 1).", "Give a probability such as 0.7."
        )
    different, first, count = np.unique(scores, return_index=True, return_counts=True)
    if strength is not None:
        checked_strength(strength)
    for p in different[:1].tolist() + different[-1:].tolist():  # the others are between the two
        prior_of_score(p, strength, accuracy)
    order = np.argsort(first)
    middle = prior_of_score(0.5, strength, accuracy)
    return ScoreClasses(
        different[order], count[order].astype(np.int64), TaskClass(1, middle, threshold, reward or Accuracy()),
        None if strength is None else float(strength), None if accuracy is None else float(accuracy),
    )  # fmt: skip


def _scores(table: Table, column: str) -> ItemScores:
    place = find_columns(table, {"score": column})["score"]
    report, values = table.report, []
    for batch in table.batches([place]):
        for row, cell in zip(batch.numbers, batch.columns[0], strict=True):
            try:
                value = number(cell)
            except (TypeError, ValueError):
                value = math.nan
            if not 0.0 <= value <= 1.0:
                where = f"{table.columns[place]} in row {row:,} of {report.name}"
                raise FileFormatError(f"{where} is {cell!r}, not a number from 0 to 1.", "Give probabilities.")
            report.decimal_commas += isinstance(cell, str) and "," in cell
            values.append(value)
    if not values:
        raise FileFormatError(f"{report.name} has a header and no rows.", "Give one row per item.")
    scores = np.array(values)
    inside = np.clip(scores, LEAST, 1.0 - LEAST)
    return ItemScores(inside, int((inside != scores).sum()), report)
