"""Labels that were recorded, one row per label: ``LabelTable``, from a table or from Label Studio's JSON export.

Rules, in this order; ``ReadReport`` counts what each of them met.

1. A blank row is no row. A row without a label (an empty cell, nan, null, a skipped annotation) or without a task is
   left out.
2. Of a worker's labels for one task the first counts, by the time of submission where every row has one, else by the
   order of the file; with ``duplicates="keep"`` all of them count. A label without a worker is nobody's second one.
3. A task without any label left is no task of the table.

Tied votes are kept as they are. Cost: 1.5 to 3 s per million rows of CSV, on the standard library and NumPy alone.

Labels that were recorded, one row per label, and what was met while they were read.

========= ============ ======== ==================================================================
symbol    code         shape    meaning
========= ============ ======== ==================================================================
L         --           --       labels that count
--        task         (L,)     which of ``tasks``, numbered by their first label
--        worker       (L,)     which of ``workers``, -1 where it is blank; None if no worker is known
--        label        (L,)     which of ``labels``; with two of them 1 is the positive one
--        assigned_at  (L,)     seconds, nan where it is blank; None if the times are not known
--        submitted_at (L,)     the same
--        batch        (L,)     which batch of tasks the label belongs to, -1 where it is blank; None if there is none
========= ============ ======== ==================================================================

Rows keep the order of the file. Every task has a label and every worker gave one.

The JSON export of Label Studio: a list of tasks, each with its annotations.

=============== =====================================================================================
here            in the export
=============== =====================================================================================
task            ``id``, or the field of ``data`` that is named
worker          ``completed_by`` of the annotation: a number, or a person with ``id`` and ``email``
label           the choice or the rating in ``result``; blank if ``was_cancelled`` (skipped) or empty
submitted_at    ``created_at`` of the annotation, or ``updated_at`` where that is missing
assigned_at     submitted_at - ``lead_time``, the seconds that the worker took
gold            the labels of annotations with ``ground_truth``; they are no worker's labels
=============== =====================================================================================

Where a page asks more than one question, the label is the answer to the one that is named (``from_name``). Where a
worker may tick more than one choice, the positive one has to be said, and the label is whether it was ticked.
Predictions and drafts are passed over. Cost: the whole file is held in memory, about a kilobyte per label.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

import numpy as np

from nextlabel.arrays import Bools, Floats, Ints
from nextlabel.errors import FileFormatError, InputError
from nextlabel.files.columns import (
    NO_LABEL,
    CodedColumn,
    LabelColumns,
    code_labels,
    fold_spellings,
    folded,
    read_label_columns,
    seconds,
)
from nextlabel.files.open_table import Frame, Table, read_source, table_of_objects
from nextlabel.files.report import TableReport
from nextlabel.prose import counted, listed

Duplicates = Literal["first", "keep"]

#: Kinds of results that hold a label, and the key of their value.
KINDS = ("choices", "rating")
HINT = "Export the project from Label Studio as JSON."


def read_labels(
    source: str | os.PathLike[str] | Frame,
    *,
    task: str = "task",
    worker: str | None = "worker",
    label: str = "label",
    positive: str | None = None,
    assigned_at: str | None = "assigned_at",
    submitted_at: str | None = "submitted_at",
    batch: str | None = "batch",
    duplicates: Duplicates = "first",
) -> LabelTable:
    """The labels of a file or of a data frame; ``report`` of the answer tells what was met and left out.

    ``source`` is the path of a CSV, TSV, JSON lines, JSON or Parquet file or of a Label Studio export, or a data frame
    (pandas, Polars, Arrow, or a mapping from names to columns). The arguments that follow name its columns; None leaves
    one unread, and a column that is not there under its usual name is looked for under others (``columns.USUAL``).
    ``positive`` is the label that counts as 1, all others then being 0.

    In an export of Label Studio ``task`` names a field of the data and ``label`` a question; by default they stand for
    the task's number and for the only question; worker and times are those of the annotation.

    >>> table = read_labels({"task": ["a", "a", "b"], "worker": ["ann", "bob", "ann"], "label": ["Yes", "no", "yes"]})
    >>> table.labels, table.label.tolist()
    (('no', 'yes'), [1, 0, 1])
    """
    if duplicates not in get_args(Duplicates):
        raise InputError(f"duplicates {duplicates!r} is not known.", "Use first or keep.")
    roles = {"task": task, "label": label, "worker": worker, "assigned_at": assigned_at, "submitted_at": submitted_at}
    roles |= {"batch": batch}
    found = read_columns(source, {role: name for role, name in roles.items() if name is not None}, positive)
    found = replace(
        found,
        worker=None if worker is None else found.worker,
        assigned_at=None if assigned_at is None else found.assigned_at,
        submitted_at=None if submitted_at is None else found.submitted_at,
        batch=None if batch is None else found.batch,
    )
    return _table(found, positive, duplicates)


def as_label_table(labels: LabelTable | str | os.PathLike[str] | Frame) -> LabelTable:
    """``labels`` if they are a table already, else read from a path or a data frame with the usual columns."""
    return labels if isinstance(labels, LabelTable) else read_labels(labels)


def read_columns(
    source: Any, roles: Mapping[str, str], positive: str | None = None, *, gold: bool = False
) -> LabelColumns:
    """The columns of a table by their role, in whichever form it is."""

    def read(table: Table) -> LabelColumns:
        return read_label_columns(table, roles)

    def read_json(values: list[Any], name: str) -> LabelColumns:
        if not is_export(values, name):
            return read(table_of_objects(values, name, "json"))
        field = None if roles["task"] == "task" else roles["task"]
        question = None if roles["label"] == "label" else roles["label"]
        return read_export(values, name, field, question, positive, gold=gold)

    return read_source(source, "labels", read, read_json)


def _table(found: LabelColumns, positive: str | None, rule: Duplicates) -> LabelTable:
    path = found.report.name
    no_label = found.label.codes < 0
    no_task = found.task.codes < 0
    rows = np.flatnonzero(~no_label & ~no_task)
    if len(rows) == 0:
        raise FileFormatError(f"{path} has {len(found):,} rows and not one label.", "Check the column of the labels.")
    words, spellings = fold_spellings(found.label)
    times = _at(found.submitted_at, rows)
    by_time = times is not None and bool(np.isfinite(times).all())
    again, unlike = np.zeros(len(rows), dtype=np.bool_), 0
    if found.worker is not None:
        again, first = second_answers(found.task.codes[rows], found.worker.codes[rows], times if by_time else None)
        unlike = int((words.codes[rows] != words.codes[rows][first])[again].sum())
    kept = rows[~again] if rule == "first" else rows
    task, label = found.task.kept(kept), words.kept(kept)
    worker = None if found.worker is None else found.worker.kept(kept)
    value, names, spelt = code_labels(label.names, positive, path)
    table = LabelTable(
        task=task.codes,
        worker=None if worker is None else worker.codes,
        label=value[label.codes],
        tasks=task.names,
        workers=() if worker is None else worker.names,
        labels=names,
        positive=spelt,
        assigned_at=_at(found.assigned_at, kept),
        submitted_at=_at(found.submitted_at, kept),
        batch=None if found.batch is None else found.batch.codes[kept],
    )
    per_task = table.per_task
    report = ReadReport(
        table=found.report,
        blank_labels=int(no_label.sum()),
        blank_tasks=int((no_task & ~no_label).sum()),
        gold_marks=found.gold_marks,
        tasks_without_labels=len(found.task.names) - len(task.names),
        workers_known=worker is not None,
        blank_workers=0 if worker is None else int((worker.codes < 0).sum()),
        duplicates=int(again.sum()),
        duplicates_differ=unlike,
        rule=rule,
        by_time=by_time,
        labels=len(table),
        tasks=len(table.tasks),
        workers=len(table.workers),
        least=int(per_task.min()),
        mean=float(per_task.mean()),
        most=int(per_task.max()),
        ties=table.ties(),
        label_counts=dict(zip(names, np.bincount(table.label, minlength=len(names)).tolist(), strict=True)),
        spellings=spellings,
        positive=spelt,
        assigned_known=_known(table.assigned_at),
        submitted_known=_known(table.submitted_at),
        times_unread=found.times_unread,
    )
    return replace(table, report=report)


def second_answers(task: Ints, worker: Ints, times: Floats | None) -> tuple[Bools, Ints]:
    """Which rows are a worker's second answer to a task or a later one, and the row of the first answer of each."""
    L = len(task)
    # a label without a worker gets one of its own
    who = np.where(worker >= 0, worker, worker.max(initial=-1) + 1 + np.arange(L))
    pair = task * (who.max(initial=0) + 1) + who
    order = np.argsort(pair, kind="stable") if times is None else np.lexsort((times, pair))
    start = np.append(True, np.diff(pair[order]) != 0)[:L]
    first = np.empty(L, dtype=np.int64)
    first[order] = order[np.maximum.accumulate(np.where(start, np.arange(L), 0))]
    return first != np.arange(L), first


