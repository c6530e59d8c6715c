"""What a campaign with the policy ``crowd`` has learnt of its workers and tasks: a function of its log alone.

    refitted      all is learnt anew from the labels before it, and a new plan is made (``policies.crowd.growing``)
    other events  move the belief of one task and what is known of one worker

A ``refitted`` event says by its version which plan later leases were chosen by, and all that enters beside the events
before it: tasks, labels given, labels left. So a process that has not seen the campaign before reads the log once and
computes only the last refit and what follows it; a process that has missed events of others reads those.
Cost: an event some microseconds; a refit 0.05 to 1 s; a start about 20 us per event.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.beliefs.beta import Beta
from nextlabel.beliefs.dirichlet import Dirichlet
from nextlabel.beliefs.prior import Prior
from nextlabel.campaign.events import Event
from nextlabel.campaign.ids import lease_number
from nextlabel.campaign.ledger import Ledger
from nextlabel.campaign.rows import CampaignRow
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.policies.crowd.growing import LEAST, GrowingCrowd

#: Events that are read at once.
CHUNK = 2000
#: A refit comes after ``FEWEST`` labels more, or after these shares of the labels given and of the tasks, but after
#: this share of the budget at the latest and ``LEAST_STEP`` labels at the earliest. New tasks wait for it unless they
#: are more than that share of the tasks.
FEWEST, OF_GIVEN, OF_TASKS, OF_BUDGET, LEAST_STEP = 10, 1 / 5, 1 / 500, 1 / 40, 4


@dataclass(frozen=True, slots=True, eq=False)
class CrowdSnapshot:
    """What was believed after event ``seq``.

    ======== ========== ===================================================================================
    code     shape      meaning
    ======== ========== ===================================================================================
    beliefs  (K, C)     probability of each truth of each task
    told     (K,)       labels of each task that count
    shares   (C,)       of a task without labels
    channels (W, C, C)  P(worker says y | truth c), in the order of ``workers``
    labels   (W,)       labels of theirs that count, ``agreeing`` of them with the likeliest truth
    ======== ========== ===================================================================================
    """

    seq: int
    version: int
    beliefs: Floats
    told: Ints
    shares: Floats
    workers: tuple[str, ...]
    channels: Floats
    labels: Ints
    agreeing: Ints

    @property
    def expected_accuracy(self) -> float:
        """Mean over the tasks of the probability of the likeliest truth: the model's own word."""
        return float(self.beliefs.max(axis=1).mean())

    @property
    def accuracies(self) -> Floats:
        """(W,) the chance that a label of each worker is right."""
        return np.asarray(np.einsum("c,wcc->w", self.shares, self.channels))


