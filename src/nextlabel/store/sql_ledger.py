"""One campaign inside one transaction of a database: the contract of ``campaign.ledger``, written back at the end.

Rows that are read stay in memory until the transaction ends, and what changes is written by one statement for each
table (``store.ledger_rows``). The few questions that need stored rows to be up to date have them written first.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

from sqlalchemy import Connection

from nextlabel.beliefs.prior import Prior
from nextlabel.campaign.crowd_model import CrowdModel
from nextlabel.campaign.events import Event
from nextlabel.campaign.overview import LARGE
from nextlabel.campaign.rows import BatchRow, CampaignRow, Group, LeaseRow, TaskRow, WorkerRow
from nextlabel.campaign.transitions import LEASED
from nextlabel.problem.state import TaskState
from nextlabel.problem.tables import prior_from, prior_table
from nextlabel.store import questions
from nextlabel.store import statements as sql
from nextlabel.store.bulk import ADD_PAYLOADS, ADD_TASKS, SAVE_CAMPAIGNS, SAVE_STATES, BulkWrite, Values
from nextlabel.store.candidates import Candidates
from nextlabel.store.held_counts import HeldCounts
from nextlabel.store.ledger_rows import LedgerRows
from nextlabel.store.long_searches import LongSearches
from nextlabel.store.prepared import Row, Runner
from nextlabel.store.row_mapping import (
    changing_columns,
    class_of,
    event_from,
    lease_from,
    task_from,
    task_values,
    worker_from,
)
from nextlabel.store.tables import batches

#: Rows that are read or written at once.
CHUNK = 10_000
#: Characters of a payload beyond which its task is not remembered; the payload's column in ``statements.TASK``.
LARGE_PAYLOAD, PAYLOAD = 1000, 2
#: Stored leases that are asked for beyond those that were touched.
MORE = 16


@dataclass(slots=True)
class CachedRows:
    """What a process remembers of a campaign as it was after event ``seq``: true until another process writes one."""

    seq: int = -1
    classes: list[Prior] | None = None
    groups: dict[Group, int] | None = None
    expiry: float | None = None  # no lease expires before; None: not known
    crowd: CrowdModel | None = None  # it knows itself after which event
    searches: LongSearches = field(default_factory=LongSearches)  # true after any event
    row: CampaignRow | None = None
    rows: LedgerRows | None = None
    stored: Values = ()  # the columns of ``row`` as they are stored


class SqlLedger:
    """The campaign's row, its log, tasks, leases and workers, and what of them was read or changed."""

    def __init__(self, runner: Runner, number: int, row: CampaignRow, cached: CachedRows) -> None:
        self.row, self.cached = row, cached
        self.rows = LedgerRows(number) if cached.rows is None else cached.rows
        self.held_counts = HeldCounts(runner, self.rows)
        self._number, self._runner = number, runner
        self._changed_groups: set[Group] = set()
        self.expiries = Expiries(self, runner)
        self.candidates = Candidates(self, runner)
        self._as_loaded: Values = cached.stored or (() if row.seq == 0 else changing_columns(row))

    @property
    def connection(self) -> Connection:
        """The connection that the transaction is on."""
        return self._runner.connection

    @property
    def number(self) -> int:
        """The campaign's number in the database."""
        return self._number

    def forget_cached(self) -> None:
        """Remember nothing of the rows that were read before."""
        self.held_counts.forget()
        self.cached, self._changed_groups = CachedRows(), set()
        self.rows.forget()
        self._forget_questions()

    @property
    def crowd(self) -> CrowdModel | None:
        """What this process knows of the crowd."""
        return self.cached.crowd

    @crowd.setter
    def crowd(self, model: CrowdModel | None) -> None:
        self.cached.crowd = model

    def groups(self) -> dict[Group, int]:
        """Tasks in each state."""
        return self._groups()

    def _groups(self) -> dict[Group, int]:
        if self.cached.groups is None:
            found = self._runner.all(sql.states_of, self._parameters())
            self.cached.groups = {(klass, node, w): count for klass, node, w, count in found}
        return self.cached.groups

    def flush(self) -> None:
        """Write all that is pending; the transaction's end makes it durable."""
        self._runner.write_all(self.take())

    def take(self) -> dict[BulkWrite, list[Values]]:
        """All that is to be written; the caller does so."""
        rows = self.rows
        pending = {
            **self.held_counts.take(),
            **rows.take_tasks(),
            **rows.take_leases(),
            **rows.take_events(),
            **rows.take_workers(),
        }
        pending[SAVE_STATES] = self._take_groups()
        values = changing_columns(self.row)
        if values != self._as_loaded:
            pending[SAVE_CAMPAIGNS] = [(self._number, *values)]
            self._as_loaded = values
        self.cached.seq = self.row.seq
        self._forget_questions()
        return pending

    def remember(self) -> CachedRows:
        """What is known of the campaign now that the transaction has succeeded.

        Ranked tasks are not kept: a repair may write their scores without an event.
        """
        if self.row.rules.ranked:
            self.rows.forget_tasks()
        self.rows.trim()
        self.cached.row, self.cached.rows, self.cached.stored = self.row, self.rows, self._as_loaded
        return self.cached

    def _take_groups(self) -> list[Values]:
        groups = self.cached.groups
        if groups is None:  # nothing has moved since they were forgotten
            return []
        rows: list[Values] = [(self._number, *group, groups[group]) for group in sorted(self._changed_groups)]
        for group in self._changed_groups:
            if groups[group] == 0:
                del groups[group]
        self._changed_groups = set()
        return rows

    def write_rows(self) -> None:
        """Write tasks and leases, for a question that needs all of them as they are."""
        self._runner.write_all({**self.held_counts.take(), **self.rows.take_tasks(), **self.rows.take_leases()})
        self._forget_questions()

    def _parameters(self, **more: Any) -> dict[str, Any]:
        return {"campaign": self._number, **more}

    def _forget_questions(self) -> None:
        """Stored rows have changed: parts that remember what they asked forget it."""
        self.expiries.forget()
        self.candidates.forget()

    def append(self, at: float, kind: str, data: dict[str, Any]) -> Event:
        """The next event of the log."""
        self.row.seq += 1
        self.row.last_at = at
        event = Event(self.row.seq, at, kind, data)
        self.rows.append(event)
        return event

    def log(self, after: int, limit: int) -> list[Event]:
        """Events above a number, those that are not written yet included."""
        pending = self.rows.pending_events
        written = pending[0][0] - 1 if pending else self.row.seq
        found: list[Any] = []
        if after < written:
            found = self._runner.all(sql.light_events_after, self._parameters(after=after, many=limit))
        new = [(*one[:3], "{}" if one[2] == LARGE else one[3]) for one in pending if one[0] > after]
        return [event_from(row) for row in [*found, *new][:limit]]

    def last_event(self, kind: str) -> int | None:
        """The last event of a kind."""
        for seq, _, pending_kind, _ in reversed(self.rows.pending_events):
            if pending_kind == kind:
                return int(seq)
        found = self._runner.one(sql.last_event, self._parameters(kind=kind))
        return None if found is None else int(found[0])

    def task_classes(self, first: int, end: int) -> Sequence[int]:
        """The classes of some tasks."""
        if len(self.classes()) == 1:
            return [0] * (end - first)
        found = self._runner.all(sql.task_classes, self._parameters(first=first, end=end))
        return [class_of(klass) for (klass,) in found]

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
        self._runner.write(sql.upsert(self._runner.dialect_name, batches), [values])

    def importing(self) -> bool:
        """Whether an import is under way."""
        return self._runner.one(sql.active_import, {"id": self.row.id}) is not None

    def add_lease(self, lease: LeaseRow) -> None:
        """A new lease."""
        self.rows.add_lease(lease)
        self.expiries.note(lease)

    def save_lease(self, lease: LeaseRow) -> None:
        """A lease that has changed."""
        self.rows.save_lease(lease)
        self.expiries.note(lease)

    def lease(self, id: str) -> LeaseRow | None:
        """A lease by id."""
        if id not in self.rows.leases:
            found = self._runner.one(sql.lease_by_id, self._parameters(id=id))
            if found is None:
                return None
            self.rows.know_lease(lease_from(found))
        return self.rows.leases[id]

    def open_leases(self, worker: str) -> list[LeaseRow]:
        """The worker's leases that are out."""
        if worker not in self.rows.open:
            found = self._runner.all(sql.open_leases, self._parameters(worker=worker))
            self.rows.know_open(worker, [lease_from(row) for row in found])
        leases = self.rows.open[worker]
        return sorted(leases.values(), key=lambda lease: lease.seq) if leases else []

    def expired(self, now: float, limit: int) -> list[LeaseRow]:
        """Leases whose time is over."""
        return self.expiries.expired(now, limit)

    def next_expiry(self) -> float | None:
        """When the next lease expires."""
        return self.expiries.next()

    def shorten_leases(self, given: float, until: float) -> None:
        """No lease expires after ``until``."""
        self.write_rows()
        self._runner.write(sql.shorten_leases, [{"b_campaign": self._number, "until": until}])
        self._runner.write(sql.backdate_leases, [{"b_campaign": self._number, "given": given}])
        self.rows.forget_leases()
        self.cached.expiry = None

    def labels_of(self, worker: str, dropped: bool, after: int, limit: int) -> list[LeaseRow]:
        """Leases of a worker with labels that were bought."""
        self.write_rows()
        which = self._parameters(worker=worker, dropped=dropped, after=after, many=limit)
        return [self.rows.know_lease(lease_from(row)) for row in self._runner.all(sql.labels_of, which)]

    def find_worker(self, worker: str) -> WorkerRow | None:
        """A worker's tally, if there is one."""
        found = self.worker(worker)  # one that is made here is not written unless it is changed
        return None if found.given == 0 else found

    def worker(self, worker: str) -> WorkerRow:
        """A worker's tally."""
        if worker not in self.rows.workers:
            found = self._runner.one(sql.worker_by_name, self._parameters(worker=worker))
            self.rows.know_worker(WorkerRow(worker) if found is None else worker_from(found))
        return self.rows.tally(worker)

    def add_tasks(self, tasks: Sequence[TaskRow]) -> None:
        """New tasks."""
        groups = self._groups()
        self.add_hidden_tasks(tasks)
        for group, count in Counter(task.group for task in tasks).items():
            groups[group] = groups.get(group, 0) + count
            self._changed_groups.add(group)
        self.candidates.forget()

    def add_hidden_tasks(self, tasks: Sequence[TaskRow]) -> None:
        """New tasks that are not published: asks stop before their places."""
        payloads = [(self._number, task.number, json.dumps(task.payload)) for task in tasks]
        rows = [task_values(self._number, task) for task in tasks]
        self._runner.write_rows(ADD_PAYLOADS, payloads)
        self._runner.write_rows(ADD_TASKS, [tuple(row[name] for name in ADD_TASKS.columns) for row in rows])

    def publish_hidden_tasks(self, counts: dict[Group, int]) -> None:
        """Count the hidden tasks."""
        groups = self._groups()
        for group, count in counts.items():
            groups[group] = groups.get(group, 0) + count
        self._changed_groups.update(counts)
        self.candidates.forget()

    def task(self, number: int) -> TaskRow:
        """A task by number."""
        if number not in self.rows.tasks:
            found = self._runner.one(sql.task_by_number, self._parameters(number=number))
            assert found is not None
            self.read_task(found)
        return self.rows.tasks[number]

    def read_task(self, row: Row, holders: Sequence[str] | None = None) -> TaskRow:
        """A task as it is stored, remembered."""
        if len(row[PAYLOAD]) > LARGE_PAYLOAD:
            self.rows.large.add(row[0])
        return self.rows.know_task(task_from(row), holders)

    def tasks_by_key(self, keys: Sequence[str]) -> dict[str, TaskRow]:
        """Those of the tasks that are there."""
        if not keys:
            return {}
        found = self.connection.execute(sql.tasks_by_key, self._parameters(keys=list(keys)))
        tasks = [task_from(tuple(row)) for row in found]
        return {task.key: self.rows.tasks.get(task.number, task) for task in tasks if task.number < self.row.tasks}

    def all_tasks(self, first: int = 0, until: int | None = None) -> Iterator[TaskRow]:
        """Every task, or those from number ``first`` to the one before ``until``."""
        self.write_rows()
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
        before, after = self.rows.move(task, state, score)
        if task.gold is not None:
            return  # it is in no group
        groups[before] -= 1
        groups[after] = groups.get(after, 0) + 1
        self._changed_groups |= {before, after}

    def rescore(
        self, score: Callable[[Sequence[TaskRow]], Sequence[float | None]], first: int = 0, until: int | None = None
    ) -> None:
        """Give tasks their scores."""
        for some in _chunks(self.all_tasks(first, until)):
            values = zip(some, score(some), strict=True)
            rows = [{"b_campaign": self._number, "b_number": task.number, "score": value} for task, value in values]
            self._runner.write(sql.score_task, rows)
        self.rows.forget_tasks()
        self.candidates.forget()

    def pick(self, group: Group, worker: str, start: float) -> TaskRow | None:
        """A task of the group that the worker never held."""
        return self.candidates.pick(group, worker, start)

    def begin_search(self) -> None:
        """A new ask."""
        self.cached.searches.begin()

    def search_ended(self) -> bool:
        """Whether the ask's search has looked at everything."""
        return self.cached.searches.ended

    def held_all(self, worker: str) -> bool:
        """Whether the worker is known to have held every task."""
        return self.candidates.held_all(worker)

    def best(self, worker: str) -> TaskRow | None:
        """The task of largest score that the worker never held."""
        return self.candidates.best(worker)

    def any_score(self) -> bool:
        """Whether some task may have another label."""
        self.write_rows()
        return self._runner.one(sql.scored_task, self._parameters()) is not None

    def set_gold(self, answers: Sequence[tuple[int, int]]) -> None:
        """Tasks with known answers."""
        groups = self._groups()
        before = {number: self.task(number) for number, _ in answers}
        self.write_rows()
        for number, task in before.items():
            if task.gold is None and number < self.row.tasks:
                groups[task.group] -= 1
                self._changed_groups.add(task.group)
        rows = [
            {"b_campaign": self._number, "b_number": number, "gold": gold, "klass": ~before[number].class_number}
            for number, gold in answers
        ]
        self._runner.write(sql.set_gold, rows)
        self.held_counts.forget()  # they are counted by groups
        for number in before:
            self.rows.forget_task(number)
        self._forget_questions()

    def pick_control(self, worker: str, start: float) -> TaskRow | None:
        """A control question that the worker never held."""
        self.write_rows()
        for place in (start, 0.0):
            which = self._parameters(worker=worker, start=place, until=self.row.tasks)
            found = self._runner.one(sql.control_from, which)
            if found is not None:
                return self.rows.know_task(task_from(found))
        return None


