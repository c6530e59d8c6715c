"""What a model says about tasks: a label for each, or probabilities, from a table or from JSON.

==================== =====================================================================================
column or key        meaning
==================== =====================================================================================
task, id, item ...   the task (``files.columns.USUAL``)
label, answer ...    the label that the model gives
one for each label   the label's probability; the column has the label's name, or ``p_`` or ``prob_`` before it
probability, score   two labels: the probability of the second
==================== =====================================================================================

A label is looked for first, then probabilities. Of probabilities the most probable label is taken (the first of equally
probable ones), and its probability is kept as the model's confidence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import isnan
from typing import Any, NamedTuple

from nextlabel.errors import FileFormatError, InputError
from nextlabel.files.columns import USUAL, cell_text, folded, known_name, probability
from nextlabel.wording import listed

#: What may stand before a label's name in the name of its column of probabilities.
PREFIXES = ("", "p_", "prob_", "probability_")
#: How far the probabilities of a task may be from 1 together.
SLACK = 0.01


class Prediction(NamedTuple):
    """A label by its number, and its probability; None if the model gave none."""

    task: str
    label: int
    confidence: float | None


class _Columns(NamedTuple):
    """The columns of a file: the task's, and the label's or those of the probabilities."""

    task: str
    label: str | None
    probabilities: tuple[str, ...]


def read_predictions(
    rows: Iterable[Any],
    labels: Sequence[str],
    task_column: str | None = None,
    number_of: Callable[[str], int] | None = None,
) -> Iterator[Prediction]:
    """Predictions one by one, from rows with named cells; all rows have the columns of the first.

    ``number_of`` reads labels where answers are numbers, which have no names.
    """
    columns: _Columns | None = None
    words = {folded(label): number for number, label in enumerate(labels)}

    def by_name(said: str) -> int:
        if folded(said) not in words:
            raise InputError(f"the label {said[:60]!r} is not one of the campaign's.", f"They are {listed(labels)}.")
        return words[folded(said)]

    read = number_of or by_name
    for place, row in enumerate(rows, start=1):
        if not isinstance(row, Mapping):
            raise FileFormatError(f"prediction {place:,} has no names.", 'Give e.g. {"task": "a", "label": "yes"}.')
        if columns is None:
            columns = _find(list(row), labels, task_column)
        missing = next((name for name in (columns.task, columns.label) if name is not None and name not in row), None)
        if missing is not None:
            raise FileFormatError(f"prediction {place:,} has no {missing[:60]!r}.", "Give every one the same names.")
        task = cell_text(row[columns.task])
        if not task:
            raise FileFormatError(f"prediction {place:,} has no task.", "Give each the id of its task.")
        if columns.label is not None:
            try:
                yield Prediction(task, read(cell_text(row[columns.label])), None)
            except InputError as error:
                raise FileFormatError(f"prediction {place:,}: {error.message}", error.hint) from None
            continue
        p = [probability(row.get(name)) for name in columns.probabilities]
        wrong = next((name for name, one in zip(columns.probabilities, p, strict=True) if isnan(one)), None)
        if wrong is not None:
            raise FileFormatError(
                f"{wrong[:60]!r} of prediction {place:,} is {str(row.get(wrong))[:40]!r}, which is no probability.",
                "Give numbers from 0 to 1.",
            )
        if len(p) == 1:
            p = [1.0 - p[0], p[0]]
        if abs(sum(p) - 1.0) > SLACK:
            raise FileFormatError(
                f"the probabilities of prediction {place:,} add up to {sum(p):.4g}.", "Give such that add up to 1."
            )
        best = p.index(max(p))
        yield Prediction(task, best, p[best])


def _find(names: Sequence[str], labels: Sequence[str], task_column: str | None) -> _Columns:
    """Which columns there are; a FileFormatError if they say no label."""
    task = known_name(names, (*USUAL["task"], "key") if task_column is None else (task_column,))
    if task is None:
        raise FileFormatError(
            f"no column says which task a prediction is about; there are {listed(names)}.",
            "Call it task, or name it with --task-column.",
        )
    label = known_name(names, USUAL["label"])
    if label is not None:
        return _Columns(task, label, ())
    low = {folded(name): name for name in reversed(names) if name != task}
    for before in PREFIXES:
        wanted = [folded(before + name) for name in labels]
        if wanted and all(name in low for name in wanted):
            return _Columns(task, None, tuple(low[name] for name in wanted))
    if len(labels) == 2:
        one = known_name(names, USUAL["score"])
        if one is not None:
            return _Columns(task, None, (one,))
    if not labels:
        raise FileFormatError(f"no column has the model's numbers; there are {listed(names)}.", "Call it label.")
    raise FileFormatError(
        f"no column says what the model predicts; there are {listed(names)}.",
        f"Give a column label, or a probability for each of {listed(labels)} in a column of that name"
        f"{', or a column probability for ' + repr(labels[1]) if len(labels) == 2 else ''}.",
    )