def _at(times: Floats | None, rows: Ints) -> Floats | None:
    return None if times is None else times[rows]


def _known(times: Floats | None) -> int:
    return 0 if times is None else int(np.isfinite(times).sum())


@dataclass(frozen=True, slots=True)
class ReadReport:
    """What a file of labels held, what was left out of the table, and by which rule."""

    table: TableReport = field(default_factory=TableReport)
    blank_labels: int = 0
    blank_tasks: int = 0
    gold_marks: int = 0
    tasks_without_labels: int = 0
    workers_known: bool = False
    blank_workers: int = 0
    duplicates: int = 0
    duplicates_differ: int = 0
    rule: Duplicates = "first"
    by_time: bool = False
    labels: int = 0
    tasks: int = 0
    workers: int = 0
    least: int = 0
    mean: float = 0.0
    most: int = 0
    ties: int = 0
    label_counts: dict[str, int] = field(default_factory=dict)
    spellings: dict[str, list[str]] = field(default_factory=dict)
    positive: str | None = None
    assigned_known: int = 0
    submitted_known: int = 0
    times_unread: str = ""

    @property
    def rows(self) -> int:
        """Rows that are not blank."""
        return self.table.rows

    def as_dict(self) -> dict[str, Any]:
        """The report as ``--json`` prints it, under ``read``."""
        own = {name: getattr(self, name) for name in self.__slots__ if name != "table"}
        return self.table.as_dict() | own | {"sentences": self.sentences()}

    def sentences(self) -> list[str]:
        """The report in plain English, nothing said about what did not happen."""
        table = self.table
        out = [
            f"{table.name}: {counted(self.rows, 'row')} read ({table.form}), {counted(self.labels, 'label')} used.",
            *table.notes(),
        ]
        if self.blank_labels:
            out.append(f"{counted(self.blank_labels, 'row')} without a label left out.")
        if self.blank_tasks:
            out.append(f"{counted(self.blank_tasks, 'row')} without a task left out.")
        if self.gold_marks:
            out.append(f"{counted(self.gold_marks, 'annotation')} marked as ground truth left out: gold, not labels.")
        if self.tasks_without_labels:
            out.append(
                f"{counted(self.tasks_without_labels, 'task has', 'tasks have')} no label left and do not count."
            )
        out += self._workers()
        spread = f"{self.least} to {self.most}, {self.mean:.4g} on average"
        labels = f"{self.most} each" if self.least == self.most else spread
        out.append(f"{counted(self.tasks, 'task')}; labels per task: {labels}.")
        shares = [f"{name} ({many:,})" for name, many in self.label_counts.items()]
        one = list(self.label_counts)[-1]
        counts_as_one = "" if len(shares) != 2 or one == "1" else f"; {one} counts as 1"
        out.append(f"Labels: {listed(shares)}{counts_as_one}.")
        for name, spelt in self.spellings.items():
            out.append(f"{listed(spelt)} are spellings of one label, {name}.")
        if self.ties:
            out.append(
                f"{counted(self.ties, 'task is', 'tasks are')} tied under majority vote: ties are kept as they are; "
                "where votes decide they count as half right."
            )
        return out + self._times()

    def _workers(self) -> list[str]:
        if not self.workers_known:
            return [
                "There is no column of workers: a second answer by the same worker cannot be recognised and counts."
            ]
        out = [f"{counted(self.workers, 'worker')}."]
        if self.blank_workers:
            out.append(f"{counted(self.blank_workers, 'label')} without a worker kept, not looked at for duplicates.")
        if self.duplicates:
            first = "the first by the time of submission" if self.by_time else "the first in the file"
            rule = f"{first} counts, the others are left out" if self.rule == "first" else "all are kept, as asked"
            out.append(
                f"{counted(self.duplicates, 'label')} by a worker who had labelled the task before "
                f"({self.duplicates_differ:,} of them unlike the first): {rule}."
            )
        return out

    def _times(self) -> list[str]:
        known = [("assigned", self.assigned_known), ("submitted", self.submitted_known)]
        said = [f"{counted(many, 'label')} with the time it was {word}" for word, many in known if many]
        unread = [f"Times are not used: {self.times_unread}"] if self.times_unread else []
        return [*([f"{', '.join(said)}."] if said else []), *unread]


