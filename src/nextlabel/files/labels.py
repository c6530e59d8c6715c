"""Labels that were recorded, one row per label: ``LabelTable``, from a table or from Label Studio's JSON export.

Rules, in this order; ``LabelSummary`` counts what each of them met.

1. A blank row is no row. A row without a label (an empty cell, nan, null, a skipped annotation) or without a task is
   left out.
2. Of a worker's labels for one task the first counts, by the time of submission where every row has one, else by the
   order of the file; with ``duplicates="keep"`` all of them count. A label without a worker is nobody's second one.
3. A task without any label left is no task of the table.

Tied votes are kept as they are. Cost: 1.5 to 3 s per million rows of CSV, on the standard library and NumPy alone.

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
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from nextlabel.arrays import Bools, Floats, Ints
from nextlabel.errors import FileFormatError, InputError
from nextlabel.files.columns import (
    LabelColumns,
    cell_name,
    cell_text,
    code_gold,
    code_labels,
    find_columns,
    fold_spellings,
    folded,
    probability,
    read_label_columns,
)
from nextlabel.files.label_studio import is_export, read_export
from nextlabel.files.tables import Frame, JsonTable, TableSummary, open_table
from nextlabel.wording import counted, listed, tallied

Duplicates = Literal["first", "keep"]


def read_labels(
    source: str | os.PathLike[str] | Frame,
    *,
    task: str = "task",
    worker: str | None = "worker",
    label: str = "label",
    positive: Any = None,
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
    return _table(found, positive, duplicates)


def as_label_table(labels: LabelTable | str | os.PathLike[str] | Frame) -> LabelTable:
    """``labels`` if they are a table already, else read from a path or a data frame with the usual columns."""
    return labels if isinstance(labels, LabelTable) else read_labels(labels)


def read_columns(source: Any, roles: Mapping[str, str], positive: Any = None, *, gold: bool = False) -> LabelColumns:
    """The columns of a table by their role, in whichever form it is."""
    with open_table(source, "labels") as table:
        if not isinstance(table, JsonTable) or not is_export(table.values, table.report.name):
            return read_label_columns(table, roles)
        return read_export(table.values, table.report.name, roles, positive, gold=gold)


def _table(found: LabelColumns, positive: Any, rule: Duplicates) -> LabelTable:
    path = found.report.name
    no_label = found.label.codes < 0
    no_task = found.task.codes < 0
    rows = np.flatnonzero(~no_label & ~no_task)
    if len(rows) == 0:
        raise FileFormatError(f"{path} has {len(found):,} rows and not one label.", "Check the column of the labels.")
    words, spellings = fold_spellings(found.label)
    kept = replace(found, label=words).kept(rows)
    by_time = kept.submitted_at is not None and bool(np.isfinite(kept.submitted_at).all())
    again, unlike = np.zeros(len(rows), dtype=np.bool_), 0
    if kept.worker is not None:
        again, first = second_answers(kept.task.codes, kept.worker.codes, kept.submitted_at if by_time else None)
        unlike = int((kept.label.codes != kept.label.codes[first])[again].sum())
    kept = kept.kept(np.flatnonzero(~again)) if rule == "first" else kept
    worker = kept.worker
    value, names, spelt = code_labels(kept.label.names, positive, path)
    table = LabelTable(
        task=kept.task.codes,
        worker=None if worker is None else worker.codes,
        label=value[kept.label.codes],
        tasks=kept.task.names,
        workers=() if worker is None else worker.names,
        labels=names,
        positive=spelt,
        assigned_at=kept.assigned_at,
        submitted_at=kept.submitted_at,
        batch=None if kept.batch is None else kept.batch.codes,
    )
    per_task = table.per_task
    report = LabelSummary(
        table=found.report,
        blank_labels=int(no_label.sum()),
        blank_tasks=int((no_task & ~no_label).sum()),
        gold_marks=found.gold_marks,
        tasks_without_labels=len(found.task.names) - len(table.tasks),
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


def _known(times: Floats | None) -> int:
    return 0 if times is None else int(np.isfinite(times).sum())


@dataclass(frozen=True, slots=True)
class LabelSummary:
    """What a file of labels held, what was left out of the table, and by which rule."""

    table: TableSummary = field(default_factory=TableSummary)
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
    label_counts: dict[Any, int] = field(default_factory=dict)
    spellings: dict[Any, list[Any]] = field(default_factory=dict)
    positive: Any = None
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
        out = self.table.sentences(f", {counted(self.labels, 'label')} used")
        out += tallied(
            (self.blank_labels, "row", "without a label left out."),
            (self.blank_tasks, "row", "without a task left out."),
            (self.gold_marks, "annotation", "marked as ground truth left out: gold, not labels."),
            (self.tasks_without_labels, "task has|tasks have", "no label left and do not count."),
        )
        if not self.workers_known:
            out.append(
                "There is no column of workers: a second answer by the same worker cannot be recognised and counts."
            )
        else:
            first = "the first by the time of submission" if self.by_time else "the first in the file"
            rule = f"{first} counts, the others are left out" if self.rule == "first" else "all are kept, as asked"
            before = (
                f"by a worker who had labelled the task before ({self.duplicates_differ:,} of them unlike the first)"
            )
            out.append(f"{counted(self.workers, 'worker')}.")
            out += tallied(
                (self.blank_workers, "label", "without a worker kept, not looked at for duplicates."),
                (self.duplicates, "label", f"{before}: {rule}."),
            )
        spread = f"{self.least} to {self.most}, {self.mean:.4g} on average"
        labels = f"{self.most} each" if self.least == self.most else spread
        out.append(f"{counted(self.tasks, 'task')}; labels per task: {labels}.")
        shares = [f"{name} ({many:,})" for name, many in self.label_counts.items()]
        one = list(self.label_counts)[-1]
        counts_as_one = "" if len(shares) != 2 or cell_text(one) == "1" else f"; {one} counts as 1"
        out.append(f"Labels: {listed(shares)}{counts_as_one}.")
        out += [f"{listed(spelt)} are spellings of one label, {name}." for name, spelt in self.spellings.items()]
        half = "tied under majority vote: ties are kept as they are; where votes decide they count as half right."
        out += tallied((self.ties, "task is|tasks are", half))
        known = [("assigned", self.assigned_known), ("submitted", self.submitted_known)]
        times = [f"{counted(many, 'label')} with the time it was {word}" for word, many in known if many]
        unread = [f"Times are not used: {self.times_unread}"] if self.times_unread else []
        return [*out, *([f"{', '.join(times)}."] if times else []), *unread]


@dataclass(frozen=True, slots=True, eq=False)
class LabelTable:
    """Labels as numbers, with the names they stand for; ``positive``: the word that is a 1, every other one a 0.

    ``report`` tells what was met in the file: ``print(*table.report.sentences(), sep="\\n")``.
    """

    task: Ints
    worker: Ints | None
    label: Ints
    tasks: tuple[Any, ...]
    workers: tuple[Any, ...]
    labels: tuple[Any, ...]
    positive: Any = None
    assigned_at: Floats | None = None
    submitted_at: Floats | None = None
    batch: Ints | None = None
    report: LabelSummary = field(default_factory=LabelSummary)

    def __len__(self) -> int:
        return len(self.task)

    @property
    def per_task(self) -> Ints:
        """(N,) labels of each task."""
        return np.bincount(self.task, minlength=len(self.tasks)).astype(np.int64)

    def givers(self) -> tuple[Ints, int]:
        """Who gave each label, and how many gave some; a label without a worker counts as that of one more worker."""
        if self.worker is None or not self.workers:
            why = "there is no column of workers" if self.worker is None else "the column of workers is empty"
            raise InputError(
                f"the labels do not say who gave them: {why}.", "Give a column 'worker', or name it (--worker-column)."
            )
        blank = self.worker < 0
        worker = np.where(blank, len(self.workers) + np.cumsum(blank) - 1, self.worker)
        return worker, len(self.workers) + int(blank.sum())

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


@dataclass(frozen=True, slots=True, eq=False)
class Gold:
    """``label``: (N,) the truth about the tasks of a table as its labels are coded, -1 where it is not known."""

    label: Ints
    known: int
    blank: int = 0
    unknown_tasks: int = 0
    table: TableSummary = field(default_factory=TableSummary)

    def sentences(self) -> list[str]:
        """What was read, in plain English."""
        out = self.table.sentences(f", gold for {self.known:,} of {counted(len(self.label), 'task')}")
        out += tallied((self.blank, "row", "of gold without a task or a label left out."))
        return out + [f"Gold for {one}" for one in tallied((self.unknown_tasks, "task", "without labels left out."))]

    def as_dict(self) -> dict[str, Any]:
        """The report as ``--json`` prints it, under ``read``."""
        own = {"known": self.known, "blank": self.blank, "unknown_tasks": self.unknown_tasks}
        return self.table.as_dict() | own | {"sentences": self.sentences()}


class Said(NamedTuple):
    """What a file says of tasks: the task's and the label's name, by the task's text; rows without either."""

    labels: dict[str, tuple[Any, Any]]
    blank: int
    table: TableSummary

    def by_number(self, tasks: Sequence[Any], what: str, whose: str, hint: str) -> dict[int, Any]:
        """The label of each of some tasks that has one, by its number; a file with none of them has no ``what``."""
        found = {k: self.labels[key][1] for k, key in enumerate(map(cell_text, tasks)) if key in self.labels}
        if not found:
            first = next((repr(name) for name, _ in self.labels.values()), "none")
            raise FileFormatError(
                f"{self.table.name} has no {what}: its first task is {first}, that of the {whose} is {tasks[0]!r}.",
                hint,
            )
        return found


