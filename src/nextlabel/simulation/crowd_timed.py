"""Recorded labels replayed with their own times: who came when, how long each label took, and which tasks were open.

========= =====================================================================================================
arrival   each recorded label is one: its worker asks at the moment at which they began it
eligible  tasks of the arrival's batch that this worker labelled in it and has not been given yet
answer    the recorded one; it comes in as long after the arrival as the recorded label took
batch     a batch has its own tasks, its share of the budget and its own prices; workers are learnt across batches
========= =====================================================================================================

The budget is shared out among the batches by their numbers of tasks. A policy knows how many arrivals a batch still
has, but not whose. Without turning workers away every arrival is served until the batch's budget is gone. Batches may
overlap in time; labels in flight are integrated out (``kernels.crowd_choice``).
Guarantee: deterministic, no chance at all; no answer is used before it was handed in. Cost: one look at a worker's
labels in the batch per arrival, and a refit after every ``REFIT_SHARE`` labels per task of a batch.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import TYPE_CHECKING

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.crowd.fit import CrowdLabels
from nextlabel.errors import InputError
from nextlabel.kernels.crowd_bins import new_bins, put
from nextlabel.kernels.crowd_replay import rebin_all
from nextlabel.policies.crowd.allocator import CrowdAllocator, CrowdSettings
from nextlabel.policies.crowd.solver import MOST_PLANS
from nextlabel.simulation.crowd_record import CrowdRecord

if TYPE_CHECKING:
    from nextlabel.simulation.crowd_replay import CrowdReplaySetup

#: Labels per task of a batch after which everything is fitted anew.
REFIT_SHARE = 0.1
#: How many times the relaxation of a batch is solved again while its budget is spent.
RESOLVES = 10


@dataclass(frozen=True, slots=True, eq=False)
class Schedule:
    """Arrivals of a record by their times: rows of the record, the batch of each row, and each batch's budget."""

    arrivals: Ints
    batch: Ints
    seconds: Floats
    budgets: Ints

    @classmethod
    def of(cls, record: CrowdRecord, budget: int) -> Schedule:
        """From the record's own times; ``budget`` is shared out by the batches' tasks."""
        if record.started is None or record.submitted is None:
            raise InputError(
                "the labels have no times at which they were begun and handed in.",
                "Name the columns with --assigned-column and --submitted-column, or replay worker-first.",
            )
        seconds = record.submitted - record.started
        unknown = int(np.count_nonzero(~np.isfinite(seconds) | (seconds < 0)))
        if unknown:
            raise InputError(
                f"{unknown:,} of {len(record):,} labels lack a time or were handed in before they were begun.",
                "Leave these labels out, or replay worker-first.",
            )
        batch = np.zeros(len(record), dtype=np.int64)
        if record.batch is not None:
            batch = np.unique(record.batch, return_inverse=True)[1].astype(np.int64)
        pairs = np.unique(np.stack([batch, record.labels.task], axis=1), axis=0)
        tasks = np.bincount(pairs[:, 0])
        order = np.argsort(record.started, kind="stable").astype(np.int64)
        return cls(order, batch, seconds, shared_out(budget, tasks, np.bincount(batch)))


def shared_out(budget: int, tasks: Ints, most: Ints) -> Ints:
    """Whole numbers in proportion to ``tasks``, at most ``most`` each, that sum to ``budget``."""
    out = np.zeros(len(tasks), dtype=np.int64)
    while out.sum() < budget:
        open_ = out < most
        exact = (budget - out.sum()) * tasks * open_ / (tasks * open_).sum()
        more = np.floor(exact).astype(np.int64)
        left = int(budget - out.sum() - more.sum())
        more[np.argsort(-(exact - more), kind="stable")[:left]] += 1
        out = np.minimum(out + more * open_, most)
    return out


