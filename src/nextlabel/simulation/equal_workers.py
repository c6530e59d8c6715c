"""Which recorded labels a policy for equal workers takes, task first and with labels that come in at once.

The draws are those of ``simulation.replay``: what the policy decides there is how many labels each task gets, and these
are the first of the task's drawn order. So its labels can be read out with the workers who gave them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from nextlabel.crowd.fit import CrowdLabels
from nextlabel.errors import InputError
from nextlabel.kernels.recorded import RANDOM, draw_recorded
from nextlabel.policies.base import Setting
from nextlabel.policies.registry import make_policy
from nextlabel.problem.problem import Problem, TaskClass
from nextlabel.simulation.crowd_record import CrowdRecord
from nextlabel.simulation.replay import Recorded, ReplaySetup, budget_sweeps

#: Labels that one task can be given, and of them in flight when labels come in at once.
MOST_A_TASK, AT_ONCE = 32, 3
#: Of ten million arrivals one finds the last label not in.
ARRIVALS, AT_ONCE_RATE = 1.0, 1e7


def labels_by_equal_workers(
    record: CrowdRecord, policy: str, budgets: Sequence[int], seed: int, replication: int
) -> Iterator[tuple[int, CrowdLabels, int]]:
    """(budget, labels given, 0) for the rising ``budgets``; Beta(1, 1) and the threshold 1/2."""
    labels = record.labels
    if labels.answers != 2:
        raise InputError(
            f"policy {policy!r} is for two answers, and the labels have {labels.answers}.",
            "Use crowd, crowd-uncertainty or uniform.",
        )
    place, counts = record.rows_by_task(), record.counts
    answers = np.where(place >= 0, labels.answer[np.maximum(place, 0)], -1)
    names = tuple(str(x) for x in range(labels.tasks))
    setup = ReplaySetup(
        Recorded(names, answers, counts, record.gold), arrival_rate=ARRIVALS, completion_rate=AT_ONCE_RATE, seed=seed
    )
    depth = min(MOST_A_TASK, int(counts.max()))
    kinds, many = np.unique(np.minimum(counts, depth), return_counts=True)
    classes = tuple(TaskClass(int(c), setup.prior, setup.threshold) for c in many)
    settings = [Setting.of(Problem(classes, b, ARRIVALS, AT_ONCE_RATE), depth, AT_ONCE) for b in budgets]
    rows, order = np.zeros(labels.tasks, dtype=np.int64), np.zeros_like(place)
    draw_recorded(place, counts, seed, replication, RANDOM, rows, order)
    by_task = np.empty_like(order)
    by_task[rows] = order
    nodes = (depth + 1) * (depth + 2) // 2
    for sweep in budget_sweeps(make_policy(policy), settings, setup, kinds, labels.tasks):
        ends = sweep.ends(nodes, True, seed, replication, 1)
        for k, budget in enumerate(sweep.budgets):
            taken = by_task[np.arange(place.shape[1])[None, :] < ends.taken[0, k][:, None]]
            given = CrowdLabels(
                labels.task[taken], labels.worker[taken], labels.answer[taken], labels.tasks, labels.workers, 2
            )
            yield budget, given, 0