def read_said(source: Any, task: str = "task", label: str = "label", positive: Any = None) -> Said:
    """The one label of each task; in an export of Label Studio, those marked as ground truth. Two are refused."""
    columns = read_columns(source, {"task": task, "label": label}, positive, gold=True)
    keys, folds = list(map(cell_text, columns.task.names)), list(map(folded, columns.label.names))
    said: dict[int, int] = {}
    rows = np.flatnonzero((columns.task.codes >= 0) & (columns.label.codes >= 0))
    for name, given in zip(columns.task.codes[rows].tolist(), columns.label.codes[rows].tolist(), strict=True):
        before = folds[said.setdefault(name, given)]
        if before != folds[given] and (positive is None or folded(positive) in (before, folds[given])):
            raise FileFormatError(
                f"{columns.report.name} says two things of task {keys[name][:60]!r}.", "Give each task one label."
            )
    labels = {keys[name]: (columns.task.names[name], columns.label.names[given]) for name, given in said.items()}
    return Said(labels, len(columns) - len(rows), columns.report)


def read_gold(source: Any, table: LabelTable, *, task: str = "task", label: str = "label") -> Gold:
    """The truth about the tasks of ``table``; in an export of Label Studio, annotations marked as ground truth."""
    found = read_said(source, task, label, table.positive)
    hint = "Give the gold that belongs to these labels, with the same names of tasks."
    there = found.by_number(table.tasks, "gold for any task that has labels", "labels", hint)
    words = list(dict.fromkeys(said for _, said in found.labels.values()))
    code = dict(zip(words, code_gold(words, table.labels, table.positive, found.table.name).tolist(), strict=True))
    out = np.full(len(table.tasks), -1, dtype=np.int64)
    out[list(there)] = [code[said] for said in there.values()]
    return Gold(out, len(there), found.blank, len(found.labels) - len(there), found.table)