def _chunks(tasks: Iterator[TaskRow]) -> Iterator[list[TaskRow]]:
    while some := list(islice(tasks, CHUNK)):
        yield some


class FirstExpiries(NamedTuple):
    """Open leases that expire first, as they are stored, at most ``many``: id and time."""

    many: int
    found: list[tuple[Any, ...]]


class Expiries:
    """Which leases of a ledger expire next: stored ones, and those that this transaction has touched.

    While no lease can have expired, which is nearly always, no question is asked.
    """

    def __init__(self, ledger: SqlLedger, runner: Runner) -> None:
        self._ledger, self._runner = ledger, runner
        self._first: FirstExpiries | None = None

    def forget(self) -> None:
        """Rows were written: what was asked before may no longer be true."""
        self._first = None

    def note(self, lease: LeaseRow) -> None:
        """A lease has changed."""
        cached = self._ledger.cached
        if cached.expiry is not None and lease.status == LEASED:
            cached.expiry = min(cached.expiry, lease.expires_at)

    def expired(self, now: float, limit: int) -> list[LeaseRow]:
        """Leases whose time is over."""
        ledger = self._ledger
        if ledger.cached.expiry is not None and now < ledger.cached.expiry:
            return []
        expiry = self.next()
        ledger.cached.expiry = math.inf if expiry is None else expiry
        if now < ledger.cached.expiry:
            return []
        ledger.write_rows()
        found = self._runner.all(sql.expired_leases, {"campaign": ledger.number, "now": now, "many": limit})
        return [ledger.rows.know_lease(lease_from(row)) for row in found]

    def next(self) -> float | None:
        """When the next lease expires."""
        rows = self._ledger.rows
        stored = self._next_stored(rows.touched_leases)
        times = [lease.expires_at for lease in rows.open_touched()]
        return min(times if stored is None else [*times, stored], default=None)

    def _next_stored(self, touched: set[str]) -> float | None:
        """When the first of the leases expires that are stored as they are."""
        while True:
            if self._first is not None:
                for id, at in self._first.found:
                    if id not in touched:
                        return float(at)
                if len(self._first.found) < self._first.many:
                    return None
            many = len(touched) + MORE
            question = questions.first_expiries(self._runner.dialect_name)
            self._first = FirstExpiries(
                many, self._runner.ask(question, {"campaign": self._ledger.number, "many": many})
            )
