"""The policy ``crowd`` where tasks and workers keep coming: what a live campaign decides by.

The allocator of simulations knows its tasks, workers and budget from the start. Here all of them grow, in arrays that
double. Every step but ``learn`` moves what its task and its worker are believed to be; ``learn`` computes everything
anew from what was given out and came in, so that its outcome is a function of that alone:

    state after ``learn``  =  f(entries with their answers, tasks, limits, version, labels given and left, arrivals,
                              who was turned away, seed)

Nothing of what was believed or planned before enters. Whoever knows the entries can compute the state again, and
before the first ``learn`` (``planned`` is False) nothing but the entries is kept. There is always a row beyond the
last task and one beyond the last worker, which stand for those of whom nothing is known.
Cost: a step some microseconds; ``learn`` 0.05 to 1 s.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.crowd.prior import TASKS, CrowdPrior
from nextlabel.kernels.crowd_bins import GONE, IN_FLIGHT
from nextlabel.kernels.crowd_campaign import (
    CrowdCampaign,
    give_up,
    label_in,
    lease_out,
    next_task,
    open_tasks,
    place_task,
    take_back,
)
from nextlabel.kernels.crowd_choice import plan_start
from nextlabel.policies.allocation import Outlook, Refusal
from nextlabel.policies.crowd.allocator import CrowdAllocator, CrowdSettings
from nextlabel.policies.crowd.relaxation import MOST_PLANS

A = TypeVar("A", Floats, Ints)


def doubled(room: int, wanted: int) -> int:
    """``room``, doubled until ``wanted`` rows fit."""
    while room < wanted:
        room *= 2
    return room


def longer(array: A, room: int, rest: object) -> A:
    """The array with ``room`` rows, the new ones filled with ``rest``."""
    out = np.empty((room, *array.shape[1:]), dtype=array.dtype)
    out[: len(array)] = array
    out[len(array) :] = rest
    return out


def with_more_tasks(campaign: CrowdCampaign, room: int) -> CrowdCampaign:
    """The campaign with so many rows for tasks."""
    state, bins, history = campaign.state, campaign.bins, campaign.history
    return campaign._replace(
        state=state._replace(
            logp=longer(state.logp, room, state.logp[-1]), belief=longer(state.belief, room, state.belief[-1])
        ),
        bins=bins._replace(
            bin=longer(bins.bin, room, -1),
            plan=longer(bins.plan, room, 0),
            after=longer(bins.after, room, -1),
            before=longer(bins.before, room, -1),
        ),
        history=history._replace(last=longer(history.last, room, -1)),
        given=longer(campaign.given, room, 0),
    )


def with_more_workers(campaign: CrowdCampaign, room: int) -> CrowdCampaign:
    """The campaign with so many rows for workers."""
    state = campaign.state
    return campaign._replace(
        state=state._replace(counts=longer(state.counts, room, 0.0)),
        channels=longer(campaign.channels, room, campaign.channels[-1]),
        kind=longer(campaign.kind, room, campaign.kind[-1]),
        arrived=longer(campaign.arrived, room, 0),
        worked=longer(campaign.worked, room, 0),
        named=longer(campaign.named, room, 1),
    )


def with_more_entries(campaign: CrowdCampaign, room: int) -> CrowdCampaign:
    """The campaign with so many rows for what was given out."""
    history = campaign.history
    return campaign._replace(
        history=history._replace(
            earlier=longer(history.earlier, room, -1),
            task=longer(history.task, room, 0),
            worker=longer(history.worker, room, 0),
            answer=longer(history.answer, room, IN_FLIGHT),
        )
    )


#: Rows of the arrays at first: tasks and entries, workers.
ROOM, WORKERS = 64, 8
#: Labels per worker after which workers are no strangers any more.
KNOWN_LABELS = 40
#: The least belief that a task may start with.
LEAST = 1e-6


class GrowingCrowd(CrowdAllocator):
    """Tasks, workers and what was given out, by number; ``share`` (C,) is what a task is believed to be at first.

    ``prior`` says what workers are like (that of any crowd, unless one is given); its shares are not looked at.
    """

    def __init__(self, share: Floats, rule: str = "crowd", seed: int = 0, prior: CrowdPrior | None = None) -> None:
        start = np.maximum(np.asarray(share, dtype=np.float64), LEAST)
        start = start / start.sum()
        usual = CrowdPrior.default(len(start)) if prior is None else prior
        self.tasks = self.people = self.entries = 0
        self.planned = False
        self._models: list[int] = []
        self._turned_away: list[float] = []
        super().__init__(
            np.tile(start, (ROOM, 1)),
            ROOM,
            CrowdSettings(rule=rule, seed=seed),
            workers=WORKERS,
            prior=CrowdPrior(usual.pseudo, TASKS * start, usual.hold, usual.core),
        )
        self._share = start
        self._tilt[:] = 0.0
        self.came, self.flight = np.zeros(ROOM, dtype=np.int64), np.zeros(ROOM, dtype=np.int64)
        self._most_labels, self._most_in_flight = np.zeros(ROOM, dtype=np.int64), np.zeros(ROOM, dtype=np.int64)
        open_tasks(self.campaign.bins, np.zeros(ROOM, dtype=np.int64), MOST_PLANS)

    # What grows -------------------------------------------------------------------------------------------------

    def add_tasks(self, tilt: Floats, most_labels: Ints, most_in_flight: Ints) -> None:
        """More tasks, which are given out from the next ``learn`` on.

        ``tilt`` (n, C) are their log beliefs less that of a usual task; the others are the limits of each.
        """
        first, self.tasks = self.tasks, self.tasks + len(tilt)
        self.reserve_tasks(self.tasks)
        self._tilt[first : self.tasks] = tilt
        self._most_labels[first : self.tasks] = most_labels
        self._most_in_flight[first : self.tasks] = most_in_flight

    def reserve_tasks(self, tasks: int) -> None:
        """Make room for so many tasks and one more."""
        room = doubled(len(self.gold), tasks + 1)
        if room == len(self.gold):
            return
        self.campaign = with_more_tasks(self.campaign, room)
        self.gold, self._tilt = longer(self.gold, room, -1), longer(self._tilt, room, 0.0)
        self.came, self.flight = longer(self.came, room, 0), longer(self.flight, room, 0)
        self._most_labels = longer(self._most_labels, room, 0)
        self._most_in_flight = longer(self._most_in_flight, room, 0)

    def add_worker(self, comes: bool = True) -> int:
        """One more worker; return their number. One who never ``comes`` for a task is a model."""
        number, self.people = self.people, self.people + 1
        self._turned_away.append(0.0)
        if not comes:
            self._models.append(number)
        room = doubled(len(self.cost), self.people + 1)
        if room > len(self.cost):
            self.campaign = with_more_workers(self.campaign, room)
            self.cost = longer(self.cost, room, 0.0)
        return number

    def know(self, task: int, answer: int) -> None:
        """The task's truth is known: it is given out no more by the plan, and tells about its workers."""
        self.reserve_tasks(task + 1)
        self.gold[task] = answer
        if self.planned:
            self._settle(task)
            place_task(self.campaign, self.plan, task, False)

    def _settle(self, task: int) -> None:
        state = self.campaign.state
        state.logp[task], state.belief[task] = self._start_of(task), 0.0
        state.belief[task, self.gold[task]] = 1.0

    def _start_of(self, task: int) -> Floats:
        """(C,) the task's log belief without labels."""
        if self.gold[task] < 0:
            return np.asarray(self.campaign.state.logp[-1] + self._tilt[task])
        return np.where(np.arange(len(self._share)) == self.gold[task], 0.0, -np.inf)

    # Steps ------------------------------------------------------------------------------------------------------

    def choose(self, worker: int, outlook: Outlook) -> int | Refusal:
        """The task for this worker, or why there is none; -1 is a worker nobody knows."""
        who = self.people if worker < 0 else worker
        x = int(next_task(self.campaign, self.plan, who, outlook.must_serve))
        if x >= 0:
            return x
        if not outlook.must_serve and int(next_task(self.campaign, self.plan, who, True)) >= 0:
            return "turned_away"
        return "nothing_left_for_you" if self.campaign.bins.members.any() else "all_leased"

    def turn_away(self, worker: int, visits: int) -> None:
        """The worker came and was given nothing; on their ``visits`` before they were.

        It counts as many arrivals as one of those: whoever is turned away would have stayed for more than one label.
        """
        self._turned_away[worker] += max(float(self.campaign.worked[worker]) / max(visits, 1), 1.0)

    def assign(self, lease: int, task: int, worker: int) -> None:  # type: ignore[override]
        """The worker has been given the task."""
        assert lease == self.entries, "entries are numbered in the order in which tasks are given out"
        k, self.entries = self.entries, self.entries + 1
        room = len(self.campaign.history.task)
        if self.entries > room:
            self.campaign = with_more_entries(self.campaign, doubled(room, self.entries))
        history = self.campaign.history
        self.flight[task] += 1
        if self.planned:
            lease_out(self.campaign, self.plan, task, worker, self._has_room(task))
            return
        history.task[k], history.worker[k] = task, worker
        history.earlier[k], history.last[task] = history.last[task], k
        history.size[0] = k + 1
        self._count(task, worker, 1)

    def hold(self, lease: int, task: int, worker: int) -> None:
        """The worker has had the task outside of the plan: it is not given to them again, and nothing is in flight."""
        planned = self.planned
        self.planned = planned and task < self.tasks  # a new task has its place from the next ``learn`` on
        self.reserve_tasks(task + 1)
        self.assign(lease, task, worker)
        self.cancel(lease)
        self.planned = planned

    def complete(self, entry: int, answer: int) -> None:
        """The label of that entry has come in and counts, perhaps after it was given up."""
        history = self.campaign.history
        task, gone = int(history.task[entry]), history.answer[entry] == GONE
        self.came[task] += 1
        self.flight[task] -= 0 if gone else 1
        if self.planned:
            label_in(self.campaign, self.plan, entry, answer, self._has_room(task))
            return
        if gone:
            self._count(task, int(history.worker[entry]), 1)
        history.answer[entry] = answer

    def predict(self, task: int, worker: int, answer: int) -> None:
        """The label of a model, which takes none of the places that the task has for labels."""
        entry, planned = self.entries, self.planned
        self.planned = planned and task < self.tasks  # a new task has its place from the next ``learn`` on
        self.assign(entry, task, worker)
        self.came[task] -= 1
        self.complete(entry, answer)
        self.planned = planned

    def withdraw_prediction(self, entry: int) -> None:
        """The label of a model does not count any more."""
        task = int(self.campaign.history.task[entry])
        planned, self.planned = self.planned, self.planned and task < self.tasks
        self.came[task] += 1
        self.reopen(entry)
        self.cancel(entry)
        self.planned = planned

    def restore_prediction(self, entry: int, answer: int) -> None:
        """It counts again."""
        task = int(self.campaign.history.task[entry])
        planned, self.planned = self.planned, self.planned and task < self.tasks
        self.came[task] -= 1
        self.complete(entry, answer)
        self.planned = planned

    def cancel(self, entry: int) -> None:
        """The work of that entry is not expected any more, or does not count."""
        history = self.campaign.history
        task = int(history.task[entry])
        self.flight[task] -= 1
        if self.planned:
            give_up(self.campaign, self.plan, entry, self._has_room(task))
            return
        history.answer[entry] = GONE
        self._count(task, int(history.worker[entry]), -1)

    def reopen(self, entry: int) -> None:
        """The worker takes the answer back and has the task again."""
        history = self.campaign.history
        task, gone = int(history.task[entry]), history.answer[entry] == GONE
        self.came[task] -= 0 if gone else 1
        self.flight[task] += 1
        if self.planned:
            take_back(self.campaign, self.plan, entry, self._start_of(task), self._has_room(task))
            return
        if gone:
            self._count(task, int(history.worker[entry]), 1)
        history.answer[entry] = IN_FLIGHT

    def _count(self, task: int, worker: int, change: int) -> None:
        self.campaign.given[task] += change
        self.campaign.worked[worker] += change

    def _has_room(self, task: int) -> bool:
        flight = self.flight[task]
        return bool(
            task < self.tasks
            and self.gold[task] < 0
            and flight < self._most_in_flight[task]
            and self.came[task] + flight < self._most_labels[task]
        )

    # Snapshots --------------------------------------------------------------------------------------------------

    def facts(self) -> dict[str, Any]:
        """What is known beside ``columns``."""
        return {
            "tasks": self.tasks, "people": self.people, "entries": self.entries, "models": self._models,
            "turned_away": self._turned_away,
        }  # fmt: skip

    def columns(self) -> dict[str, Ints | Floats]:
        """All that ``learn`` is a function of, by task, worker and entry."""
        campaign, history, n = self.campaign, self.campaign.history, self.entries
        return {
            "gold": self.gold, "tilt": self._tilt, "came": self.came, "flight": self.flight,
            "most_labels": self._most_labels, "most_in_flight": self._most_in_flight, "last": history.last,
            "given": campaign.given, "worked": campaign.worked[: self.people], "task": history.task[:n],
            "worker": history.worker[:n], "answer": history.answer[:n], "earlier": history.earlier[:n],
        }  # fmt: skip

    def restore(self, facts: dict[str, Any], columns: dict[str, Any]) -> None:
        """Become the crowd, before its next ``learn``, that these were taken from; this one must be new."""
        self.reserve_tasks(len(columns["gold"]) - 1)
        for _ in range(facts["people"]):
            self.add_worker()
        self._models, self._turned_away = facts["models"], facts["turned_away"]
        self.tasks, self.entries = facts["tasks"], facts["entries"]
        room = len(self.campaign.history.task)
        if self.entries > room:
            self.campaign = with_more_entries(self.campaign, doubled(room, self.entries))
        campaign, history, n = self.campaign, self.campaign.history, self.entries
        for own, name in (
            (self.gold, "gold"), (self._tilt, "tilt"), (self.came, "came"), (self.flight, "flight"),
            (self._most_labels, "most_labels"), (self._most_in_flight, "most_in_flight"), (history.last, "last"),
            (campaign.given, "given"),
        ):  # fmt: skip
            own[:] = columns[name]
        campaign.worked[: self.people] = columns["worked"]
        for name in ("task", "worker", "answer", "earlier"):
            getattr(history, name)[:n] = columns[name]
        history.size[0] = n

    # Learning and solving ---------------------------------------------------------------------------------------

    def learn(self, version: int, given: int, left: int, arrivals: float | None = None) -> None:
        """Learn workers and tasks from all labels, and solve for the ``left`` labels to come after ``given``.

        ``arrivals`` are those that are expected where workers may be turned away, None where nobody is.
        """
        self.given, self.budget = given, given + left
        self.settings = replace(self.settings, turn_away=arrivals is not None)
        self.arrivals = np.inf if arrivals is None else arrivals
        # Who came and handed nothing in will be as little help next time.
        self.campaign.arrived[:] = self.campaign.worked
        self.campaign.arrived[: self.people] += np.rint(self._turned_away).astype(np.int64)
        self.campaign.arrived[self._models] = 0
        self._start = float(plan_start(self.settings.seed, 0)) + 0.5 * version
        self.refit()
        flight = self.flight
        has_room = (flight < self._most_in_flight) & (self.came + flight < self._most_labels)
        has_room[self.tasks :] = False
        has_room[self.gold >= 0] = False
        open_tasks(self.campaign.bins, has_room.astype(np.int64), MOST_PLANS)
        self.planned = True
        self.resolve()

    def refit(self) -> None:
        """Learn channels and beliefs anew from all labels that have come in; without any, those of the start."""
        history, state = self.campaign.history, self.campaign.state
        if (history.answer[: self.entries] >= 0).any():
            super().refit()
            return
        state.counts[:], state.total[:], state.pseudo[:] = 0.0, 0.0, state.base
        self.campaign.channels[:] = state.pseudo / state.pseudo.sum(axis=1, keepdims=True)
        state.logp[:] = np.log(self._share) + self._tilt
        odds = np.exp(state.logp - state.logp.max(axis=1, keepdims=True))
        state.belief[:] = odds / odds.sum(axis=1, keepdims=True)
        for task in np.flatnonzero(self.gold >= 0):
            self._settle(int(task))

    def _expected(self) -> Floats:
        """(W,) shares of the arrivals to come, in which models have none."""
        shares = super()._expected()
        if self._models:
            shares = shares.copy()
            shares[self._models] = 0.0
        return shares

    def resolve(self) -> None:
        """Solve for the tasks as they stand, as if for the first time."""
        if self.planned:
            self._plans = self._types = None
            super().resolve()

    @property
    def _finishes_first(self) -> bool:
        """While workers are strangers: later on, who stops early has all tasks labelled rather than some of them.

        Which task comes first hardly matters for the end of the budget (decision 43).
        """
        seen = int(np.count_nonzero(self.campaign.arrived))
        return self._strangers and self.given < KNOWN_LABELS * max(seen, 1)

    @property
    def given_share(self) -> Floats:
        """(C,) what was believed of a usual task before any label."""
        found: Floats = self._share
        return found

    @property
    def tilt(self) -> Floats:
        """(rows, C) log beliefs of tasks without labels, less that of a usual task."""
        found: Floats = self._tilt
        return found

    @property
    def start(self) -> Floats:
        """(C,) what is believed of a usual task without labels."""
        return np.asarray(self.campaign.state.belief[-1])