@dataclass(frozen=True, slots=True, eq=False)
class LabelTable:
    """Labels as numbers, with the names they stand for; ``positive``: the word that is a 1, every other one a 0.

    ``report`` tells what was met in the file: ``print(*table.report.sentences(), sep="\\n")``.
    """

    task: Ints
    worker: Ints | None
    label: Ints
    tasks: tuple[str, ...]
    workers: tuple[str, ...]
    labels: tuple[str, ...]
    positive: str | None = None
    assigned_at: Floats | None = None
    submitted_at: Floats | None = None
    batch: Ints | None = None
    report: ReadReport = field(default_factory=ReadReport)

    def __len__(self) -> int:
        return len(self.task)

    @property
    def per_task(self) -> Ints:
        """(N,) labels of each task."""
        return np.bincount(self.task, minlength=len(self.tasks)).astype(np.int64)

    def ties(self) -> int:
        """Tasks that no majority decides: two answers or more are the most frequent one."""
        if len(self) == 0:
            return 0
        J = max(1, len(self.labels))
        keys, votes = np.unique(self.task * J + self.label, return_counts=True)
        task = keys // J
        first = np.flatnonzero(np.append(True, task[1:] != task[:-1]))
        winner = votes == np.repeat(np.maximum.reduceat(votes, first), np.diff(np.append(first, len(votes))))
        return int((np.add.reduceat(winner.astype(np.int64), first) > 1).sum())


