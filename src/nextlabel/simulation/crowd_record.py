"""Labels that were recorded with the workers who gave them, for replay."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.crowd.fit import CrowdLabels
from nextlabel.errors import InputError
from nextlabel.files.labels import LabelTable

#: How recorded labels are replayed.
REPLAYS = ("task-first", "worker-first", "timed")


@dataclass(frozen=True, slots=True, eq=False)
class CrowdRecord:
    """Recorded labels with their workers.

    ========= ======= ===========================================================================
    code      shape   meaning
    ========= ======= ===========================================================================
    labels    n       task, worker and answer of each label, in the order of the file
    gold      (K,)    the truth, -1 where it is not known; no policy ever sees it
    started   (n,)    seconds at which each label was begun; None if the times are not known
    submitted (n,)    seconds at which it was handed in
    batch     (n,)    number of the batch that the label belongs to; None: all are one batch
    ========= ======= ===========================================================================
    """

    labels: CrowdLabels
    gold: Ints
    tasks: tuple[str, ...] = ()
    workers: tuple[str, ...] = ()
    started: Floats | None = None
    submitted: Floats | None = None
    batch: Ints | None = None

    def __post_init__(self) -> None:
        n, K = len(self.labels.task), self.labels.tasks
        if n == 0:
            raise InputError("no label is recorded.", "Give at least one label.")
        if len(self.gold) != K:
            raise InputError(
                f"gold has {len(self.gold)} entries for {K} tasks.", "Give one for each task, -1: unknown."
            )
        for name, column in (("started", self.started), ("submitted", self.submitted), ("batch", self.batch)):
            if column is not None and len(column) != n:
                raise InputError(f"{name} has {len(column)} entries for {n} labels.", "Give one for each label.")
        if self.labels.answers < 2:
            raise InputError("every label says the same.", "There is nothing to decide: give labels that differ.")
        pairs = self.labels.task * self.labels.workers + self.labels.worker
        if len(np.unique(pairs)) < n:
            raise InputError(
                "a worker has labelled a task more than once.", "Keep the first label of each worker on each task."
            )

    @classmethod
    def from_table(cls, table: LabelTable, gold: Ints | None = None) -> CrowdRecord:
        """The labels of a table, its times if it has them; a label without a worker is that of a stranger."""
        if table.worker is None:
            raise InputError(
                "the labels have no column of workers.",
                "Name it with --worker-column, or replay without workers: --policy index.",
            )
        worker = table.worker.copy()
        nobody = np.flatnonzero(worker < 0)
        worker[nobody] = len(table.workers) + np.arange(len(nobody))
        names = table.workers + tuple(f"(blank {k + 1})" for k in range(len(nobody)))
        labels = CrowdLabels(table.task, worker, table.label, len(table.tasks), len(names), len(table.labels))
        known = np.full(len(table.tasks), -1, dtype=np.int64) if gold is None else np.asarray(gold, dtype=np.int64)
        return cls(labels, known, table.tasks, names, table.assigned_at, table.submitted_at, table.batch)

    def __len__(self) -> int:
        return len(self.labels.task)

    @property
    def counts(self) -> Ints:
        """(K,) labels of each task."""
        return np.bincount(self.labels.task, minlength=self.labels.tasks).astype(np.int64)

    def rows_by_task(self) -> Ints:
        """(K, most) the labels of each task in the order of the file, -1 past the last."""
        counts = self.counts
        out = np.full((len(counts), int(counts.max())), -1, dtype=np.int64)
        order = np.argsort(self.labels.task, kind="stable")
        place = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
        out[self.labels.task[order], place] = order
        return out