class TimedCampaign:
    """One policy over all batches: each has a view of its own on the same workers, labels and beliefs."""

    def __init__(self, setup: CrowdReplaySetup, rule: str, budget: int) -> None:
        self.record, self.setup = setup.record, setup
        self.schedule = Schedule.of(setup.record, budget)
        labels = setup.record.labels
        settings = CrowdSettings(rule, setup.turn_away, resolves=RESOLVES, seed=setup.seed)
        self.whole = CrowdAllocator(
            np.full((labels.tasks, labels.answers), 1.0 / labels.answers), budget, settings,
            workers=labels.workers, prior=setup.prior, arrivals=len(setup.record),
        )  # fmt: skip
        self.rows: dict[tuple[int, int], list[int]] = defaultdict(list)
        for row, (worker, batch) in enumerate(zip(labels.worker.tolist(), self.schedule.batch.tolist(), strict=True)):
            self.rows[worker, batch].append(row)
        self.views: dict[int, CrowdAllocator] = {}
        self.pending: list[tuple[float, int, int, int]] = []
        self.step, self.next_fit = 1, 1
        self.turned_away = 0

    def play(self) -> None:
        """All arrivals, and then all labels in flight."""
        started, worker = self.record.started, self.record.labels.worker
        assert started is not None
        left = np.bincount(self.schedule.batch)
        for row in self.schedule.arrivals.tolist():
            now, batch = float(started[row]), int(self.schedule.batch[row])
            self._come_in(now)
            view = self.views.get(batch)
            if view is None:
                view = self.views[batch] = self._open(batch)
            self._arrive(view, batch, int(worker[row]), now)
            left[batch] -= 1
            if left[batch] == 0:
                del self.views[batch]
        self._come_in(np.inf)

    def labels(self) -> CrowdLabels:
        """The labels given, in the order in which their workers were given the tasks."""
        history, labels = self.whole.campaign.history, self.record.labels
        n = int(history.size[0])
        return CrowdLabels(
            history.task[:n].copy(), history.worker[:n].copy(), history.answer[:n].copy(),
            labels.tasks, labels.workers, labels.answers,
        )  # fmt: skip

    def _open(self, batch: int) -> CrowdAllocator:
        view, rows = copy(self.whole), np.flatnonzero(self.schedule.batch == batch)
        tasks = np.unique(self.record.labels.task[rows])
        bins = new_bins(self.record.labels.tasks, len(self.whole.campaign.bins.head))
        for x in tasks:
            put(bins, x, 0, 0, MOST_PLANS)
        view.campaign = self.whole.campaign._replace(bins=bins, kind=np.zeros_like(self.whole.campaign.kind))
        view.budget, view.given = int(self.schedule.budgets[batch]), 0
        view.arrivals = float(len(rows))
        self.step = max(1, int(REFIT_SHARE * len(tasks)))
        view.resolve()
        return view

    def _arrive(self, view: CrowdAllocator, batch: int, worker: int, now: float) -> None:
        if view.given >= view.budget:
            return
        rows = self.rows[worker, batch]
        tasks = self.record.labels.task[rows]
        x = view.ask(worker, tasks)
        view.arrived(worker)
        if x is None:
            self.turned_away += 1
            return
        row = rows.pop(int(np.flatnonzero(tasks == x)[0]))
        entry = view.assign(x, worker)
        heappush(self.pending, (now + float(self.schedule.seconds[row]), entry, row, batch))

    def _come_in(self, now: float) -> None:
        while self.pending and self.pending[0][0] <= now:
            _, entry, row, batch = heappop(self.pending)
            view = self.views.get(batch, self.whole)
            view.tell(entry, int(self.record.labels.answer[row]))
            self.next_fit -= 1
            if self.next_fit <= 0:
                self.next_fit = self.step
                view.refit()
                for other in self.views.values():
                    if other.due:
                        other.resolve()
                    else:
                        rebin_all(other.campaign, other.plan)


def play_timed(setup: CrowdReplaySetup, rule: str, budget: int) -> Iterator[tuple[int, CrowdLabels, int]]:
    """(budget, labels given, arrivals turned away) of the one campaign that there is."""
    campaign = TimedCampaign(setup, rule, budget)
    campaign.play()
    yield budget, campaign.labels(), campaign.turned_away