def is_export(values: Sequence[Any], path: str) -> bool:
    """Whether a JSON list is an export of Label Studio; its short form without workers is refused."""
    tables = [value for value in values if isinstance(value, dict)]
    if any("annotation_id" in entry and "annotations" not in entry for entry in tables):
        raise FileFormatError(f"{path} is an export of Label Studio as JSON-MIN.", "Export it as JSON or as CSV.")
    return any("annotations" in entry or "completions" in entry for entry in tables)


def read_export(
    entries: Sequence[Any], path: str, task: str | None, question: str | None, positive: str | None, *, gold: bool
) -> LabelColumns:
    """Labels of an export, or with ``gold`` those that are marked as ground truth."""
    if not all(isinstance(entry, dict) for entry in entries):
        raise FileFormatError(f"{path} is not an export of Label Studio, which is a list of tasks.", HINT)
    rows = [
        (_task_name(path, entry, task), annotation) for entry in entries for annotation in _annotations(path, entry)
    ]
    marks = sum(1 for _, annotation in rows if annotation.get("ground_truth"))
    rows = [row for row in rows if bool(row[1].get("ground_truth")) == gold]
    if not rows:
        kind = "annotation that is marked as ground truth" if gold else "annotation of a worker"
        raise FileFormatError(f"{path} has no {kind}.", "Annotate at least one task, or give another file.")
    asked = _question(path, [annotation for _, annotation in rows], question)
    created = [annotation.get("created_at") or annotation.get("updated_at") for _, annotation in rows]
    submitted = seconds(path, "created_at", [str(moment) if moment else None for moment in created])
    took = np.array([_number(annotation.get("lead_time")) for _, annotation in rows])
    assigned = submitted - took
    return LabelColumns(
        report=TableReport(path, "Label Studio export", rows=len(rows), columns={"label": asked}),
        task=CodedColumn.of(name for name, _ in rows),
        label=CodedColumn.of(_label(path, annotation, asked, positive) for _, annotation in rows),
        worker=_workers([annotation for _, annotation in rows]),
        assigned_at=assigned if np.isfinite(assigned).any() else None,
        submitted_at=submitted if np.isfinite(submitted).any() else None,
        gold_marks=0 if gold else marks,
    )


