"""Recorded labels replayed with the workers who gave them: a stretch of a campaign between two refits.

======== ============ ==============================================================================
code     shape        meaning
======== ============ ==============================================================================
task     (n,)         task of each recorded label, as the campaign numbers it
worker   (n,)         who gave it
answer   (n,)         what they said
order    (K, most)    recorded labels of each task in the order in which they come in, -1 past the last
arrivals (n,)         recorded labels in the order in which their workers arrive (whoever gets which task)
own      (n,)         recorded labels of each worker: those of worker j are own[start[j]:start[j + 1]]
used     (n,)         1 for a recorded label that was given
======== ============ ==============================================================================

*Task first*: the policy names a task, and the next recorded label of that task comes in with its worker. *Worker
first*: a worker arrives; the policy picks one of the tasks that this worker labelled in the record and has not been
given yet, or turns the worker away; the answer is the recorded one. Either way a label comes in at once and a recorded
label is used at most once. Guarantee: deterministic. Cost: that of the decisions (``kernels.crowd_choice``); worker
first also looks at the recorded labels of the worker.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nextlabel.arrays import Ints
from nextlabel.kernels.crowd_bins import take
from nextlabel.kernels.crowd_campaign import CrowdCampaign, assign, come_in, next_among, next_for_anyone, task_bin
from nextlabel.kernels.crowd_choice import CrowdPlan, rebin
from nextlabel.kernels.jit import jit
from nextlabel.kernels.random import ARRIVAL, stream_key, uniform


class RecordedCrowd(NamedTuple):
    """Recorded labels, by task and by worker."""

    task: Ints
    worker: Ints
    answer: Ints
    order: Ints
    own: Ints
    start: Ints
    used: Ints


@jit
def draw_arrivals(labels: int, seed: int, replication: int) -> Ints:
    """The recorded labels in the random order in which their workers arrive."""
    key = stream_key(seed, replication, ARRIVAL)
    draws = np.empty(labels)
    for i in range(labels):
        draws[i] = uniform(key, i, 0)
    return np.argsort(draws)


@jit
def rebin_all(campaign: CrowdCampaign, plan: CrowdPlan) -> None:
    """After a refit: every open task goes to the bin of its new belief and keeps its plan."""
    for x in range(campaign.given.shape[0]):
        if campaign.bins.bin[x] >= 0:
            rebin(campaign.bins, plan, x, task_bin(campaign, plan.grid, x))


@jit
def play_tasks(campaign: CrowdCampaign, plan: CrowdPlan, record: RecordedCrowd, until: int) -> bool:
    """Task first, until ``until`` labels were given in all; False if no task has a label left."""
    most = record.order.shape[1]
    plans = plan.wants.shape[0]
    while campaign.history.size[0] < until:
        x = next_for_anyone(campaign, plan)
        if x < 0:
            return False
        row = record.order[x, campaign.given[x]]
        record.used[row] = 1
        entry = assign(campaign, plan, x, record.worker[row])
        come_in(campaign, plan, entry, record.answer[row])
        n = campaign.given[x]
        if n == most or record.order[x, n] < 0:
            take(campaign.bins, x, plans)
    return True


@jit
def eligible_rows(record: RecordedCrowd, worker: int, tasks: Ints, rows: Ints) -> int:
    """The recorded labels of the worker that were not given yet, and their tasks; return how many there are."""
    size = 0
    for k in range(record.start[worker], record.start[worker + 1]):
        row = record.own[k]
        if record.used[row] == 0:
            tasks[size], rows[size] = record.task[row], row
            size += 1
    return size


@jit
def play_arrivals(
    campaign: CrowdCampaign, plan: CrowdPlan, record: RecordedCrowd, arrivals: Ints, at: int, until: int, budget: int,
    turn_away: bool,
) -> int:  # fmt: skip
    """Worker first, from arrival ``at`` on, until ``until`` labels were given; return the next arrival.

    Nobody is turned away once as few arrivals as labels of the budget are left.
    """
    n = arrivals.shape[0]
    most = 0
    for j in range(record.start.shape[0] - 1):
        most = max(most, record.start[j + 1] - record.start[j])
    tasks, rows = np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int64)
    while at < n and campaign.history.size[0] < until:
        worker = record.worker[arrivals[at]]
        must = not turn_away or n - at <= budget - campaign.history.size[0]
        campaign.arrived[worker] += 1
        at += 1
        size = eligible_rows(record, worker, tasks, rows)
        x = next_among(campaign, plan, worker, must, tasks, size)
        if x < 0:
            continue
        for k in range(size):
            if tasks[k] == x:
                record.used[rows[k]] = 1
                entry = assign(campaign, plan, x, worker)
                come_in(campaign, plan, entry, record.answer[rows[k]])
                break
    return at
