"""Labels from a table with one row per label, or from the JSON export of Label Studio.

Rules, in this order; ``ReadReport`` counts what each of them met.

1. A blank row is no row. A row without a label (an empty cell, nan, null, a skipped annotation) or without a task is
   left out.
2. Of a worker's labels for one task the first counts, by the time of submission where every row has one, else by the
   order of the file; with ``duplicates="keep"`` all of them count. A label without a worker is nobody's second one.
3. A task without any label left is no task of the table.

Tied votes are kept as they are. Cost: 1.5 to 3 s per million rows of CSV, on the standard library and NumPy alone.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, get_args

import numpy as np

from nextlabel.arrays import Bools, Floats, Ints
from nextlabel.errors import FileFormatError, InputError
from nextlabel.files.columns import LabelColumns, read_label_columns
from nextlabel.files.frames import Frame
from nextlabel.files.label_names import code_labels, fold_spellings
from nextlabel.files.label_studio import is_export, read_export
from nextlabel.files.label_table import Duplicates, LabelTable, ReadReport
from nextlabel.files.open_table import Table, read_source, table_of_objects


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
