"""The reference: plain dictionaries, every question answered by looking at everything. For tests and small trials.

A transaction that ends with an error is undone by replaying the events that were there before it.
"""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from threading import RLock
from typing import Any, TypeVar

from nextlabel.beliefs.prior import Prior
from nextlabel.campaign.events import Event
from nextlabel.campaign.needs import Need
from nextlabel.campaign.rows import BatchRow, CampaignRow, Group, LeaseRow, TaskRow, WorkerRow
from nextlabel.campaign.scoring import rank
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.campaign.transitions import LEASED
from nextlabel.campaign.verification import Verification, replay_event
from nextlabel.errors import ConflictError, NotFoundError
from nextlabel.problem.state import TaskState
from nextlabel.store.memory_access import MemoryAccess

R = TypeVar("R")


def new_row(id: str, config: CampaignSettings, now: float) -> CampaignRow:
    """A campaign before its first event."""
    return CampaignRow(id, config, now, config.budget, config.deadline, config.lease_seconds, config.rho)


def no_campaign(id: str) -> NotFoundError:
    """There is no such campaign."""
    return NotFoundError(f"there is no campaign {id[:60]!r}.", "List them with nextlabel campaign status.")


class MemoryLedger:
    """One campaign in dictionaries."""

    def __init__(self, row: CampaignRow) -> None:
        self.row = row
        self.events: list[Event] = []
        self._classes: list[Prior] = []
        self._batches: dict[str, BatchRow] = {}
        self._tasks: list[TaskRow] = []
        self._leases: dict[str, LeaseRow] = {}
        self._workers: dict[str, WorkerRow] = {}

    def append(self, at: float, kind: str, data: dict[str, Any]) -> Event:
        """The next event of the log."""
        self.row.seq += 1
        self.row.last_at = at
        event = Event(self.row.seq, at, kind, copy.deepcopy(data))
        self.events.append(event)
        return event

    def classes(self) -> Sequence[Prior]:
        """Priors in the order in which they came."""
        return self._classes

    def add_classes(self, priors: Sequence[Prior]) -> None:
        """More priors."""
        self._classes.extend(priors)

    def batch(self, key: str) -> BatchRow | None:
        """A batch that was added."""
        return self._batches.get(key)

    def save_batch(self, key: str, batch: BatchRow) -> None:
        """Remember a batch."""
        self._batches[key] = batch

    def add_tasks(self, tasks: Sequence[TaskRow]) -> None:
        """New tasks."""
        self._tasks.extend(replace(task) for task in tasks)

    def task(self, number: int) -> TaskRow:
        """A task by number."""
        return replace(self._tasks[number])

    def tasks_by_key(self, keys: Sequence[str]) -> dict[str, TaskRow]:
        """Those of the tasks that are there."""
        wanted = set(keys)
        return {task.key: replace(task) for task in self._tasks if task.key in wanted}

    def all_tasks(self) -> Iterator[TaskRow]:
        """Every task."""
        return (replace(task) for task in self._tasks)

    def move(self, task: TaskRow, state: TaskState, score: float | None) -> None:
        """Put a task into another state."""
        self._tasks[task.number] = replace(task, node=state.node, w=state.w, score=score)

    def rescore(self, score: Callable[[Sequence[TaskRow]], Sequence[float | None]]) -> None:
        """Give every task its score."""
        for task, value in zip(self._tasks, score(self._tasks), strict=True):
            task.score = value

    def groups(self) -> dict[Group, int]:
        """Tasks in each state."""
        found: dict[Group, int] = {}
        for task in self._tasks:
            found[task.group] = found.get(task.group, 0) + 1
        return found

    def pick(self, group: Group, worker: str, start: float) -> TaskRow | None:
        """A task of the group that the worker never held."""
        free = [task for task in self._tasks if task.group == group and task.number not in self._held(worker)]
        if not free:
            return None
        return replace(min(free, key=lambda task: (task.place < start, task.place)))

    def best(self, worker: str) -> TaskRow | None:
        """The task of largest score that the worker never held."""
        held = self._held(worker)
        free = [(task.score, task.place, task.number) for task in self._tasks if task.score is not None]
        free = [entry for entry in free if entry[2] not in held]
        return self.task(max(free)[2]) if free else None

    def any_score(self) -> bool:
        """Whether some task may have another label."""
        return any(task.score is not None for task in self._tasks)

    def _held(self, worker: str) -> set[int]:
        return {lease.task for lease in self._leases.values() if lease.worker == worker}

    def add_lease(self, lease: LeaseRow) -> None:
        """A new lease."""
        self._leases[lease.id] = replace(lease)

    def save_lease(self, lease: LeaseRow) -> None:
        """A lease that has changed."""
        self._leases[lease.id] = replace(lease)

    def lease(self, id: str) -> LeaseRow | None:
        """A lease by id."""
        return replace(self._leases[id]) if id in self._leases else None

    def open_leases(self, worker: str) -> list[LeaseRow]:
        """The worker's leases that are out."""
        return [replace(lease) for lease in self._open() if lease.worker == worker]

    def expired(self, now: float, limit: int) -> list[LeaseRow]:
        """Leases whose time is over."""
        over = sorted((lease.expires_at, lease.seq, lease.id) for lease in self._open() if lease.expires_at <= now)
        return [replace(self._leases[id]) for _, _, id in over[:limit]]

    def next_expiry(self) -> float | None:
        """When the next lease expires."""
        return min((lease.expires_at for lease in self._open()), default=None)

    def _open(self) -> list[LeaseRow]:
        return [lease for lease in self._leases.values() if lease.status == LEASED]

    def shorten_leases(self, given: float, until: float) -> None:
        """No lease expires after ``until``."""
        for lease in self._leases.values():
            lease.expires_at = min(lease.expires_at, until)
            if lease.status == LEASED:
                lease.leased_at = min(lease.leased_at, given)

    def worker(self, worker: str) -> WorkerRow:
        """A worker's tally."""
        return self._workers.setdefault(worker, WorkerRow(worker))

    def differing_rows(self, right: MemoryLedger) -> dict[str, int]:
        """Rows of each table that are not those of another ledger."""
        pairs: dict[str, tuple[dict[Any, Any], dict[Any, Any]]] = {
            "classes": (dict(enumerate(self._classes)), dict(enumerate(right._classes))),
            "leases": (self._leases, right._leases),
            "tasks": (self._unscored(), right._unscored()),
            "workers": (self._workers, right._workers),
            "batches": (self._batches, right._batches),
            "campaigns": ({0: self.row}, {0: right.row}),
        }
        counts = {
            name: sum(1 for key in {*mine, *theirs} if mine.get(key) != theirs.get(key))
            for name, (mine, theirs) in pairs.items()
        }
        return {name: count for name, count in counts.items() if count}

    def _unscored(self) -> dict[int, TaskRow]:
        """Tasks, with no more of their scores than whether they have one."""
        return {task.number: replace(task, score=None if task.score is None else 0.0) for task in self._tasks}

    def leases_of(self, tasks: set[int]) -> list[LeaseRow]:
        """Leases of some tasks."""
        return [replace(lease) for lease in self._leases.values() if lease.task in tasks]

    def all_workers(self) -> list[WorkerRow]:
        """Every worker."""
        return [replace(worker) for worker in self._workers.values()]