def as_gold(gold: Gold | str | os.PathLike[str] | Frame | None, table: LabelTable) -> Gold:
    """``gold`` if it was read already, else read from a path or a data frame; None knows nothing."""
    if gold is None:
        return Gold(np.full(len(table.tasks), -1, dtype=np.int64), 0)
    return gold if isinstance(gold, Gold) else read_gold(gold, table)


def read_answers(path: Any, task: str = "task", label: str = "label") -> dict[str, str]:
    """The answer of each task in a file; rows without an answer are left out."""
    return {key: cell_text(said) for key, (_, said) in read_said(path, task, label).labels.items()}


#: Sources of labels, in files of results, that are no worker's: their truth was told.
TOLD = frozenset({"control", "adjudicated", "audited", "expert", "known"})


@dataclass(frozen=True, slots=True, eq=False)
class ResultTable:
    """``tasks`` and ``labels`` as they are spelt, ``probability`` (N,) of each label, ``told`` (N,) where gold was."""

    tasks: tuple[Any, ...]
    labels: tuple[Any, ...]
    probability: Floats
    told: Bools
    table: TableSummary = field(default_factory=TableSummary)

    def __len__(self) -> int:
        return len(self.tasks)

    def sentences(self) -> list[str]:
        """What was read, in plain English."""
        told = (int(self.told.sum()), "task", "with gold left out: their truth was told, not found.")
        return self.table.sentences() + tallied(told)

    def as_dict(self) -> dict[str, Any]:
        """The report as ``--json`` prints it, under ``read``."""
        return self.table.as_dict() | {"sentences": self.sentences()}


def read_results(source: Any, *, task: str = "task", label: str = "label") -> ResultTable:
    """Results of a campaign or of ``nextlabel workers``, one row per task: its label and the label's probability.

    An optional column ``gold`` marks the tasks whose truth the method was told; it is empty for all others. So does
    ``source``, if it says that the label is no worker's (``TOLD``).
    """
    with open_table(source, "results") as table:
        at = find_columns(table, {"task": task, "label": label, "score": "probability"})
        name, places = table.report.name, [at["task"], at["label"], at["score"]]
        marks = [name for name in ("gold", "source") if name in table.columns]
        results: dict[str, tuple[Any, Any, float, bool]] = {}
        for row, *cells in table.rows([*places, *map(table.columns.index, marks)]):
            key, said, p = cell_text(cells[0]), cell_text(cells[1]), probability(cells[2])
            if not key or not said:
                raise FileFormatError(
                    f"row {row:,} of {name} has no {'label' if key else 'task'}.",
                    "Give each task its label and the probability of the label.",
                )
            if math.isnan(p):
                raise FileFormatError(
                    f"row {row:,} of {name} has the probability {str(cells[2])!r}.",
                    "Give the probability of the label, from 0 to 1.",
                )
            if key in results:
                raise FileFormatError(f"{name} has two rows for task {key!r}.", "Give one row per task.")
            marked = dict(zip(marks, map(cell_text, cells[3:]), strict=True))
            is_told = bool(marked.get("gold")) or marked.get("source") in TOLD
            results[key] = (cell_name(cells[0]), cell_name(cells[1]), p, is_told)
    if not results:
        raise FileFormatError(f"{name} has a header and no rows.", "Give one row per task.")
    tasks, labels, p_label, told = zip(*results.values(), strict=True)
    return ResultTable(tasks, labels, np.array(p_label), np.array(told, dtype=np.bool_), table.report)