def _annotations(path: str, entry: dict[str, Any]) -> Iterator[dict[str, Any]]:
    given = entry.get("annotations", entry.get("completions", []))
    if not isinstance(given, list) or not all(isinstance(one, dict) for one in given):
        raise FileFormatError(
            f"{path} is not an export of Label Studio: the annotations of task {entry.get('id')!r} are no list.", HINT
        )
    yield from given


def _task_name(path: str, entry: dict[str, Any], field: str | None) -> str | None:
    """The number of the task, or a field of its data; without either it is blank."""
    if field is None:
        return None if entry.get("id") is None else str(entry["id"])
    data = entry.get("data")
    if not isinstance(data, dict) or field not in data:
        there = listed(sorted(data)) if isinstance(data, dict) else "none"
        raise FileFormatError(
            f"task {entry.get('id')!r} of {path} has no {field!r} in its data; its fields are {there}.",
            "Name one of them with --task-column, or leave it out to use the task's id.",
        )
    return str(data[field]).strip()


def _results(annotation: dict[str, Any]) -> list[dict[str, Any]]:
    given = annotation.get("result")
    return [one for one in given if isinstance(one, dict)] if isinstance(given, list) else []


def _question(path: str, annotations: list[dict[str, Any]], wanted: str | None) -> str:
    """The ``from_name`` whose answers are the labels."""
    asked: dict[str, None] = {}
    kinds: dict[str, None] = {}
    for annotation in annotations:
        for one in _results(annotation):
            kinds[str(one.get("type"))] = None
            if one.get("type") in KINDS:
                asked[str(one.get("from_name"))] = None
    names = list(asked)
    if wanted is not None and wanted in asked:
        return wanted
    if not names:
        there = f"results of the kind {listed(list(kinds))}" if kinds else "no results"
        raise FileFormatError(f"{path} has {there}, not choices or ratings.", "Export a project with a Choices tag.")
    if wanted is not None:
        raise FileFormatError(
            f"{path} has no question {wanted!r}; it asks {listed(names)}.", "Name one of them with --label-column."
        )
    if len(names) > 1 and "label" not in asked:
        raise FileFormatError(
            f"{path} asks more than one question: {listed(names)}.",
            f"Name the one whose answers are the labels, e.g. --label-column {names[0]}.",
        )
    return names[0] if len(names) == 1 else "label"


def _label(path: str, annotation: dict[str, Any], asked: str, positive: str | None) -> str | None:
    """The answer to the question, None where it was skipped."""
    if annotation.get("was_cancelled") or annotation.get("skipped"):
        return None
    ticked: list[str] = []
    for one in _results(annotation):
        kind, value = one.get("type"), one.get("value")
        if kind in KINDS and str(one.get("from_name")) == asked and isinstance(value, dict):
            given = value.get(kind)
            ticked += [str(x).strip() for x in (given if isinstance(given, list) else [given]) if x is not None]
    different = [word for word in dict.fromkeys(ticked) if word and word.casefold() not in NO_LABEL]
    if len(different) > 1 and positive is None:
        raise FileFormatError(
            f"annotation {annotation.get('id')} in {path} has more than one answer to {asked!r}: {listed(different)}.",
            f"Name the one to look for, e.g. --positive {different[0]!r}: the label is whether it was ticked.",
        )
    if positive is not None and folded(positive) in map(folded, different):
        return positive.strip()
    return different[0] if different else None


def _workers(annotations: list[dict[str, Any]]) -> CodedColumn | None:
    names = []
    for annotation in annotations:
        by = annotation.get("completed_by")
        if isinstance(by, dict):
            by = by.get("id") if by.get("id") is not None else by.get("email")
        names.append(None if by is None else str(by).strip())
    return CodedColumn.of(names) if any(names) else None


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else float("nan")
