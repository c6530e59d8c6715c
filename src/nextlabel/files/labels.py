"""Labels from a file: CSV, TSV or Parquet with a label a row, or the JSON export of Label Studio.

Rules, in this order; ``ReadReport`` counts what each of them met.

1. A row without a label (an empty cell, nan, null, a skipped annotation) or without a task is left out.
2. Of a worker's labels for one task the first counts, by the time of submission where every row has one, else by the
   order of the file; with ``duplicates="keep"`` all of them count. A label without a worker is nobody's second one.
3. A task without any label left is no task of the table.

Tied votes are kept as they are. Cost: see ``columns``; a sort of the labels for the duplicates.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import get_args

import numpy as np

from nextlabel.arrays import Bools, Floats, Ints
from nextlabel.errors import FileFormatError, InputError
from nextlabel.files.columns import Columns
from nextlabel.files.label_names import code_words
from nextlabel.files.label_studio import read_export
from nextlabel.files.label_table import Duplicates, LabelTable, ReadReport
from nextlabel.files.tabular import read_csv, read_parquet

#: Column names that are looked for and may be missing; a column that is named otherwise has to be there.
MAY_BE_MISSING = {"worker": "worker", "assigned_at": "assigned_at", "submitted_at": "submitted_at"}
CSV, PARQUET, JSON = (".csv", ".tsv"), (".parquet", ".pq"), (".json",)


def read_labels(
    path: str | Path,
    *,
    task: str = "task",
    worker: str | None = "worker",
    label: str = "label",
    positive: str | None = None,
    assigned_at: str | None = "assigned_at",
    submitted_at: str | None = "submitted_at",
    duplicates: Duplicates = "first",
) -> tuple[LabelTable, ReadReport]:
    """The labels of a file and a report of what was in it; None for a column leaves it unread.

    In an export of Label Studio ``task`` names a field of the data and ``label`` a question; as they are by default
    they stand for the task's number and for the only question; worker and times are those of the annotation.
    """
    if duplicates not in get_args(Duplicates):
        raise InputError(f"duplicates {duplicates!r} is not known.", "Use first or keep.")
    roles = {"task": task, "label": label, "worker": worker, "assigned_at": assigned_at, "submitted_at": submitted_at}
    found = read_columns(path, {role: name for role, name in roles.items() if name is not None}, positive)
    found = replace(
        found,
        worker=None if worker is None else found.worker,
        assigned_at=None if assigned_at is None else found.assigned_at,
        submitted_at=None if submitted_at is None else found.submitted_at,
    )
    return _table(str(path), found, positive, duplicates)


def read_columns(
    path: str | Path, roles: Mapping[str, str], positive: str | None = None, *, gold: bool = False
) -> Columns:
    """The columns of a file by their role, in whichever form it is."""
    path = Path(path)
    if not path.exists():
        raise FileFormatError(f"there is no file {path}.", "Check the path.")
    if not path.is_file():
        raise FileFormatError(f"{path} is a folder, not a file.", "Give the path of a file of labels.")
    name = path.name.lower().removesuffix(".gz")
    optional = [role for role, usual in MAY_BE_MISSING.items() if roles.get(role) == usual]
    if name.endswith(CSV):
        return read_csv(path, roles, optional)
    if name.endswith(PARQUET):
        return read_parquet(path, roles, optional)
    if name.endswith(JSON):
        task = None if roles["task"] == "task" else roles["task"]
        question = None if roles["label"] == "label" else roles["label"]
        return read_export(path, task, question, positive, gold=gold)
    raise FileFormatError(
        f"{path} has a name that does not say what is in it.",
        f"Give a file whose name ends in {', '.join((*CSV, '.csv.gz', PARQUET[0], *JSON))} (Label Studio).",
    )


def _table(path: str, found: Columns, positive: str | None, rule: Duplicates) -> tuple[LabelTable, ReadReport]:
    no_label = found.label.codes < 0
    no_task = found.task.codes < 0
    rows = np.flatnonzero(~no_label & ~no_task)
    if len(rows) == 0:
        raise FileFormatError(f"{path} has {len(found):,} rows and not one label.", "Check the column of the labels.")
    times = _at(found.submitted_at, rows)
    by_time = times is not None and bool(np.isfinite(times).all())
    again, unlike = np.zeros(len(rows), dtype=np.bool_), 0
    if found.worker is not None:
        again, first = second_answers(found.task.codes[rows], found.worker.codes[rows], times if by_time else None)
        unlike = int((found.label.codes[rows] != found.label.codes[rows][first])[again].sum())
    kept = rows[~again] if rule == "first" else rows
    task, label = found.task.kept(kept), found.label.kept(kept)
    worker = None if found.worker is None else found.worker.kept(kept)
    value, names, spelt = code_words(label.names, positive, path)
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
    )
    per_task = table.per_task
    report = ReadReport(
        path=path,
        rows=len(found),
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
        positive=spelt,
        assigned_known=_known(table.assigned_at),
        submitted_known=_known(table.submitted_at),
    )
    return table, report


def second_answers(task: Ints, worker: Ints, times: Floats | None) -> tuple[Bools, Ints]:
    """Which rows are a worker's second answer to a task or a later one, and the row of the first answer of each."""
    L = len(task)
    # a label without a worker gets one of its own
    who = np.where(worker >= 0, worker, worker.max(initial=-1) + 1 + np.arange(L))
    order = np.lexsort((np.arange(L) if times is None else times, who, task))
    start = np.append(True, (np.diff(task[order]) != 0) | (np.diff(who[order]) != 0))[:L]
    first = np.empty(L, dtype=np.int64)
    first[order] = order[np.maximum.accumulate(np.where(start, np.arange(L), 0))]
    return first != np.arange(L), first


def _at(times: Floats | None, rows: Ints) -> Floats | None:
    return None if times is None else times[rows]


def _known(times: Floats | None) -> int:
    return 0 if times is None else int(np.isfinite(times).sum())
