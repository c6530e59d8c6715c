"""A campaign in memory: one aggregate that follows its log. Events change it, and nothing else does.

``CampaignState.apply`` brings it from one event to the next, live and in a replay. It decides nothing: whatever depends
on the policy, the clock, chance or limits is in the event. Tasks and entries are arrays (``policies.allocation``), so
are leases; workers are objects. Ids and payloads of tasks stay where the log is (``Source``).

What a transaction changes is noted (``Changes``), so that the store writes it to its read tables, and so that a
transaction that fails is undone: the state is as before it (``rollback``). A step that changes much (new tasks, a new
clock) is not worth undoing; then the state is read again.
Cost: an event 10 to 30 us; 130 bytes a task and 75 a lease.
"""

from __future__ import annotations

import heapq
import json
import math
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass, field, fields, replace
from operator import attrgetter
from typing import Any, Final, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from nextlabel.arrays import Bools, Floats, Ints
from nextlabel.campaign.crowd_model import CrowdModel
from nextlabel.campaign.events import KINDS, Event
from nextlabel.campaign.notices import Notice
from nextlabel.campaign.rates import observe_arrival, observe_end, observe_turned_away
from nextlabel.campaign.rows import (
    NOT_ANSWERED,
    BatchRow,
    CampaignRow,
    LeaseRow,
    Rules,
    TaskRow,
    WorkerRow,
    erased_number,
    joined_lease_id,
    prediction_id,
    split_lease_id,
)
from nextlabel.campaign.scoring import ranked_by_grid, scores_for
from nextlabel.campaign.settings import COUNTED, CampaignSettings, amended_with
from nextlabel.campaign.transitions import EXPIRED, LABELLED, LATE, LEASED, RELEASED, LeaseStatus
from nextlabel.errors import ConflictError, NotFoundError
from nextlabel.model.prior import Prior
from nextlabel.model.tables import prior_from
from nextlabel.policies.allocation import Columns, Group, TaskPool
from nextlabel.policies.ordered import OrderedPool

STATUSES: Final[tuple[LeaseStatus, ...]] = (LEASED, LABELLED, EXPIRED, RELEASED, LATE)
_CODE: Final = {status: code for code, status in enumerate(STATUSES)}
_OUT: Final = _CODE[LEASED]
_FIELDS: Final = tuple(one.name for one in fields(CampaignRow))
_values = attrgetter(*_FIELDS)
_tally = attrgetter(*(one.name for one in fields(WorkerRow)))
#: In the place of an event that has not been, a label that was not given, and of whether it counts.
NONE: Final = -1


class Log(Protocol):
    """Where a campaign finds its events."""

    def log(self, after: int, limit: int) -> list[Event]:
        """Events above a number; those that added tasks without their data."""
        ...

    def last_event(self, kind: str) -> int | None:
        """The number of the last event of a kind."""
        ...

    def kept(self, part: str) -> bytes | None:
        """What was kept of the crowd's model: its ``snapshot``, or a learner's word or features by hash."""
        ...

    def keep(self, part: str, data: bytes) -> None:
        """Keep a learner's word or the features."""
        ...

    def payloads(self, after: int, limit: int) -> list[tuple[str, Any]]:
        """The ids and payloads of tasks with a number above ``after``."""
        ...


class Source(Log, Protocol):
    """Where a campaign finds what it does not keep in memory; inside a transaction, with what that has written."""

    def outside(self) -> Log:
        """The same for a thread that reads beside the transaction."""
        ...

    def drop(self, part: str) -> None:
        """What was kept is kept no more."""
        ...

    def text(self, task: int) -> tuple[str, Any]:
        """The id and the payload of a task."""
        ...

    def tasks_by_key(self, keys: Sequence[str]) -> dict[str, TaskRow]:
        """The tasks with these ids, as far as there are any."""
        ...

    def erase(self, worker: int) -> None:
        """Remove what a worker has written from the log."""
        ...

    def importing(self) -> bool:
        """Whether an import of tasks has begun and not ended (``campaign.records``)."""
        ...


class LeaseColumns(Columns):
    """Leases by number; task and worker of each are the pool's entry of the same number. ``secret`` ends its id."""

    status: NDArray[np.int8]
    leased_at: Floats
    expires_at: Floats
    seq: Ints
    ended_at: Floats
    label: Ints
    counted: NDArray[np.int8]
    dropped: NDArray[np.bool_]
    free: NDArray[np.bool_]
    secret: Ints

    def __init__(self) -> None:
        super().__init__(
            status=(np.int8, 0), leased_at=(np.float64, 0.0), expires_at=(np.float64, 0.0), seq=(np.int64, 0),
            ended_at=(np.float64, math.nan), label=(np.int64, NONE), counted=(np.int8, NONE), dropped=(np.bool_, False),
            free=(np.bool_, False), secret=(np.int64, NONE),
        )  # fmt: skip


@dataclass(slots=True)
class Changes:
    """What a transaction has changed since it began: old values, by which it can be undone, and new events.

    ``large``: more than is worth undoing.
    """

    row: tuple[Any, ...] = ()
    tasks: dict[int, tuple[Any, ...]] = field(default_factory=dict)
    leases: dict[int, tuple[Any, ...]] = field(default_factory=dict)
    workers: dict[str, tuple[Any, ...] | None] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    comments: dict[int, str | None] = field(default_factory=dict)
    first_task: int = 0
    first_lease: int = 0
    first_class: int = 0
    batches: set[str] = field(default_factory=set)
    large: bool = False


