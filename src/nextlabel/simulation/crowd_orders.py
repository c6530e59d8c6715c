"""One campaign on recorded labels in random order: the policy's decisions between two refits are one kernel call.

The tasks are numbered in random order, so that nothing depends on their order in the file; draws are keyed by (seed,
replication). Guarantee: deterministic; a recorded label is used at most once; the budget is spent to the last label
unless the record runs out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from nextlabel.arrays import Ints
from nextlabel.crowd.fit import CrowdLabels
from nextlabel.kernels.crowd_replay import RecordedCrowd, draw_arrivals, play_arrivals, play_tasks, rebin_all
from nextlabel.kernels.recorded import RANDOM, draw_recorded
from nextlabel.policies.crowd.allocator import CrowdAllocator, CrowdSettings
from nextlabel.simulation.crowd_record import CrowdRecord

if TYPE_CHECKING:
    from nextlabel.simulation.crowd_replay import CrowdReplaySetup

#: Labels per task after which everything is fitted anew.
REFIT_SHARE = 0.03
#: How many times the relaxation is solved again while the budget is spent; refits in between move the beliefs.
RESOLVES = 10


def play_orders(
    setup: CrowdReplaySetup, rule: str, budgets: Sequence[int], replication: int
) -> Iterator[tuple[int, CrowdLabels, int]]:
    """(budget, labels given, arrivals turned away) for the rising ``budgets`` of one campaign."""
    record, labels = setup.record, setup.record.labels
    K, C = labels.tasks, labels.answers
    task_first = setup.replay == "task-first"
    rows, drawn = draw_record(record, setup.seed, replication)
    arrivals = draw_arrivals(len(record), setup.seed, replication)
    settings = CrowdSettings(rule, setup.turn_away, task_first, resolves=RESOLVES, seed=setup.seed)
    policy = CrowdAllocator(
        np.full((K, C), 1.0 / C), budgets[-1], settings,
        workers=labels.workers, prior=setup.prior, arrivals=len(record), replication=replication,
    )  # fmt: skip
    campaign = policy.campaign
    step = max(1, int(REFIT_SHARE * K))
    at, next_fit, next_solve, more = 0, step, 0, True
    for budget in budgets:
        while more and policy.given < budget:
            until = min(budget, next_fit)
            if task_first:
                more = play_tasks(campaign, policy.plan, drawn, until)
            else:
                at = play_arrivals(campaign, policy.plan, drawn, arrivals, at, until, budgets[-1], setup.turn_away)
                policy.arrivals = float(len(arrivals) - at)
                more = at < len(arrivals)
            policy.given = int(campaign.history.size[0])
            if policy.given >= next_fit:
                next_fit = policy.given + step
                policy.refit()
                # Task first everybody is the same mixture of workers: the plan moves slowly, and ten are enough.
                if policy.due and (not task_first or policy.given >= next_solve):
                    policy.resolve()
                    next_solve = policy.given + budgets[-1] // RESOLVES
                else:
                    rebin_all(campaign, policy.plan)
        n, history = policy.given, campaign.history
        given = CrowdLabels(
            rows[history.task[:n]], history.worker[:n].copy(), history.answer[:n].copy(), K, labels.workers, C
        )
        yield budget, given, 0 if task_first else at - n


def draw_record(record: CrowdRecord, seed: int, replication: int) -> tuple[Ints, RecordedCrowd]:
    """The tasks in random order, and the record with tasks numbered by it and each task's labels in random order."""
    labels, K = record.labels, record.labels.tasks
    place = record.rows_by_task()
    rows, order = np.zeros(K, dtype=np.int64), np.zeros_like(place)
    draw_recorded(place, record.counts, seed, replication, RANDOM, rows, order)
    rank = np.empty(K, dtype=np.int64)
    rank[rows] = np.arange(K)
    own = np.argsort(labels.worker, kind="stable")
    start = np.searchsorted(labels.worker[own], np.arange(labels.workers + 1)).astype(np.int64)
    used = np.zeros(len(record), dtype=np.int64)
    return rows, RecordedCrowd(rank[labels.task], labels.worker, labels.answer, order, own, start, used)
