"""The rows of one campaign that a process has read, and what a transaction has changed in them and not yet written.

A row that is here is the truth until the transaction ends, and until the campaign's next event afterwards, if that is
not written by this process; the database has what was written last. A task that has been
moved is *touched*: questions to the database about groups and scores must leave it out, and look at the row here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from nextlabel.campaign.events import Event
from nextlabel.campaign.rows import Group, LeaseRow, TaskRow, WorkerRow
from nextlabel.campaign.transitions import LEASED
from nextlabel.problem.state import TaskState
from nextlabel.store.bulk import ADD_EVENTS, ADD_LEASES, MOVE_TASKS, SAVE_LEASES, SAVE_WORKERS, BulkWrite, Values
from nextlabel.store.payloads import stored_data

#: Rows of a kind that are kept after a transaction; more of them are forgotten together.
MOST_KEPT = 1000


class LedgerRows:
    """Rows in memory; ``number`` is the campaign's."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.tasks: dict[int, TaskRow] = {}
        self.leases: dict[str, LeaseRow] = {}
        self.workers: dict[str, WorkerRow] = {}
        #: Workers all of whose open leases are here, and tasks all of whose holders are.
        self.open: dict[str, dict[str, LeaseRow]] = {}
        self.holders: dict[int, set[str]] = {}
        #: Tasks that are here, by group.
        self.in_group: dict[Group, set[int]] = {}
        #: Tasks with a large payload, and workers whose tallies may have been changed.
        self.large: set[int] = set()
        self._handed_out: set[str] = set()
        #: Touched tasks: the group that each is stored in, and those that are in each group now.
        self.stored_group: dict[int, Group] = {}
        self.left: Counter[Group] = Counter()
        self.entered: dict[Group, set[int]] = {}
        self.group_change: Counter[Group] = Counter()
        self._events: list[Values] = []
        self._new_leases: set[str] = set()
        self._new_holders: dict[int, set[str]] = {}
        self._changed_leases: set[str] = set()
        self._workers_as_stored: dict[str, Values] = {}

    # What was read

    def know_task(self, task: TaskRow, holders: Iterable[str] | None = None) -> TaskRow:
        """A task as it is stored, and who has held it; a row that is here already is newer."""
        if holders is not None and task.number not in self.holders:
            self.holders[task.number] = set(holders)
            self._add_new_holders(task.number)
        known = self.tasks.get(task.number)
        if known is None:
            known = self.tasks[task.number] = task
            self.in_group.setdefault(task.group, set()).add(task.number)
        return known

    def know_lease(self, lease: LeaseRow) -> LeaseRow:
        """A lease as it is stored."""
        return self.leases.setdefault(lease.id, lease)

    def know_open(self, worker: str, leases: Iterable[LeaseRow]) -> None:
        """All leases of a worker that are stored as open."""
        every = [self.know_lease(lease) for lease in leases]
        every += [lease for lease in self.open_touched() if lease.worker == worker]
        self.open[worker] = {lease.id: lease for lease in every if lease.status == LEASED}

    def know_worker(self, tally: WorkerRow) -> WorkerRow:
        """A worker's tally as it is stored."""
        if tally.worker not in self.workers:
            self.workers[tally.worker] = tally
            self._workers_as_stored[tally.worker] = _worker_values(self.number, tally)
        return self.workers[tally.worker]

    def tally(self, worker: str) -> WorkerRow:
        """A tally that is here, to be read or changed."""
        self._handed_out.add(worker)
        return self.workers[worker]

    def know_holders(self, task: int, workers: Iterable[str]) -> None:
        """Everybody who is stored as having held a task."""
        if task not in self.holders:
            self.holders[task] = set(workers)
            self._add_new_holders(task)

    def _add_new_holders(self, task: int) -> None:
        self.holders[task] |= self._new_holders.get(task, frozenset())

    # What is changed

    def append(self, event: Event) -> None:
        """An event for the log."""
        self._events.append((self.number, event.seq, event.at, event.kind, stored_data(event)))

    @property
    def pending_events(self) -> list[Values]:
        """Events that are not written yet: number, time, kind, data as JSON."""
        return [event[1:] for event in self._events]

    def move(self, task: TaskRow, state: TaskState, score: float | None) -> tuple[Group, Group]:
        """Put a task into another state; returns the group before and the one after."""
        number, before = task.number, task.group
        if number in self.stored_group:
            self.entered[before].discard(number)
        else:
            self.stored_group[number] = before
            self.left[before] += 1
        if number in self.tasks:
            self.in_group[before].discard(number)
            if not self.in_group[before]:
                del self.in_group[before]
        task.node, task.w, task.score = state.node, state.w, score
        after = task.group
        self.in_group.setdefault(after, set()).add(number)
        self.entered.setdefault(after, set()).add(number)
        self.group_change[before] -= 1
        self.group_change[after] += 1
        self.tasks[number] = task
        return before, after

    def forget_task(self, number: int) -> None:
        """A task has been written otherwise; what is pending must have been written."""
        task = self.tasks.pop(number, None)
        self.large.discard(number)
        if task is not None:
            self.in_group[task.group].discard(number)
            if not self.in_group[task.group]:
                del self.in_group[task.group]

    def add_lease(self, lease: LeaseRow) -> None:
        """A new lease."""
        self.leases[lease.id] = lease
        self._new_leases.add(lease.id)
        self._new_holders.setdefault(lease.task, set()).add(lease.worker)
        if lease.task in self.holders:
            self.holders[lease.task].add(lease.worker)
        self._list_open(lease)

    def save_lease(self, lease: LeaseRow) -> None:
        """A lease that has changed."""
        self.leases[lease.id] = lease
        if lease.id not in self._new_leases:
            self._changed_leases.add(lease.id)
        self._list_open(lease)

    def _list_open(self, lease: LeaseRow) -> None:
        known = self.open.get(lease.worker)
        if known is None:
            return
        if lease.status == LEASED:
            known[lease.id] = lease
        else:
            known.pop(lease.id, None)

    def new_leases(self) -> Iterator[LeaseRow]:
        """Leases that the database does not have."""
        return (self.leases[id] for id in self._new_leases)

    @property
    def touched_leases(self) -> set[str]:
        """Leases that the database does not have, or not as they are."""
        return self._new_leases | self._changed_leases

    def open_touched(self) -> Iterator[LeaseRow]:
        """Those of them that are open."""
        return (self.leases[id] for id in self.touched_leases if self.leases[id].status == LEASED)

    # What is to be written

    def take_tasks(self) -> dict[BulkWrite, list[Values]]:
        """Touched tasks; the database has them from now on."""
        number = self.number
        rows = [
            (number, task.number, task.node, task.w, task.labels, task.score, task.last_seq, task.closed_seq)
            for task in (self.tasks[touched] for touched in self.stored_group)
        ]
        self.stored_group, self.left, self.entered, self.group_change = {}, Counter(), {}, Counter()
        return {MOVE_TASKS: rows}

    def take_leases(self) -> dict[BulkWrite, list[Values]]:
        """Leases that are new or have changed."""
        new = [_lease_values(self.number, self.leases[id]) for id in self._new_leases]
        changed = [_changed_values(self.leases[id]) for id in self._changed_leases]
        self._new_leases, self._changed_leases, self._new_holders = set(), set(), {}
        return {ADD_LEASES: new, SAVE_LEASES: changed}

    def take_events(self) -> dict[BulkWrite, list[Values]]:
        """Events of the log."""
        rows, self._events = self._events, []
        return {ADD_EVENTS: rows}

    def take_workers(self) -> dict[BulkWrite, list[Values]]:
        """Tallies that have changed."""
        rows: list[Values] = []
        for worker in self._handed_out:
            values = _worker_values(self.number, self.workers[worker])
            if values != self._workers_as_stored.get(worker):
                self._workers_as_stored[worker] = values
                rows.append(values)
        self._handed_out = set()
        return {SAVE_WORKERS: rows}

    # What is kept after the transaction

    def forget(self) -> None:
        """Remember no row that was read; what has changed must have been written."""
        self.forget_tasks()
        self.forget_workers()
        self.forget_leases()

    def forget_tasks(self) -> None:
        """Remember no task."""
        self.tasks, self.holders, self.in_group, self.large = {}, {}, {}, set()

    def forget_leases(self) -> None:
        """Remember no lease."""
        self.leases, self.open = {}, {}

    def forget_workers(self) -> None:
        """Remember no tally."""
        self.workers, self._workers_as_stored, self._handed_out = {}, {}, set()

    def trim(self) -> None:
        """The transaction has ended: of the rows, keep what the next commands are likely to need, and not too much."""
        self.leases = {id: lease for id, lease in self.leases.items() if lease.status == LEASED}
        if len(self.leases) > MOST_KEPT or len(self.open) > MOST_KEPT:
            self.forget_leases()
        if len(self.workers) > MOST_KEPT:
            self.forget_workers()
        if len(self.tasks) > MOST_KEPT:
            self.forget_tasks()
        for number in self.large:
            task = self.tasks.pop(number)
            self.holders.pop(number, None)
            self.in_group[task.group].discard(number)
        self.large = set()

    @property
    def size(self) -> int:
        """How many rows are here."""
        return len(self.tasks) + len(self.leases) + len(self.workers)


def _changed_values(lease: LeaseRow) -> Values:
    return (
        lease.id, lease.status, lease.expires_at, lease.ended_at, lease.label, lease.counted, lease.dropped,
        lease.comment,
    )  # fmt: skip


def _lease_values(campaign: int, lease: LeaseRow) -> Values:
    return (
        campaign, lease.id, lease.task, lease.worker, lease.status, lease.leased_at, lease.expires_at, lease.seq,
        lease.ended_at, lease.label, lease.counted, lease.dropped, lease.free, lease.comment,
    )  # fmt: skip


def _worker_values(campaign: int, tally: WorkerRow) -> Values:
    return (
        campaign, tally.worker, tally.given, tally.labels, tally.late, tally.expired, tally.released, tally.seconds,
        tally.last_at, tally.bought, tally.dropped, tally.standing, tally.reason, tally.tested,
        tally.free, tally.turned_away,
    )  # fmt: skip


def key_of_place(task: TaskRow, start: float) -> tuple[bool, float]:
    """Where a task stands for somebody who begins to look at ``start``."""
    return task.place < start, task.place


def key_of_score(task: TaskRow) -> tuple[Any, float]:
    """What the best task has most of."""
    return task.score, task.place