class CampaignState:
    """One campaign as it is after event ``row.seq``."""

    def __init__(self, row: CampaignRow) -> None:
        self.row = row
        self.classes: list[Prior] = []
        self.batches: dict[str, BatchRow] = {}
        self.leases = LeaseColumns()
        self.closed_seq = Columns(seq=(np.int64, NONE))
        self.comments: dict[int, str] = {}
        #: By number, in the order in which they came.
        self.workers: list[WorkerRow] = []
        self.numbers: dict[str, int] = {}
        self.pool: TaskPool = self._new_pool()
        #: What this process knows of the crowd, up to an event of its own (policy ``crowd``).
        self.crowd: CrowdModel | None = None
        self._source: Source | None = None
        self._open: dict[int, set[int]] = {}
        self._expiries: list[tuple[float, int, int]] = []
        self._controls: list[tuple[float, int]] | None = None
        self.changes = Changes()

    # Transactions -----------------------------------------------------------------------------------------------

    @property
    def source(self) -> Source:
        """The store's, inside a transaction."""
        assert self._source is not None, "a campaign is read and changed inside a transaction"
        return self._source

    def begin(self, source: Source | None) -> None:
        """A transaction begins."""
        self._source = source
        self.changes = Changes(
            _values(self.row), first_task=self.pool.tasks.size, first_lease=self.leases.size,
            first_class=len(self.classes),
        )  # fmt: skip

    def copy_for_reading(self) -> CampaignState:
        """The campaign as it is now, for a thread that reads its log beside it."""
        view, log = copy(self), self.source.outside()
        view.row, view.classes, view.changes = replace(self.row), list(self.classes), Changes()
        view._source = cast(Source, log)  # nothing else is read from it
        return view

    def rollback(self) -> bool:
        """Undo the transaction; False if it has changed so much that the state has to be read again."""
        changes, pool = self.changes, self.pool
        if not changes.events:
            return True
        if changes.large:
            return False
        for name, value in zip(_FIELDS, changes.row, strict=True):
            setattr(self.row, name, value)
        learnt = any(event.kind == "refitted" for event in changes.events)
        if self.crowd is not None and (learnt or self.crowd.seq > self.row.seq):
            self.crowd = None
        for task, values in changes.tasks.items():
            pool.restore(task, values[:-1])
            self.closed_seq.set_row(task, values[-1:])
        pool.forget_entries(changes.first_lease)
        self.leases.truncate(changes.first_lease)
        for lease, old in changes.leases.items():
            self.leases.set_row(lease, old[:-1])
            pool.entries.answer[lease] = old[-1]
        for lease, comment in changes.comments.items():
            self._say(lease, comment)
        for name, tally in changes.workers.items():
            if tally is not None:
                self.workers[self.numbers[name]] = WorkerRow(*tally)
        known = len(self.workers) - sum(tally is None for tally in changes.workers.values())
        for new in self.workers[known:]:
            del self.numbers[new.worker]
        del self.workers[known:], pool.held[known:]
        self._index_leases()
        self.changes = Changes()
        return True

    def end(self) -> None:
        """The transaction has ended: what is learnt of the crowd follows, which a failure would have undone."""
        for event in self.changes.events:
            if event.kind == "refitted":
                break  # learning reads the log: whoever asks next does that
            self._teach(event)
        self._source, self.changes = None, Changes()

    # Following the log ------------------------------------------------------------------------------------------

    def record(self, at: float, kind: str, data: dict[str, Any]) -> Event:
        """Append the next event, and follow it."""
        event = Event(self.row.seq + 1, at, kind, data)
        self.changes.events.append(event)
        try:
            self.apply(event)
        except BaseException:
            self.changes.large = True  # nobody knows how far it came
            raise
        return event

    def apply(self, event: Event) -> None:
        """Come to the state after the next event."""
        if event.seq != self.row.seq + 1:
            raise ConflictError(
                f"event {self.row.seq + 1} of campaign {self.row.id!r} is missing from its log.",
                "Restore the database from a backup.",
            )
        self.row.seq, self.row.last_at = event.seq, event.at
        if (erased := erased_number(event.data.get("worker", ""))) is not None:
            self._rename(erased, event.data["worker"])
        _FOLLOW[event.kind](self, event)
        if self._source is None:
            self._teach(event)

    def _teach(self, event: Event) -> None:
        """Let the crowd's model follow, if the event is the next one for it."""
        if self.crowd is not None and self.crowd.seq == event.seq - 1:
            self.crowd.apply(self, event)

    def log(self, after: int, limit: int) -> list[Event]:
        """Events above a number, those that are not written yet included; of new tasks without their data."""
        pending = self.changes.events
        written = self.row.seq - len(pending)
        found = self.source.log(after, limit) if after < written else []
        new = (event for event in pending if event.seq > after)
        return [*found, *(replace(e, data={}) if e.kind == "tasks_added" else e for e in new)][:limit]

    def last_event(self, kind: str) -> int | None:
        """The number of the last event of a kind."""
        for event in reversed(self.changes.events):
            if event.kind == kind:
                return event.seq
        return self.source.last_event(kind)

    # What is asked ----------------------------------------------------------------------------------------------

    def lease(self, id: str) -> LeaseRow | None:
        """A lease by its id."""
        number = self._number(id)
        return None if number < 0 else self.lease_row(number)

    def _number(self, id: str) -> int:
        """The number of a lease, -1 if there is none of that id."""
        found = split_lease_id(id)
        if found is None or found[0] != self.row.id or not 0 <= found[1] < self.leases.size:
            return NONE
        return found[1] if self.leases.secret[found[1]] == found[2] else NONE

    def get_lease(self, id: str) -> LeaseRow:
        """A lease by its id, or a NotFoundError."""
        lease = self.lease(id)
        if lease is None:
            raise NotFoundError("there is no such lease.", "Ask for a task and use the lease's id.")
        return lease

    def lease_row(self, number: int) -> LeaseRow:
        """A lease by its number."""
        status, leased_at, expires_at, seq, ended_at, label, counted, dropped, free, secret = self.leases.row(number)
        entries = self.pool.entries
        return LeaseRow(
            joined_lease_id(self.row.id, number, secret), int(entries.task[number]),
            self.workers[entries.worker[number]].worker, STATUSES[status], leased_at, expires_at, seq,
            None if ended_at != ended_at else ended_at, None if label == NONE else label,
            None if counted == NONE else bool(counted), dropped, free, self.comments.get(number), number,
        )  # fmt: skip

    def lease_of(self, task: int, worker: str) -> LeaseRow | None:
        """The worker's lease of a task, whatever became of it; a worker has each task once."""
        entries, who, entry = self.pool.entries, self.numbers.get(worker, NONE), int(self.pool.tasks.last[task])
        while entry >= 0 and entries.worker[entry] != who:
            entry = int(entries.before[entry])
        return None if entry < 0 else self.lease_row(entry)

    def predictions_of(self, workers: Iterable[str]) -> dict[int, tuple[str, int]]:
        """The workers' labels that are a model's: worker and label by task."""
        n, numbers = self.leases.size, [self.numbers[name] for name in workers if name in self.numbers]
        which = np.flatnonzero(np.isin(self.pool.entries.worker[:n], numbers) & (self.leases.secret[:n] == NONE))
        columns = self.pool.entries.task[which], self.pool.entries.worker[which], self.leases.label[which]
        rows = zip(*(column.tolist() for column in columns), strict=True)
        return {task: (self.workers[who].worker, label) for task, who, label in rows}

    def open_leases(self, worker: str) -> list[LeaseRow]:
        """The worker's leases that are out, oldest first."""
        return [self.lease_row(n) for n in sorted(self._open.get(self.numbers.get(worker, NONE), ()))]

    def expired(self, now: float, limit: int) -> list[LeaseRow]:
        """Leases that are out although their time is over, those that expired first first."""
        found: dict[int, LeaseRow] = {}  # a lease that was renewed or undone may be listed twice
        while self.next_expiry() is not None and self._expiries[0][0] <= now and len(found) < limit:
            number = heapq.heappop(self._expiries)[2]
            found[number] = self.lease_row(number)
        for lease in found.values():  # they are out until an event says otherwise
            heapq.heappush(self._expiries, (lease.expires_at, lease.seq, lease.number))
        return list(found.values())

    def next_expiry(self) -> float | None:
        """When the next lease expires."""
        heap, leases = self._expiries, self.leases
        while heap:
            at, _, number = heap[0]
            if number < leases.size and leases.status[number] == _OUT and leases.expires_at[number] == at:
                return at
            heapq.heappop(heap)
        return None

    def labels_of(self, worker: str, dropped: bool, after: int, limit: int) -> list[LeaseRow]:
        """The worker's leases with bought labels, dropped ones or others, given out after event ``after``."""
        n, leases = self.leases.size, self.leases
        mine = self.pool.entries.worker[:n] == self.numbers.get(worker, NONE)
        which = mine & (leases.counted[:n] == 1) & (leases.dropped[:n] == dropped) & (leases.seq[:n] > after)
        return [self.lease_row(int(number)) for number in np.flatnonzero(which)[:limit]]

    def find_worker(self, worker: str) -> WorkerRow | None:
        """The tally of a worker who has had a task, else None; not to be changed."""
        number = self.numbers.get(worker)
        return None if number is None or self.workers[number].given == 0 else self.workers[number]

    def is_control(self, task: int) -> bool:
        """Whether the answer of a task is known."""
        return bool(self.pool.tasks.gold[task] >= 0)

    def is_adjudicated(self, task: int) -> bool:
        """Whether the requester has set the answer of a task."""
        return task in self.row.rules.adjudicated

    def counted_labels(self, task: int) -> int:
        """The labels of a task that count, those included that came after its answer was known."""
        entries, entry, many = self.pool.entries, int(self.pool.tasks.last[task]), 0
        while entry >= 0:
            many += bool(entries.answer[entry] >= 0)
            entry = int(entries.before[entry])
        return many

    def is_full(self, task: int) -> bool:
        """Whether a task has as many labels as it can have."""
        return bool(self.closed_seq.row(task)[0] != NONE)

    def group_of(self, task: int) -> Group:
        """The tasks that are as good as this one; those of controls have negative classes, and no policy sees them."""
        class_id, node, w = self.pool.group_of(task)
        return ~class_id if self.is_control(task) else class_id, node, w

    def unanswered(self) -> tuple[Ints, Ints]:
        """Leases of the budget that are out, and those that have lapsed, whose answers may still come and count."""
        size = self.leases.size
        status, paid = self.leases.status[:size], ~self.leases.free[:size]
        return tuple(np.flatnonzero((status == code) & paid) for code in (_OUT, _CODE[EXPIRED]))  # type: ignore[return-value]

    def groups(self) -> dict[Group, int]:
        """How many tasks but controls are in each state that has any; not to be changed."""
        return self.pool.groups()

    def task_classes(self, first: int, end: int) -> Sequence[int]:
        """The class of each task from number ``first`` to before ``end``."""
        found: list[int] = self.pool.tasks.class_id[first:end].tolist()
        return found

    def control_for(self, worker: str, start: float) -> int | None:
        """Of the controls that the worker never held: the first at place ``start`` or later, else the first."""
        tasks, n, who = self.pool.tasks, self.row.tasks, self.numbers.get(worker, NONE)
        if self._controls is None:
            is_known = tasks.gold[:n] >= 0
            is_known[list(self.row.rules.adjudicated)] = False
            known = np.flatnonzero(is_known)
            self._controls = sorted(zip(tasks.place[known].tolist(), known.tolist(), strict=True))
        inorder = sorted(self._controls, key=lambda one: one[0] < start)
        return next((task for _, task in inorder if not self.pool.has_held(task, who)), None)

    def first_right(self, worker: str, many: int) -> Bools:
        """Of the first tasks that a worker had: which of them they answered, and as it is known."""
        n, entries = self.leases.size, self.pool.entries
        mine = np.flatnonzero(entries.worker[:n] == self.numbers.get(worker, NONE))[:many]
        gold, label = self.pool.tasks.gold[entries.task[mine]], self.leases.label[mine]
        return (gold >= 0) & (label >= 0) & self.row.config.answer_type.agrees(label, gold)

    def states(self) -> tuple[Ints, Ints, Ints, Ints]:
        """The tasks but controls by number, with class, node and labels of each."""
        tasks, asked = self.pool.tasks, np.flatnonzero(self.pool.tasks.gold[: self.row.tasks] < 0)
        class_id, node, labels = (
            column[asked].astype(np.int64) for column in (tasks.class_id, tasks.node, tasks.labels)
        )
        return asked, class_id, node, labels

    def median_seconds(self) -> dict[str, float]:
        """The median time that each worker took for a label that came in time."""
        n, leases = self.leases.size, self.leases
        which = np.flatnonzero((leases.status[:n] == _CODE[LABELLED]) & (leases.secret[:n] != NONE))  # no model's
        who, seconds = self.pool.entries.worker[which], leases.ended_at[which] - leases.leased_at[which]
        order = np.argsort(who, kind="stable")
        used, first = np.unique(who[order], return_index=True)
        parts = np.split(seconds[order], first[1:])
        return {self.workers[j].worker: float(np.median(some)) for j, some in zip(used.tolist(), parts, strict=False)}

    @property
    def nbytes(self) -> int:
        """Bytes in memory, about."""
        crowd = 0 if self.crowd is None else self.crowd.nbytes
        return self.pool.nbytes + self.leases.nbytes + 400 * len(self.workers) + 150 * len(self.classes) + crowd

    # Reading it from tables -------------------------------------------------------------------------------------

    def loaded(self) -> None:
        """All columns were filled from the read tables: make what follows from them."""
        self.pool.published = self.row.tasks
        tasks, config = self.pool.tasks, self.row.config
        tasks.most_labels[: tasks.size], tasks.most_in_flight[: tasks.size] = config.most_labels, config.most_in_flight
        self._link_entries()
        self._index_leases()
        self.pool = self._new_pool().take_over(self.pool)

    def _link_entries(self) -> None:
        """The chains of the entries of each task, and how many tasks each worker has held."""
        entries, n = self.pool.entries, self.pool.entries.size
        order = np.argsort(entries.task[:n], kind="stable")
        task = entries.task[order]
        again = np.concatenate([[False], task[1:] == task[:-1]]) if n else np.zeros(0, dtype=bool)
        entries.before[order] = np.where(again, np.concatenate([[NONE], order[:-1]]) if n else order, NONE)
        ends = np.flatnonzero(np.concatenate([task[1:] != task[:-1], [True]])) if n else order
        self.pool.tasks.last[task[ends]] = order[ends]
        self.pool.held = np.bincount(entries.worker[:n], minlength=len(self.workers)).tolist()

    def _index_leases(self) -> None:
        """The leases that are out, by worker and by expiry."""
        leases, entries = self.leases, self.pool.entries
        self._open, self._expiries = {}, []
        for number in np.flatnonzero(leases.status[: leases.size] == _OUT).tolist():
            self._open.setdefault(int(entries.worker[number]), set()).add(number)
            self._expiries.append((float(leases.expires_at[number]), int(leases.seq[number]), number))
        heapq.heapify(self._expiries)

    def _new_pool(self) -> TaskPool:
        """What the policy chooses by: an order of the tasks, or none where the crowd's model has one of its own."""
        config = self.row.config
        size = config.answers, config.most_labels
        if config.knows_workers:
            return TaskPool(*size)
        scores = scores_for(config, self.classes) if self.row.rules.ranked else None
        return OrderedPool(*size, config.seed, scores, config.label_cost)

    # What events change -----------------------------------------------------------------------------------------

    def _worker(self, name: str) -> WorkerRow:
        """The tally of a worker, to be changed; a new worker gets the next number."""
        number = self.numbers.get(name)
        if number is None:
            number = self.numbers[name] = len(self.workers)
            self.workers.append(WorkerRow(name))
            self.changes.workers[name] = None
        elif name not in self.changes.workers:
            self.changes.workers[name] = _tally(self.workers[number])
        return self.workers[number]

    def _touch_task(self, task: int) -> None:
        if task not in self.changes.tasks:
            self.changes.tasks[task] = (*self.pool.tasks.row(task), *self.closed_seq.row(task))

    def _touch(self, number: int) -> int:
        """A lease is about to change, and its task; returns the task."""
        if number < self.changes.first_lease and number not in self.changes.leases:
            self.changes.leases[number] = (*self.leases.row(number), int(self.pool.entries.answer[number]))
        task = int(self.pool.entries.task[number])
        self._touch_task(task)
        return task

    def _say(self, lease: int, comment: str | None) -> None:
        if comment is None:
            self.comments.pop(lease, None)
        else:
            self.comments[lease] = comment

    def _add_lease(
        self,
        id: str,
        task: int,
        worker: str,
        status: LeaseStatus,
        at: float,
        until: float,
        seq: int,
        free: bool = False,
    ) -> int:
        tally = self._worker(worker)
        self._touch_task(task)
        found = split_lease_id(id)
        assert found is not None and found[1] == self.leases.size, "leases are numbered in the order of the log"
        (number,) = self.leases.extend(
            1, status=_CODE[status], leased_at=at, expires_at=until, seq=seq, free=free, secret=found[2],
            ended_at=math.nan if status == LEASED else at,
        )  # fmt: skip
        self.row.given += 1
        tally.given += 1
        tally.last_at = at
        who = self.numbers[worker]
        if status == LEASED:
            self.pool.assign(number, task, who)
            self._list_open(number)
        else:
            self.pool.hold(number, task, who)
        return number

    def _list_open(self, number: int) -> None:
        """A lease is out, until another time than before."""
        leases = self.leases
        self._open.setdefault(int(self.pool.entries.worker[number]), set()).add(number)
        heapq.heappush(self._expiries, (float(leases.expires_at[number]), int(leases.seq[number]), number))

    def _end(self, event: Event, id: str, status: LeaseStatus) -> tuple[int, WorkerRow]:
        """A lease has ended, or its answer came later; returns its number and its worker's tally."""
        number = self._number(id)
        who = int(self.pool.entries.worker[number])
        self._touch(number)
        self.leases.status[number], self.leases.ended_at[number] = _CODE[status], event.at
        self._open.get(who, set()).discard(number)
        return number, self._worker(self.workers[who].worker)

    def _end_without_label(self, event: Event, id: str, status: LeaseStatus) -> tuple[int, WorkerRow]:
        """A lease has ended without a label: its reservation is given back."""
        number, tally = self._end(event, id, status)
        self._reserve(number, -1)
        self.pool.cancel(number)
        return number, tally

    def _reserve(self, number: int, change: int) -> None:
        """A label of the budget is reserved for the lease, or is no more; control questions may be outside of it."""
        if not self.leases.free[number]:
            self.row.reserved += change

    def _buy(self, number: int, tally: WorkerRow, change: int) -> None:
        """A label is bought, or its price is given back; those of control questions may be outside of the budget."""
        if self.leases.free[number]:
            tally.free += change
            self.row.rules = replace(self.row.rules, free=self.row.rules.free + change)
        else:
            tally.bought += change
            self.row.spent += change

    def _count(self, event: Event, number: int, label: int, last: bool) -> None:
        """A label counts; ``last``: its task can have no more."""
        task = self._touch(number)
        self.pool.complete(number, label)
        if last and not self.is_control(task):
            self.closed_seq.set_row(task, (event.seq,))
            self.row.full += 1

    def _discount(self, number: int, again: bool) -> None:
        """A label counts no more; ``again``: it is in flight."""
        task = self._touch(number)
        self.pool.reopen(number)
        if not again:
            self.pool.cancel(number)
        if not self.is_control(task) and self.is_full(task):
            self.row.full -= 1
            self.closed_seq.set_row(task, (NONE,))

    def _on_created(self, event: Event) -> None:
        self.row.rules = Rules(event.data["rate_memory"])

    def _on_tasks_added(self, event: Event) -> None:
        row, data = self.row, event.data
        self.changes.large = True
        class_id, places = [task[-1] for task in data["tasks"]], data["places"]
        self.pool.add(class_id, places, row.config.most_labels, row.config.most_in_flight)
        self.closed_seq.extend(len(places))
        if data.get("hidden", False):
            row.rules = replace(row.rules, hidden=row.rules.hidden + len(places))
            return
        self._publish(len(places), data, replace(row.rules, ranked=data["ranked"]))

    def _on_tasks_published(self, event: Event) -> None:
        rules, data = self.row.rules, event.data
        self.changes.large = True
        self._publish(data["tasks"], data, replace(rules, ranked=data["ranked"], hidden=0))

    def _publish(self, tasks: int, data: dict[str, Any], rules: Rules) -> None:
        """So many tasks are there from now on, some with new priors."""
        self._extend_batch(data["batch"], tasks, data["digest"])
        before = self.row.rules.ranked, ranked_by_grid(self.classes)
        self.classes.extend(prior_from(prior) for prior in data["classes"])
        self.row.classes = len(self.classes)
        self.row.rules = rules
        self._take_back()
        first, self.row.tasks = self.row.tasks, self.row.tasks + tasks
        self.row.controls += int(np.count_nonzero(self.pool.tasks.gold[first : self.row.tasks] >= 0))
        self._controls = None
        if rules.ranked and before != (True, ranked_by_grid(self.classes)):
            self.pool.published = self.row.tasks
            self.pool = self._new_pool().take_over(self.pool)
        else:
            self.pool.publish()

    def _on_batch_ended(self, event: Event) -> None:
        self._extend_batch(event.data["batch"], 0, event.data["digest"])

    def _extend_batch(self, key: str | None, tasks: int, digest: str | None) -> None:
        if key:
            before = self.batches.get(key)
            self.batches[key] = BatchRow(tasks + (0 if before is None else before.tasks), digest)
            self.changes.batches.add(key)
            self.changes.large = True

    def _on_leased(self, event: Event) -> None:
        data = event.data
        self._take_back()
        observe_arrival(self.row, event.at)
        number = self._add_lease(
            data["lease"], data["task"], data["worker"], LEASED, event.at, data["expires_at"], event.seq,
            data.get("free", False),
        )  # fmt: skip
        self._reserve(number, 1)
        self._worker(data["worker"]).tested += data.get("control", False)

    def _on_labelled(self, event: Event) -> None:
        number, tally = self._end(event, event.data["lease"], LABELLED)
        seconds = event.at - float(self.leases.leased_at[number])
        self._reserve(number, -1)
        observe_end(self.row, seconds, True)
        tally.seconds += seconds
        if not event.data["counted"]:
            self.pool.cancel(number)
        self._answered(event, number, tally)

    def _on_late(self, event: Event) -> None:
        number, tally = self._end(event, event.data["lease"], LATE)
        self.row.late += 1
        tally.late += 1
        self._answered(event, number, tally)

    def _answered(self, event: Event, number: int, tally: WorkerRow) -> None:
        data, leases = event.data, self.leases
        leases.label[number], leases.counted[number] = data["label"], data["counted"]
        self._comment(number, data.get("comment"))
        self.row.kept += 1
        tally.labels += 1
        if data["counted"]:
            self._buy(number, tally, 1)
            self._count(event, number, data["label"], data["last"])

    def _comment(self, number: int, comment: str | None) -> None:
        self.changes.comments.setdefault(number, self.comments.get(number))
        self._say(number, comment)

    def _on_predicted(self, event: Event) -> None:
        """A model's labels are not bought, and count for no task's limit (``campaign.predictions``)."""
        row, data = self.row, event.data
        self.changes.large = True
        for task, label in zip(data["tasks"], data["labels"], strict=True):
            id = prediction_id(row.id, self.leases.size)
            number = self._add_lease(id, task, data["worker"], LABELLED, event.at, event.at, event.seq)
            self.leases.label[number], self.leases.counted[number] = label, False
        row.kept += len(data["tasks"])
        row.spent += data["charged"]
        row.rules = replace(row.rules, predicted=row.rules.predicted + len(data["tasks"]))
        self._worker(data["worker"]).labels += len(data["tasks"])

    def _on_expired(self, event: Event) -> None:
        number, tally = self._end_without_label(event, event.data["lease"], EXPIRED)
        self.row.expired += 1
        tally.expired += 1
        until = min(float(self.leases.expires_at[number]), event.at)
        observe_end(self.row, until - float(self.leases.leased_at[number]), False)

    def _on_released(self, event: Event) -> None:
        number, tally = self._end_without_label(event, event.data["lease"], RELEASED)
        self._comment(number, event.data.get("comment"))
        self.row.released += 1
        tally.released += 1
        observe_end(self.row, event.at - float(self.leases.leased_at[number]), False)

    def _on_renewed(self, event: Event) -> None:
        number = self._number(event.data["lease"])
        self._touch(number)
        self.leases.expires_at[number] = event.data["expires_at"]
        self._list_open(number)

    def _on_undone(self, event: Event) -> None:
        lease = self.get_lease(event.data["lease"])
        number, tally = lease.number, self._worker(lease.worker)
        self._touch(number)
        tally.labels -= 1
        tally.seconds -= (lease.ended_at or event.at) - lease.leased_at
        self.row.kept -= 1
        self._reserve(number, 1)
        if lease.counted:
            self._buy(number, tally, -1)
            self._discount(number, True)
        else:
            self.pool.reopen(number)
        self._without_answer(number, LEASED, math.nan)
        self._list_open(number)

    def _without_answer(self, number: int, status: LeaseStatus, ended_at: float) -> None:
        leases = self.leases
        leases.status[number], leases.ended_at[number] = _CODE[status], ended_at
        leases.label[number] = leases.counted[number] = NONE

    def _on_self_assigned(self, event: Event) -> None:
        """Nothing was reserved and nothing is in flight: the lease is over as it begins."""
        data = event.data
        self._add_lease(data["lease"], data["task"], data["worker"], RELEASED, event.at, event.at, event.seq)

    def _on_withdrawn(self, event: Event) -> None:
        lease = self.get_lease(event.data["lease"])
        number, tally = lease.number, self._worker(lease.worker)
        self._touch(number)
        self.row.kept -= 1
        tally.labels -= 1
        if lease.status == LATE:
            self.row.late -= 1
            tally.late -= 1
        else:
            tally.seconds -= (lease.ended_at or event.at) - lease.leased_at
        if lease.counted:
            self._buy(number, tally, -1)
            self._discount(number, False)
        self._without_answer(number, RELEASED, event.at)

    def _on_paused(self, event: Event) -> None:
        self.row.paused = True
        self.row.rules = replace(self.row.rules, paused_because=event.data.get("because", ""))

    def _on_resumed(self, event: Event) -> None:
        self.row.paused = False
        self.row.rules = replace(self.row.rules, paused_because="")
        if self.row.last_arrival is not None:
            self.row.last_arrival = event.at  # nobody could arrive during the pause

    def _on_changed(self, event: Event) -> None:
        row = self.row
        self._take_back()
        for name in COUNTED & event.data.keys():
            setattr(row, name, event.data[name])
        row.amended = amended_with(row.amended, event.data)
        row.config = row.config.with_changes(json.loads(row.amended))

    def _on_tuned(self, event: Event) -> None:
        self.row.rho = event.data["rho"]

    def _on_closed(self, event: Event) -> None:
        self._take_back()
        self.row.closed_seq, self.row.closed_reason = event.seq, event.data["reason"]

    def _on_reopened(self, event: Event) -> None:
        self.row.closed_seq = self.row.closed_reason = None

    def _on_clock_accepted(self, event: Event) -> None:
        """The log goes on at another time; if at an earlier one, what was dated later is brought back to it."""
        row, leases, n = self.row, self.leases, self.leases.size
        if row.last_arrival is not None:
            row.last_arrival = event.at
        if "expires_at" in event.data:
            self.changes.large = True
            until, out = event.data["expires_at"], leases.status[:n] == _OUT
            late = leases.expires_at[:n] > until
            early = out & (leases.leased_at[:n] > event.at)
            for number in np.flatnonzero(late | early).tolist():
                self._touch(number)
            leases.expires_at[:n][late] = until
            leases.leased_at[:n][early] = event.at
            self._index_leases()
            row.arrivals = row.arrival_s = 0.0  # they counted the time that the clock was ahead

    def _on_refitted(self, event: Event) -> None:
        """What was learnt follows from the log itself (``campaign.crowd_model``), and so does what was repaired."""

    _on_refitting = _on_rebuilt = _on_refitted

    def _on_noticed(self, event: Event) -> None:
        self.row.rules = replace(self.row.rules, noticed=tuple(Notice(*one) for one in event.data["notices"]))

    def _take_back(self, worker: str | None = None) -> None:
        """The notice about a worker, or the one that nobody can label more, no longer holds."""
        noticed = self.row.rules.noticed
        kept = tuple(one for one in noticed if one.worker != worker or one.kind == "truths_contradict")
        if kept != noticed:
            self.row.rules = replace(self.row.rules, noticed=kept)

    def _on_worker_paused(self, event: Event) -> None:
        self._take_back(event.data["worker"])
        tally = self._worker(event.data["worker"])
        tally.standing, tally.reason = "paused", event.data["reason"]

    def _on_worker_blocked(self, event: Event) -> None:
        """The leases that the worker held end; nobody has skipped them, so no tally says so."""
        self._take_back(event.data["worker"])
        for id in event.data["leases"]:
            self._end_without_label(event, id, RELEASED)
        tally = self._worker(event.data["worker"])
        tally.standing, tally.reason = "blocked", event.data["reason"]

    def _on_worker_restored(self, event: Event) -> None:
        self._take_back()
        tally = self._worker(event.data["worker"])
        tally.standing, tally.reason = "active", ""

    def _on_worker_erased(self, event: Event) -> None:
        """The worker is called otherwise from now on, and nothing that they have written is left."""
        self.changes.large = True
        who, tally = self.numbers[event.data["worker"]], self._worker(event.data["worker"])
        tally.reason = ""
        for lease in [lease for lease in self.comments if self.pool.entries.worker[lease] == who]:
            self.changes.comments[lease] = self.comments.pop(lease)

    def _rename(self, number: int, name: str) -> None:
        """Call a worker otherwise; whoever reads the log after that meets no other name."""
        if number < len(self.workers) and (old := self.workers[number].worker) != name:
            self.workers[number].worker = name
            self.numbers = {name if which == number else one: which for one, which in self.numbers.items()}
            noticed = tuple(one._replace(worker=name) if one.worker == old else one for one in self.row.rules.noticed)
            self.row.rules = replace(self.row.rules, noticed=noticed)

    def _on_turned_away(self, event: Event) -> None:
        row, tally = self.row, self._worker(event.data["worker"])
        workers = row.rules.turned_away_workers + (tally.turned_away == 0)
        row.rules = replace(row.rules, turned_away=row.rules.turned_away + 1, turned_away_workers=workers)
        tally.turned_away += 1
        observe_turned_away(row, event.at)

    def _on_labels_dropped(self, event: Event) -> None:
        """A dropped label was bought and stays so; its task loses it, and may get another one."""
        for id, _ in event.data["leases"]:
            number = self._number(id)
            self._discount(number, False)
            self.leases.dropped[number] = True
        self._worker(event.data["worker"]).dropped += len(event.data["leases"])

    def _on_labels_restored(self, event: Event) -> None:
        tasks = self.pool.tasks
        for id, label in event.data["leases"]:
            number = self._number(id)
            task = self._touch(number)
            self._count(event, number, label, bool(tasks.labels[task] + 1 >= tasks.most_labels[task]))
            self.leases.dropped[number] = False
        self._worker(event.data["worker"]).dropped -= len(event.data["leases"])

    def _on_gold_set(self, event: Event) -> None:
        """Tasks become control questions: they are out of the policy's sight, whatever labels they have."""
        controls = {task for task, _ in event.data["answers"]}
        rules = self.row.rules
        self.row.rules = replace(rules, adjudicated=tuple(task for task in rules.adjudicated if task not in controls))
        self._know(event)

    def _on_adjudicated(self, event: Event) -> None:
        new = [task for task, _ in event.data["answers"] if not self.is_adjudicated(task)]
        self.row.rules = replace(self.row.rules, adjudicated=(*self.row.rules.adjudicated, *new))
        self._know(event)

    def _on_adjudication_undone(self, event: Event) -> None:
        row, rules, undone = self.row, self.row.rules, set(event.data["tasks"])
        self.changes.large = True
        row.rules = replace(rules, adjudicated=tuple(task for task in rules.adjudicated if task not in undone))
        for task in event.data["tasks"]:
            self._touch_task(task)
            self.pool.forget_truth(task)
            row.controls -= 1
            tasks = self.pool.tasks
            if tasks.labels[task] < tasks.most_labels[task]:
                self.closed_seq.set_row(task, (NONE,))
                continue
            row.full += 1
            if not self.is_full(task):
                self.closed_seq.set_row(task, (event.seq,))

    def _on_guarantee_drawn(self, event: Event) -> None:
        self.row.rules = replace(self.row.rules, guarantee=event.seq)

    def _on_guarantee_answered(self, event: Event) -> None:
        """The log has the answers (``campaign.guarantee``)."""

    _on_guarantee_looked = _on_guarantee_answered

    def _on_guarantee_reopened(self, event: Event) -> None:
        self.row.rules = replace(self.row.rules, guarantee=0)

    def _know(self, event: Event) -> None:
        """The answers of tasks are known."""
        self.changes.large = True
        self._controls = None
        for task, answer in event.data["answers"]:
            self._touch_task(task)
            if not self.is_control(task) and task < self.row.tasks:
                self.row.controls += 1
                self.row.full -= self.is_full(task)
            self.pool.know(task, answer)

    def _on_predictions_dropped(self, event: Event) -> None:
        row, worker = self.row, event.data["worker"]
        row.rules = replace(row.rules, dropped_models=(*row.rules.dropped_models, worker))
        self._worker(worker).dropped += event.data["labels"]

    def _on_predictions_restored(self, event: Event) -> None:
        row, worker = self.row, event.data["worker"]
        row.rules = replace(row.rules, dropped_models=tuple(n for n in row.rules.dropped_models if n != worker))
        self._worker(worker).dropped -= event.data["labels"]

    def _on_features_added(self, event: Event) -> None:
        self.row.rules = replace(self.row.rules, features=event.data["hash"])

    def _on_audit_drawn(self, event: Event) -> None:
        rules, seed = self.row.rules, event.data["seed"]
        drawn = (*rules.audit, *((task, NOT_ANSWERED) for task in event.data["tasks"]))
        of, first = (rules.audit_of, rules.audit_seed) if rules.audit else (self.row.tasks, seed)
        self.row.rules = replace(rules, audit=drawn, audit_of=of, audit_next=self.row.tasks, audit_seed=first)

    def _on_audit_answered(self, event: Event) -> None:
        rules, said = self.row.rules, dict(event.data["answers"])
        audit = tuple((task, said.get(task, old)) for task, old in rules.audit)
        of = rules.audit_of if any(answer == NOT_ANSWERED for _, answer in audit) else rules.audit_next
        self.row.rules = replace(rules, audit=audit, audit_of=of)


_FOLLOW: Final[dict[str, Callable[[CampaignState, Event], None]]] = {
    kind: getattr(CampaignState, f"_on_{kind}") for kind in KINDS
}


def new_campaign(id: str, config: CampaignSettings, now: float) -> CampaignState:
    """A campaign before its first event."""
    return CampaignState(CampaignRow(id, config, now, config.budget, config.deadline, config.lease_seconds, config.rho))
