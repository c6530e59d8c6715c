"""A campaign summed up: its tasks by state.

=============== ===================================================================================
field           meaning
=============== ===================================================================================
accuracy        expected share of tasks whose most likely label is right, if the campaign stopped here
by_labels       tasks with 0, 1, 2, ... labels
by_probability  tasks with a label, in ``BINS`` bins of the probability of the second of two labels, else of the best
hardest         tasks with a label, by number, whose two likeliest labels are closest, closest first
low, high       95% interval of the accuracy, where workers were learnt
=============== ===================================================================================

Cost: some milliseconds for 10,000 tasks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.crowd.answers import Answer

#: Bins of the probabilities; hard tasks.
BINS, HARD_TASKS = 20, 200


@dataclass(frozen=True, slots=True)
class StateSummary:
    """The tasks of one campaign at one time."""

    tasks: int
    labelled: int
    accuracy: float
    by_labels: tuple[int, ...]
    by_probability: tuple[int, ...]
    hardest: tuple[int, ...]
    low: float | None = None
    high: float | None = None


def summarise(answers: Answer, tasks: Ints, labels: Ints, beliefs: Floats) -> StateSummary | None:
    """Tasks by number, with how many labels each has and what is believed of it; None without any."""
    if not len(tasks):
        return None
    told, best, margin = np.flatnonzero(labels > 0), answers.certainty(beliefs), np.round(answers.margin(beliefs), 12)
    bins = np.minimum(((beliefs[:, 1] if len(answers.labels) == 2 else best) * BINS).astype(np.int64), BINS - 1)
    return StateSummary(
        tasks=len(tasks),
        labelled=len(told),
        accuracy=float(best.mean()),
        by_labels=tuple(np.bincount(labels).tolist()),
        by_probability=tuple(np.bincount(bins[told], minlength=BINS).tolist()),
        hardest=tuple(tasks[told[np.argsort(margin[told], kind="stable")[:HARD_TASKS]]].tolist()),
    )
