"""Tables of labels as the replay wants them: one row per task."""

from __future__ import annotations

import numpy as np

from nextlabel.errors import InputError, TooLargeError
from nextlabel.files.gold import Gold
from nextlabel.files.labels import LabelTable
from nextlabel.prose import listed
from nextlabel.simulation.replay import Recorded

#: Cells of the replay's table, one for each task and label of the task with most labels.
MOST_CELLS = 500_000_000


def to_recorded(
    table: LabelTable, gold: Gold | None = None, *, by_time: bool = False, any_answers: bool = False
) -> Recorded:
    """Labels of each task in the order of the file, or of their submission, with the truth where it is known.

    Most rules count two answers; ``any_answers`` takes more.
    """
    if len(table.labels) != 2 and not any_answers:
        raise InputError(
            f"the labels are {listed(list(table.labels))}; a replay has two.",
            "Name the one that counts as 1 with --positive.",
        )
    if by_time and (table.submitted_at is None or not np.isfinite(table.submitted_at).all()):
        raise InputError("not every label has a time of submission.", "Replay them in the order of the file.")
    counts = table.per_task
    N, most = len(table.tasks), int(counts.max())
    if N * most > MOST_CELLS:
        raise TooLargeError(
            f"a task has {most:,} labels, and a table of {N:,} tasks with as many does not fit.",
            "Leave that task out.",
        )
    last = (table.submitted_at,) if by_time and table.submitted_at is not None else ()
    order = np.lexsort((*last, table.task))
    task = table.task[order]
    place = task, np.arange(len(task)) - np.repeat(np.cumsum(counts) - counts, counts)
    padded, workers = np.full((N, most), -1, dtype=np.int64), None
    padded[place] = table.label[order]
    if table.worker is not None and table.workers:  # a label without a worker gets one of its own
        workers = np.full((N, most), -1, dtype=np.int64)
        workers[place] = np.where(table.worker >= 0, table.worker, np.arange(len(table)) + len(table.workers))[order]
    truth = np.full(N, -1, dtype=np.int64) if gold is None else gold.label
    return Recorded(
        tasks=table.tasks, labels=padded, counts=counts, gold=truth, workers=workers, answers=len(table.labels)
    )
