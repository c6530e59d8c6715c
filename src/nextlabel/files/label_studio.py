"""The JSON export of Label Studio: a list of tasks, each with its annotations.

=============== =====================================================================================
here            in the export
=============== =====================================================================================
task            ``id``, or the field of ``data`` that is named
worker          ``completed_by`` of the annotation: a number, or a person with ``id`` and ``email``
label           the choice, rating, number, entry of a taxonomy of one level, or side of a pair in
                ``result``; blank if ``was_cancelled`` (skipped) or empty
submitted_at    ``created_at`` of the annotation, or ``updated_at`` where that is missing
assigned_at     submitted_at - ``lead_time``, the seconds that the worker took
gold            the labels of annotations with ``ground_truth``; they are no worker's labels
=============== =====================================================================================

Where a page asks more than one question, the label is the answer to the one that is named (``from_name``). Where a
worker may tick more than one choice, the positive one has to be said, and the label is whether it was ticked.
Predictions and drafts are passed over. Cost: the whole file is held in memory, about a kilobyte per label.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from nextlabel.errors import FileFormatError
from nextlabel.files.columns import NO_LABEL, CodedColumn, LabelColumns, cell_name, cell_text, folded, seconds
from nextlabel.files.tables import TableSummary
from nextlabel.wording import listed

#: Kinds of results that hold a label, and the key of their value.
KINDS = {
    "choices": "choices", "rating": "rating", "number": "number", "taxonomy": "taxonomy", "pairwise": "selected",
}  # fmt: skip
HINT = "Export the project from Label Studio as JSON."


def is_export(values: Sequence[Any], path: str) -> bool:
    """Whether a JSON list is an export of Label Studio; its short form without workers is refused."""
    if any("annotation_id" in entry and "annotations" not in entry for entry in values):
        raise FileFormatError(f"{path} is an export of Label Studio as JSON-MIN.", "Export it as JSON or as CSV.")
    return any("annotations" in entry or "completions" in entry for entry in values)


def read_export(
    entries: Sequence[Any], path: str, roles: Mapping[str, str], positive: Any, *, gold: bool
) -> LabelColumns:
    """The columns that have a role, of an export's labels or with ``gold`` of those marked as ground truth."""
    field, question = (None if roles[role] == role else roles[role] for role in ("task", "label"))
    rows = [(_task_name(path, entry, field), one) for entry in entries for one in _annotations(path, entry)]
    marks = sum(1 for _, annotation in rows if annotation.get("ground_truth"))
    rows = [row for row in rows if bool(row[1].get("ground_truth")) == gold]
    if not rows:
        kind = "annotation that is marked as ground truth" if gold else "annotation of a worker"
        raise FileFormatError(f"{path} has no {kind}.", "Annotate at least one task, or give another file.")
    asked = _question(path, [annotation for _, annotation in rows], question)
    workers = [_worker(annotation) for _, annotation in rows] if "worker" in roles else []
    created = [annotation.get("created_at") or annotation.get("updated_at") for _, annotation in rows]
    submitted = seconds(path, "created_at", [str(moment) if moment else None for moment in created])
    took = np.array([_number(annotation.get("lead_time")) for _, annotation in rows])
    assigned = submitted - took
    return LabelColumns(
        report=TableSummary(path, "Label Studio export", rows=len(rows), columns={"label": asked}),
        task=CodedColumn.of(name for name, _ in rows),
        label=CodedColumn.of(_label(path, annotation, asked, positive) for _, annotation in rows),
        worker=CodedColumn.of(workers) if any(map(cell_text, workers)) else None,
        assigned_at=assigned if "assigned_at" in roles and np.isfinite(assigned).any() else None,
        submitted_at=submitted if "submitted_at" in roles and np.isfinite(submitted).any() else None,
        gold_marks=0 if gold else marks,
    )


