"""Labels with the workers who gave them, as numbers, in the order in which they came in."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nextlabel.arrays import Ints
from nextlabel.errors import InputError
from nextlabel.files.label_table import LabelTable
from nextlabel.prose import counted


class CrowdLabels(NamedTuple):
    """``task``, ``worker`` and ``answer`` (n,) of each label, numbered from 0; how many of each there are."""

    task: Ints
    worker: Ints
    answer: Ints
    tasks: int
    workers: int
    answers: int


def crowd_labels(table: LabelTable) -> CrowdLabels:
    """The labels of a table that names the workers; a label without a worker counts as that of one more worker.

    Refused are tables without workers, and tables in which every answer is the same.
    """
    if table.worker is None or not table.workers:
        why = "there is no column of workers" if table.worker is None else "the column of workers is empty"
        raise InputError(
            f"the labels do not say who gave them: {why}.", "Give a column 'worker', or name it (--worker-column)."
        )
    said = np.unique(table.label)
    if len(said) < 2:
        raise InputError(
            f"all of the {counted(len(table), 'label')} are {table.labels[int(said[0])]}, which tells nobody apart.",
            "Give labels with two different answers or more.",
        )
    blank = table.worker < 0
    worker = np.where(blank, len(table.workers) + np.cumsum(blank) - 1, table.worker)
    workers = len(table.workers) + int(blank.sum())
    return CrowdLabels(table.task, worker, table.label, len(table.tasks), workers, len(table.labels))