class CrowdModel:
    """Tasks and workers of one campaign as of event ``seq``, chosen by plan ``version`` since the last refit."""

    def __init__(self, config: CampaignSettings) -> None:
        self.crowd = GrowingCrowd(start_of(config.default_prior), config.policy, config.seed)
        self._usual = np.log(start_of(config.default_prior))
        self.workers: dict[str, int] = {}
        self.seq = self.version = 0
        self._due = self._labels = self._budget = 0
        self._skip = 0
        self._revised = False

    # Following the log ------------------------------------------------------------------------------------------

    def catch_up(self, ledger: Ledger) -> None:
        """Bring the model to the last event of the log."""
        if self.seq == 0:
            self._skip = ledger.last_event("refitted") or 0
            self.crowd.reserve_tasks(ledger.row.tasks)
        while self.seq < ledger.row.seq:
            events = ledger.log(self.seq, CHUNK)
            for event in events:
                self.apply(ledger, event)

    def apply(self, ledger: Ledger, event: Event) -> None:
        """The next event."""
        kind, data = event.kind, event.data
        if kind == "leased":
            self._leased(data)
        elif kind in ("labelled", "late"):
            if data["counted"]:
                self.crowd.label(lease_number(data["lease"]), data["label"])
            elif kind == "labelled":
                self.crowd.give_up(lease_number(data["lease"]))
        elif kind in ("expired", "released"):
            self.crowd.give_up(lease_number(data["lease"]))
        elif kind == "undone":
            self.crowd.take_back(lease_number(data["lease"]))
        elif kind == "predicted":
            self._predicted(data)
        elif kind == "refitted" and event.seq >= self._skip and data["version"] > self.version:
            self._refit(ledger, data)
        self.seq = event.seq

    def _leased(self, data: dict[str, Any]) -> None:
        name = data["worker"]
        if name not in self.workers:
            self.workers[name] = self.crowd.add_worker()
        self.crowd.lease(data["task"], self.workers[name])

    def _predicted(self, data: dict[str, Any]) -> None:
        """A model's labels: the next task is chosen by what is learnt with them."""
        name = data["worker"]
        if name not in self.workers:
            self.workers[name] = self.crowd.add_worker(comes=False)
        self.crowd.reserve_tasks(max(data["tasks"]) + 1)
        for task, label in zip(data["tasks"], data["labels"], strict=True):
            self.crowd.predict(task, self.workers[name], label)
        self._revised = True

    # Refitting --------------------------------------------------------------------------------------------------

    def is_due(self, row: CampaignRow) -> bool:
        """Whether the next task should be chosen by a new plan."""
        new = row.tasks - self.crowd.tasks
        return (
            self.version == 0
            or self._revised
            or row.spent + row.reserved >= self._due
            or row.budget != self._budget
            or new > OF_TASKS * self.crowd.tasks
        )

    def has_news(self, row: CampaignRow) -> bool:
        """Whether labels have come in, or tasks been added, since the last refit."""
        return self.version == 0 or self._revised or row.spent != self._labels or row.tasks != self.crowd.tasks

    def refit(self, ledger: Ledger, left: int) -> dict[str, Any]:
        """Learn anew with ``left`` labels to come; returns the data of the event that must be recorded next."""
        row = ledger.row
        given = row.spent + row.reserved
        step = min(row.budget * OF_BUDGET, max(FEWEST, given * OF_GIVEN, row.tasks * OF_TASKS))
        data = {
            "version": self.version + 1, "labels": row.spent, "tasks": row.tasks, "given": given, "left": left,
            "budget": row.budget, "next": given + max(LEAST_STEP, int(step)),
        }  # fmt: skip
        self._refit(ledger, data)
        return {**data, "workers": len(self.workers), "shares": [round(float(p), 6) for p in self.crowd.start]}

    def _refit(self, ledger: Ledger, data: dict[str, Any]) -> None:
        crowd = self.crowd
        if data["tasks"] > crowd.tasks:
            classes = np.asarray(ledger.task_classes(crowd.tasks, data["tasks"]), dtype=np.int64)
            labels, flight = _limits(ledger.row, crowd.tasks, data["tasks"])
            crowd.add_tasks(self._tilts(ledger.classes())[classes], labels, flight)
        crowd.learn(data["version"], data["given"], data["left"])
        self.version, self._due, self._budget = data["version"], data["next"], data["budget"]
        self._labels, self._revised = data["labels"], False

    def _tilts(self, classes: Sequence[Prior]) -> Floats:
        """(classes, C) log beliefs of tasks of each class, less those of a usual task."""
        return np.stack([np.log(start_of(prior)) - self._usual for prior in classes])

    # What is asked ----------------------------------------------------------------------------------------------

    def choose(self, worker: str) -> int | None:
        """The number of the task for a worker, None if there is none that they have not held."""
        return self.crowd.choose(self.workers.get(worker, -1))

    def snapshot(self, ledger: Ledger) -> CrowdSnapshot:
        """All that is believed now, as a copy."""
        crowd, tasks, people = self.crowd, ledger.row.tasks, len(self.workers)
        beliefs = np.empty((tasks, len(self._usual)))
        beliefs[: crowd.tasks] = crowd.beliefs[: crowd.tasks]
        if tasks > crowd.tasks:  # without labels until the next refit
            classes = np.asarray(ledger.task_classes(crowd.tasks, tasks), dtype=np.int64)
            odds = crowd.start * np.exp(self._tilts(ledger.classes()))
            beliefs[crowd.tasks :] = (odds / odds.sum(axis=1, keepdims=True))[classes]
        history = crowd.campaign.history
        told = np.flatnonzero(history.answer[: crowd.entries] >= 0)
        worker, agree = history.worker[told], history.answer[told] == beliefs.argmax(axis=1)[history.task[told]]
        return CrowdSnapshot(
            seq=self.seq,
            version=self.version,
            beliefs=beliefs,
            told=_padded(crowd.came[: crowd.tasks], tasks),
            shares=crowd.start.copy(),
            workers=tuple(self.workers),
            channels=crowd.channels[:people].copy(),
            labels=np.bincount(worker, minlength=people)[:people],
            agreeing=np.bincount(worker, agree, minlength=people)[:people].astype(np.int64),
        )


@lru_cache(maxsize=16_384)
def start_of(prior: Prior) -> Floats:
    """(C,) the probability of each truth of a task with that prior, before any label.

    Weights of answers (``Beta``, ``Dirichlet``) are read as shares of the truths: what a model's score says.
    """
    found: Floats
    if isinstance(prior, Beta):
        found = np.array([prior.beta, prior.alpha])
    elif isinstance(prior, Dirichlet):
        found = np.array(prior.weights)
    else:
        found = np.asarray(prior.believe(0.5, 1)[1][0])
    found = np.maximum(found / found.sum(), LEAST)
    found = found / found.sum()
    found.setflags(write=False)
    return found


def _padded(counts: Ints, size: int) -> Ints:
    return np.concatenate([counts, np.zeros(size - len(counts), dtype=np.int64)])


def _limits(row: CampaignRow, first: int, end: int) -> tuple[Ints, Ints]:
    """Most labels, and most labels in flight, of the tasks from ``first`` to before ``end``."""
    limits = row.rules.limits
    place = np.searchsorted([one.first for one in limits], np.arange(first, end), side="right") - 1
    return (
        np.array([one.most_labels for one in limits], dtype=np.int64)[place],
        np.array([one.most_in_flight for one in limits], dtype=np.int64)[place],
    )