def _annotations(path: str, entry: dict[str, Any]) -> Iterator[dict[str, Any]]:
    given = entry.get("annotations", entry.get("completions", []))
    if not isinstance(given, list) or not all(isinstance(one, dict) for one in given):
        raise FileFormatError(
            f"{path} is not an export of Label Studio: the annotations of task {entry.get('id')!r} are no list.", HINT
        )
    yield from given


def _task_name(path: str, entry: dict[str, Any], field: str | None) -> Any:
    """The number of the task, or a field of its data; without either it is blank."""
    if field is None:
        return entry.get("id")
    data = entry.get("data")
    if not isinstance(data, dict) or field not in data:
        there = listed(sorted(data)) if isinstance(data, dict) else "none"
        raise FileFormatError(
            f"task {entry.get('id')!r} of {path} has no {field!r} in its data; its fields are {there}.",
            "Name one of them with --task-column, or leave it out to use the task's id.",
        )
    return data[field]


def _results(annotation: dict[str, Any]) -> list[dict[str, Any]]:
    given = annotation.get("result")
    return [one for one in given if isinstance(one, dict)] if isinstance(given, list) else []


def _question(path: str, annotations: list[dict[str, Any]], wanted: str | None) -> str:
    """The ``from_name`` whose answers are the labels."""
    results = [one for annotation in annotations for one in _results(annotation)]
    names = list(dict.fromkeys(str(one.get("from_name")) for one in results if one.get("type") in KINDS))
    if not names:
        kinds = list(dict.fromkeys(str(one.get("type")) for one in results))
        there = f"results of the kind {listed(kinds)}" if kinds else "no results"
        raise FileFormatError(
            f"{path} has {there}, none of which is a label.",
            "Export a project with a Choices, Rating, Number, Taxonomy or Pairwise tag.",
        )
    if wanted is not None and wanted not in names:
        raise FileFormatError(
            f"{path} has no question {wanted!r}; it asks {listed(names)}.", "Name one of them with --label-column."
        )
    if wanted is None and len(names) > 1 and "label" not in names:
        raise FileFormatError(
            f"{path} asks more than one question: {listed(names)}.",
            f"Name the one whose answers are the labels, e.g. --label-column {names[0]}.",
        )
    return wanted or (names[0] if len(names) == 1 else "label")


def _entry(path: str, chosen: Any) -> Any:
    """The entry of a taxonomy, a list from its root to a leaf."""
    if not isinstance(chosen, list):
        return chosen
    if len(chosen) != 1:
        raise FileFormatError(
            f"{path} has the entry {' / '.join(map(str, chosen))!r} of a taxonomy of several levels.",
            "Export a question with one level.",
        )
    return chosen[0]


def _label(path: str, annotation: dict[str, Any], asked: str, positive: Any) -> Any:
    """The answer to the question, None where it was skipped."""
    if annotation.get("was_cancelled") or annotation.get("skipped"):
        return None
    ticked: list[Any] = []
    for one in _results(annotation):
        kind, value = one.get("type"), one.get("value")
        if kind in KINDS and str(one.get("from_name")) == asked and isinstance(value, dict):
            given = value.get(KINDS[kind])
            some = given if isinstance(given, list) else [given]
            ticked += [cell_name(_entry(path, x) if kind == "taxonomy" else x) for x in some if x is not None]
    different = [word for word in dict.fromkeys(ticked) if cell_text(word).casefold() not in ("", *NO_LABEL)]
    if len(different) > 1 and positive is None:
        raise FileFormatError(
            f"annotation {annotation.get('id')} in {path} has more than one answer to {asked!r}: {listed(different)}.",
            f"Name the one to look for, e.g. --positive {different[0]!r}: the label is whether it was ticked.",
        )
    if positive is not None and folded(positive) in map(folded, different):
        return cell_name(positive)
    return different[0] if different else None


def _worker(annotation: dict[str, Any]) -> Any:
    by = annotation.get("completed_by")
    if isinstance(by, dict):
        return by.get("id") if by.get("id") is not None else by.get("email")
    return by


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else float("nan")
