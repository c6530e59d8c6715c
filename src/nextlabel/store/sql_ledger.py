"""One campaign inside one transaction of a database: the contract of ``campaign.ledger`` in statements."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from sqlalchemy import Connection

from nextlabel.beliefs.prior import Prior
from nextlabel.campaign.crowd_model import CrowdModel
from nextlabel.campaign.events import Event
from nextlabel.campaign.rows import BatchRow, CampaignRow, Group, LeaseRow, TaskRow, WorkerRow
from nextlabel.campaign.transitions import LEASED
from nextlabel.problem.state import TaskState
from nextlabel.problem.tables import prior_from, prior_table
from nextlabel.store import statements as sql
from nextlabel.store.prepared import Runner
from nextlabel.store.row_mapping import (
    changing_values,
    event_from,
    lease_from,
    lease_values,
    task_from,
    task_values,
    worker_from,
    worker_values,
)
from nextlabel.store.tables import batches, states, workers

#: Rows that are read or written at once.
CHUNK = 10_000


@dataclass(slots=True)
class CachedRows:
    """What a process remembers of a campaign as it was after event ``seq``."""

    seq: int = -1
    classes: list[Prior] | None = None
    groups: dict[Group, int] | None = None
    expiry: float | None = None  # no lease expires before; None: not known
    crowd: CrowdModel | None = None  # it knows itself after which event


@dataclass(slots=True)
class Pending:
    """What has yet to be written."""

    events: list[dict[str, Any]] = field(default_factory=list)
    new_leases: dict[str, LeaseRow] = field(default_factory=dict)
    leases: dict[str, LeaseRow] = field(default_factory=dict)
    tasks: dict[int, TaskRow] = field(default_factory=dict)
    groups: set[Group] = field(default_factory=set)


class SqlLedger:
    """One campaign inside one transaction."""

    def __init__(self, connection: Connection, number: int, row: CampaignRow, cached: CachedRows) -> None:
        self.row, self.cached = row, cached
        self._connection, self._number = connection, number
        self._dialect = connection.dialect.name
        self._runner = Runner(connection)
        self._pending = Pending()
        self._tasks: dict[int, TaskRow] = {}
        self._workers: dict[str, WorkerRow] = {}
        self._as_loaded: dict[str, Any] = {} if row.seq == 0 else changing_values(row)

    @property
    def connection(self) -> Connection:
        """The connection that the transaction is on."""
        return self._connection

    @property
    def number(self) -> int:
        """The campaign's number in the database."""
        return self._number

    def forget_cached(self) -> None:
        """Remember nothing of the rows that were read before."""
        self.cached = CachedRows()
        self._tasks, self._workers = {}, {}

    def append(self, at: float, kind: str, data: dict[str, Any]) -> Event:
        """The next event of the log."""
        self.row.seq += 1
        self.row.last_at = at
        text = json.dumps(data)
        self._pending.events.append(
            {"campaign": self._number, "seq": self.row.seq, "at": at, "kind": kind, "data": text}
        )
        return Event(self.row.seq, at, kind, data)

    @property
    def crowd(self) -> CrowdModel | None:
        """What this process knows of the crowd."""
        return self.cached.crowd

    @crowd.setter
    def crowd(self, model: CrowdModel | None) -> None:
        self.cached.crowd = model

    def log(self, after: int, limit: int) -> list[Event]:
        """Events above a number, those that are not written yet included."""
        pending = self._pending.events
        written = pending[0]["seq"] - 1 if pending else self.row.seq
        found: list[Any] = []
        if after < written:
            found = self._runner.all(sql.light_events_after, self._parameters(after=after, many=limit))
        new = [(one["seq"], one["at"], one["kind"], one["data"]) for one in pending if one["seq"] > after]
        return [event_from(row) for row in [*found, *new][:limit]]

    def last_event(self, kind: str) -> int | None:
        """The last event of a kind."""
        for one in reversed(self._pending.events):
            if one["kind"] == kind:
                return int(one["seq"])
        found = self._runner.one(sql.last_event, self._parameters(kind=kind))
        return None if found is None else int(found[0])

    def task_classes(self, first: int, end: int) -> Sequence[int]:
        """The classes of some tasks."""
        if len(self.classes()) == 1:
            return [0] * (end - first)
        return [klass for (klass,) in self._runner.all(sql.task_classes, self._parameters(first=first, end=end))]

    def classes(self) -> Sequence[Prior]:
        """Priors in the order in which they came."""
        if self.cached.classes is None:
            found = self._runner.all(sql.classes_from, self._parameters(first=0))
            self.cached.classes = [prior_from(json.loads(text)) for (text,) in found]
        return self.cached.classes

    def add_classes(self, priors: Sequence[Prior]) -> None:
        """More priors."""
        known = list(self.classes())
        rows = [
            self._parameters(number=number, prior=json.dumps(prior_table(prior)))
            for number, prior in enumerate(priors, start=len(known))
        ]
        self._runner.write(sql.add_class, rows)
        self.cached.classes = known + list(priors)

    def batch(self, key: str) -> BatchRow | None:
        """A batch that was added."""
        found = self._runner.one(sql.batch_by_key, self._parameters(key=key))
        return None if found is None else BatchRow(int(found[0]), found[1])

    def save_batch(self, key: str, batch: BatchRow) -> None:
        """Remember a batch."""
        values = self._parameters(key=key, tasks=batch.tasks, digest=batch.digest)
        self._runner.write(sql.upsert(self._dialect, batches), [values])

    def add_tasks(self, tasks: Sequence[TaskRow]) -> None:
        """New tasks."""
        groups = self._groups()
        self._runner.write(sql.add_tasks, [task_values(self._number, task) for task in tasks])
        for task in tasks:
            groups[task.group] = groups.get(task.group, 0) + 1
            self._pending.groups.add(task.group)

    def add_hidden_tasks(self, tasks: Sequence[TaskRow]) -> None:
        """New tasks that are not published: asks stop before their places."""
        self._runner.write(sql.add_tasks, [task_values(self._number, task) for task in tasks])

    def publish_hidden_tasks(self, counts: dict[Group, int]) -> None:
        """Count the hidden tasks."""
        groups = self._groups()
        for group, count in counts.items():
            groups[group] = groups.get(group, 0) + count
        self._pending.groups.update(counts)

    def importing(self) -> bool:
        """Whether an import is under way."""
        return self._runner.one(sql.active_import, {"id": self.row.id}) is not None

    def task(self, number: int) -> TaskRow:
        """A task by number."""
        if number not in self._tasks:
            found = self._runner.one(sql.task_by_number, self._parameters(number=number))
            assert found is not None
            self._tasks[number] = task_from(found)
        return self._tasks[number]

    def tasks_by_key(self, keys: Sequence[str]) -> dict[str, TaskRow]:
        """Those of the tasks that are there."""
        if not keys:
            return {}
        self._write_tasks()
        found = self._connection.execute(sql.tasks_by_key, self._parameters(keys=list(keys)))
        rows = (task_from(tuple(row)) for row in found)
        return {task.key: task for task in rows if task.number < self.row.tasks}

    def all_tasks(self, first: int = 0, until: int | None = None) -> Iterator[TaskRow]:
        """Every task, or those from number ``first`` to the one before ``until``."""
        self._write_tasks()
        after, end = first - 1, self.row.tasks if until is None else until
        while True:
            which = self._parameters(after=after, until=end, many=CHUNK)
            some = [task_from(row) for row in self._runner.all(sql.tasks_after, which)]
            yield from some
            if len(some) < CHUNK:
                return
            after = some[-1].number

    def move(self, task: TaskRow, state: TaskState, score: float | None) -> None:
        """Put a task into another state."""
        groups = self._groups()
        groups[task.group] -= 1
        self._pending.groups.add(task.group)
        task.node, task.w, task.score = state.node, state.w, score
        groups[task.group] = groups.get(task.group, 0) + 1
        self._pending.groups.add(task.group)
        self._pending.tasks[task.number] = self._tasks[task.number] = task

    def rescore(
        self, score: Callable[[Sequence[TaskRow]], Sequence[float | None]], first: int = 0, until: int | None = None
    ) -> None:
        """Give tasks their scores."""
        for some in _chunks(self.all_tasks(first, until)):
            values = zip(some, score(some), strict=True)
            rows = [{"b_campaign": self._number, "b_number": task.number, "score": value} for task, value in values]
            self._runner.write(sql.score_task, rows)
        self._tasks = {}

    def groups(self) -> dict[Group, int]:
        """Tasks in each state."""
        return self._groups()

    def _groups(self) -> dict[Group, int]:
        if self.cached.groups is None:
            found = self._runner.all(sql.states_of, self._parameters())
            self.cached.groups = {(klass, node, w): count for klass, node, w, count in found}
        return self.cached.groups

    def pick(self, group: Group, worker: str, start: float) -> TaskRow | None:
        """A task of the group that the worker never held."""
        self._write_tasks()
        self._write_leases()
        klass, node, w = group
        end = float(self.row.rules.segments)
        which = self._parameters(klass=klass, node=node, w=w, worker=worker, start=start, end=end)
        return self._remember(self._runner.one(sql.pick_from, which) or self._runner.one(sql.pick_before, which))

    def best(self, worker: str) -> TaskRow | None:
        """The task of largest score that the worker never held."""
        self._write_tasks()
        self._write_leases()
        return self._remember(self._runner.one(sql.best_task, self._parameters(worker=worker)))

    def any_score(self) -> bool:
        """Whether some task may have another label."""
        self._write_tasks()
        return self._runner.one(sql.scored_task, self._parameters()) is not None

    def add_lease(self, lease: LeaseRow) -> None:
        """A new lease."""
        self._pending.new_leases[lease.id] = lease
        self._may_expire(lease)

    def save_lease(self, lease: LeaseRow) -> None:
        """A lease that has changed."""
        where = self._pending.new_leases if lease.id in self._pending.new_leases else self._pending.leases
        where[lease.id] = lease
        self._may_expire(lease)

    def _may_expire(self, lease: LeaseRow) -> None:
        if self.cached.expiry is not None and lease.status == LEASED:
            self.cached.expiry = min(self.cached.expiry, lease.expires_at)

    def lease(self, id: str) -> LeaseRow | None:
        """A lease by id."""
        for some in (self._pending.new_leases, self._pending.leases):
            if id in some:
                return some[id]
        found = self._runner.one(sql.lease_by_id, self._parameters(id=id))
        return None if found is None else lease_from(found)

    def open_leases(self, worker: str) -> list[LeaseRow]:
        """The worker's leases that are out."""
        self._write_leases()
        return [lease_from(row) for row in self._runner.all(sql.open_leases, self._parameters(worker=worker))]

    def expired(self, now: float, limit: int) -> list[LeaseRow]:
        """Leases whose time is over; while none can be, no question is asked."""
        if self.cached.expiry is not None and now < self.cached.expiry:
            return []
        expiry = self.next_expiry()
        self.cached.expiry = math.inf if expiry is None else expiry
        if now < self.cached.expiry:
            return []
        return [lease_from(row) for row in self._runner.all(sql.expired_leases, self._parameters(now=now, many=limit))]

    def next_expiry(self) -> float | None:
        """When the next lease expires."""
        self._write_leases()
        found = self._runner.one(sql.next_expiry, self._parameters())
        return None if found is None or found[0] is None else float(found[0])

    def shorten_leases(self, given: float, until: float) -> None:
        """No lease expires after ``until``."""
        self._write_leases()
        self._runner.write(sql.shorten_leases, [{"b_campaign": self._number, "until": until}])
        self._runner.write(sql.backdate_leases, [{"b_campaign": self._number, "given": given}])
        self.cached.expiry = None

    def worker(self, worker: str) -> WorkerRow:
        """A worker's worker_row."""
        if worker not in self._workers:
            found = self._runner.one(sql.worker_by_name, self._parameters(worker=worker))
            self._workers[worker] = WorkerRow(worker) if found is None else worker_from(found)
        return self._workers[worker]

    def flush(self) -> None:
        """Write all that is pending; the transaction's end makes it durable."""
        self._write_tasks()
        self._write_leases()
        pending = self._pending
        self._runner.write(sql.add_event, pending.events)
        pending.events = []
        self._write_groups()
        worker_rows = [worker_values(self._number, worker_row) for worker_row in self._workers.values()]
        self._runner.write(sql.upsert(self._dialect, workers), worker_rows)
        values = changing_values(self.row)
        if values != self._as_loaded:
            self._runner.write(sql.save_campaign, [{"b_number": self._number, **values}])
            self._as_loaded = values
        self.cached.seq = self.row.seq
        self._runner.close()

    def _write_tasks(self) -> None:
        if self._pending.tasks:
            rows = [
                {**task_values(self._number, task), "b_campaign": self._number, "b_number": task.number}
                for task in self._pending.tasks.values()
            ]
            self._runner.write(sql.move_task, rows)
            self._pending.tasks = {}

    def _write_leases(self) -> None:
        pending = self._pending
        if pending.new_leases:
            self._runner.write(sql.add_lease, [lease_values(self._number, one) for one in pending.new_leases.values()])
            pending.new_leases = {}
        if pending.leases:
            self._runner.write(sql.save_lease, [lease_values(self._number, one) for one in pending.leases.values()])
            pending.leases = {}

    def _write_groups(self) -> None:
        if not self._pending.groups:
            return
        groups = self._groups()
        rows = [
            self._parameters(klass=klass, node=node, w=w, count=groups[klass, node, w])
            for klass, node, w in sorted(self._pending.groups)
        ]
        self._runner.write(sql.upsert(self._dialect, states), rows)
        for group in self._pending.groups:
            if groups[group] == 0:
                del groups[group]
        self._pending.groups = set()

    def _remember(self, found: tuple[Any, ...] | None) -> TaskRow | None:
        if found is None:
            return None
        task = task_from(found)
        self._tasks[task.number] = task
        return task

    def _parameters(self, **more: Any) -> dict[str, Any]:
        return {"campaign": self._number, **more}


def _chunks(tasks: Iterator[TaskRow]) -> Iterator[list[TaskRow]]:
    while some := list(islice(tasks, CHUNK)):
        yield some