class MemoryStore:
    """Campaigns of one process."""

    def __init__(self) -> None:
        self.clock: Callable[[], float] = time.time
        self._ledgers: dict[str, MemoryLedger] = {}
        self._settings: dict[str, str] = {}
        self._index_tables: dict[str, bytes] = {}
        self._lock = RLock()
        self.access = MemoryAccess()

    @contextmanager
    def create(self, id: str, config: CampaignSettings, now: float) -> Iterator[MemoryLedger]:
        """A new campaign."""
        with self._lock:
            if id in self._ledgers:
                raise ConflictError(f"there is a campaign {id!r} already.", "Choose another id.")
            ledger = MemoryLedger(new_row(id, config, now))
            yield ledger
            self._ledgers[id] = ledger

    @contextmanager
    def transaction(self, id: str) -> Iterator[MemoryLedger]:
        """The campaign, alone."""
        with self._lock:
            ledger = self._ledger(id)
            before = len(ledger.events)
            try:
                yield ledger
            except BaseException:
                if len(ledger.events) > before:
                    self._ledgers[id] = _replayed(ledger, before)
                raise

    @contextmanager
    def transactions(self, needs: Mapping[str, Sequence[Need]]) -> Iterator[dict[str, MemoryLedger]]:
        """Several campaigns, alone; those that are not there are left out."""
        with self._lock, ExitStack() as stack:
            there = list(needs) if len(needs) == 1 else [id for id in needs if id in self._ledgers]
            yield {id: stack.enter_context(self.transaction(id)) for id in there}

    def verify(self, id: str, repair: bool, progress: Callable[[float], None] | None = None) -> Verification:
        """Hold every row against the events, and repair those that do not follow from them."""
        with self._lock:
            old = self._ledger(id)
            new = _replayed(old, len(old.events))
            differing = old.differing_rows(new)
            events = len(old.events)
            if repair:
                self._ledgers[id] = new
                for table, rows in differing.items():
                    new.append(new.row.last_at, "rebuilt", {"table": table, "rows": rows})
        return Verification(events, differing, repair and bool(differing))

    def campaigns(self) -> list[CampaignRow]:
        """Newest first."""
        with self._lock:
            rows = [replace(ledger.row) for ledger in self._ledgers.values()]
        return sorted(rows, key=lambda row: row.created_at, reverse=True)

    def row(self, id: str) -> CampaignRow:
        """A campaign as it stands."""
        with self._lock:
            return replace(self._ledger(id).row)

    def events(self, id: str, after: int = 0, limit: int = 1000, max_bytes: int | None = None) -> list[Event]:
        """Events with a number above ``after``."""
        with self._lock:
            some = self._ledger(id).events[after : after + limit]
        return _first_bytes(some, max_bytes, lambda event: len(json.dumps(event.data)))

    def tasks(self, id: str, after: int = -1, limit: int = 1000, max_bytes: int | None = None) -> list[TaskRow]:
        """Tasks with a number above ``after``."""
        with self._lock:
            some = list(self._ledger(id).all_tasks())[after + 1 : after + 1 + limit]
        return _first_bytes(some, max_bytes, lambda task: len(json.dumps(task.payload)))

    def groups(self, id: str) -> dict[Group, int]:
        """Tasks in each state."""
        with self._lock:
            return self._ledger(id).groups()

    def classes(self, id: str) -> Sequence[Prior]:
        """Priors of the tasks."""
        with self._lock:
            return tuple(self._ledger(id).classes())

    def leases(self, id: str, tasks: Iterable[int]) -> list[LeaseRow]:
        """Leases of some tasks."""
        with self._lock:
            return self._ledger(id).leases_of(set(tasks))

    def workers(self, id: str, limit: int = 1000) -> list[WorkerRow]:
        """Workers with most labels first."""
        with self._lock:
            rows = self._ledger(id).all_workers()
        return sorted(rows, key=lambda row: (-row.labels, row.worker))[:limit]

    def load_table(self, name: str) -> bytes | None:
        """A table solved before."""
        return self._index_tables.get(name)

    def save_table(self, name: str, data: bytes) -> None:
        """Store a table."""
        self._index_tables.setdefault(name, data)

    def setting(self, name: str) -> str | None:
        """A setting of the whole store."""
        return self._settings.get(name)

    def first_setting(self, name: str, value: str) -> bool:
        """Set what was never set; False if another was first."""
        with self._lock:
            first = name not in self._settings
            self._settings.setdefault(name, value)
        return first

    def change_setting(self, name: str, value: str) -> None:
        """Set or replace a setting."""
        with self._lock:
            self._settings[name] = value

    def ping(self) -> None:
        """Memory always answers."""

    def close(self) -> None:
        """Nothing is held open."""

    def _ledger(self, id: str) -> MemoryLedger:
        if id not in self._ledgers:
            raise no_campaign(id)
        return self._ledgers[id]


def _first_bytes(rows: list[R], max_bytes: int | None, size: Callable[[R], int]) -> list[R]:
    """The first rows, until they have so many bytes."""
    if max_bytes is None:
        return rows
    taken: list[R] = []
    for row in rows:
        taken.append(row)
        max_bytes -= size(row)
        if max_bytes <= 0:
            break
    return taken


def _replayed(old: MemoryLedger, events: int) -> MemoryLedger:
    ledger = MemoryLedger(new_row(old.row.id, old.row.config, old.row.created_at))
    for event in old.events[:events]:
        ledger.events.append(event)
        replay_event(ledger, event, rank)
    return ledger
