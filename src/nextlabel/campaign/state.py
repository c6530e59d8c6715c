"""A campaign in memory: one aggregate that follows its log. Events change it, and nothing else does.

``CampaignState.apply`` brings it from one event to the next, live and in a replay. It decides nothing: whatever depends
on the policy, the clock, chance or limits is in the event. Tasks and leases are columns (``policies.allocation``),
workers are objects. Ids and payloads of tasks stay where the log is (``Source``).

What a transaction changes is noted, so that the store writes it to its read tables, and so that a transaction that
fails is undone: the state is as before it (``rollback``). New tasks and names are not worth undoing; then the state is
read again.
Cost: an event 10 to 30 us; 130 bytes a task and 75 a lease.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Container, Iterable, Sequence
from copy import copy
from dataclasses import dataclass, field, fields, replace
from operator import attrgetter
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from nextlabel.arrays import Bools, Floats, Ints
from nextlabel.campaign.crowd_model import CrowdModel, moves
from nextlabel.campaign.events import KINDS, Event
from nextlabel.campaign.notices import Notice
from nextlabel.campaign.rates import observe_arrival, observe_end, observe_turned_away
from nextlabel.campaign.rows import (
    NOT_ANSWERED,
    BatchRow,
    CampaignRow,
    LeaseRow,
    TaskRow,
    WorkerRow,
    erased_number,
    lease_id,
    lease_number,
    split_lease_id,
)
from nextlabel.campaign.scoring import ranked_by_grid, scores_for
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.campaign.states import Standing
from nextlabel.campaign.transitions import EXPIRED, LABELLED, LATE, LEASED, RELEASED, LeaseStatus
from nextlabel.errors import ConflictError, NotFoundError
from nextlabel.model.prior import Prior
from nextlabel.model.tables import prior_from
from nextlabel.policies.allocation import EntryColumns, Group, TaskPool
from nextlabel.policies.ordered import OrderedPool

STATUSES: Final[tuple[LeaseStatus, ...]] = (LEASED, LABELLED, EXPIRED, RELEASED, LATE)
_CODE: Final = {status: code for code, status in enumerate(STATUSES)}
_OUT: Final = _CODE[LEASED]
#: The events that end leases, and how a worker stands after those about them.
_STATUS: Final[dict[str, LeaseStatus]] = {status: status for status in STATUSES}
_STANDING: Final[dict[str, Standing]] = {
    "worker_paused": "paused", "worker_blocked": "blocked", "worker_restored": "active",
}  # fmt: skip
_FIELDS: Final = tuple(one.name for one in fields(CampaignRow))
_values = attrgetter(*_FIELDS)
_tally = attrgetter(*(one.name for one in fields(WorkerRow)))
#: In the place of an event or a time that has not been, a label that was not given, and of whether it counts.
NONE: Final = -1
#: Texts of tasks that are remembered.
MOST_TEXTS: Final = 100


class Source(Protocol):
    """Where a campaign finds what it does not keep in memory; inside a transaction, with what that has written."""

    def outside(self) -> Source:
        """The same for a thread that reads beside the transaction."""

    def log(self, after: int, limit: int) -> list[Event]:
        """Events above a number; those that added tasks without their data."""

    def last_event(self, kind: str) -> int | None:
        """The number of the last event of a kind."""

    def kept(self, part: str) -> bytes | None:
        """What was kept of the crowd's model: its ``snapshot``, or a learner's word or features by hash."""

    def keep(self, part: str, data: bytes) -> None:
        """Keep a learner's word or the features."""

    def drop(self, part: str) -> None:
        """What was kept is kept no more."""

    def payloads(self, after: int, limit: int) -> list[tuple[str, Any]]:
        """The ids and payloads of tasks with a number above ``after``."""

    def text(self, task: int) -> tuple[str, Any]:
        """The id and the payload of a task."""

    def find(self, keys: Sequence[str]) -> dict[str, tuple[int, Any]]:
        """The numbers and payloads of the tasks with these ids, as far as there are any."""

    def erase(self, worker: int, worker_of: NDArray[np.int32]) -> None:
        """Remove what a worker has written from the log; ``worker_of`` says whose each lease is."""

    def importing(self) -> bool:
        """Whether an import of tasks has begun and not ended (``campaign.records``)."""


class LeaseColumns(EntryColumns):
    """Leases by number: an allocator's entries, and what else is known of each. ``secret`` ends the id."""

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
            ended_at=(np.float64, NONE), label=(np.int64, NONE), counted=(np.int8, NONE), dropped=(np.bool_, False),
            free=(np.bool_, False), secret=(np.int64, NONE),
        )  # fmt: skip


def task_from(
    number: int, key: str, payload: Any, class_id: int, place: float, node: int, w: int, labels: int, gold: int,
    last: int, closed: int,
) -> TaskRow:  # fmt: skip
    """A task of its columns."""
    seq, known = None if closed == NONE else closed, None if gold == NONE else gold
    return TaskRow(number, key, payload, class_id, place, node, w, labels, seq, known)


def lease_from(
    campaign: str, number: int, worker: str, comment: str | None, task: int, who: int, answer: int, previous: int,
    status: int, leased_at: float, expires_at: float, seq: int, ended_at: float, label: int, counted: int,
    dropped: bool, free: bool, secret: int,
) -> LeaseRow:  # fmt: skip
    """A lease of its columns."""
    return LeaseRow(
        lease_id(campaign, number, secret), task, worker, STATUSES[status], leased_at, expires_at, seq,
        None if ended_at == NONE else ended_at, None if label == NONE else label,
        None if counted == NONE else bool(counted), bool(dropped), bool(free), comment, number,
    )  # fmt: skip


@dataclass(slots=True)
class Changes:
    """What a transaction has changed since it began, beside its columns: old values, and what is new.

    ``large``: more than is worth undoing.
    """

    row: tuple[Any, ...] = ()
    workers: dict[int, tuple[Any, ...] | None] = field(default_factory=dict)
    comments: dict[int, str | None] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    #: Ids and payloads of tasks that are added.
    texts: dict[int, tuple[str, Any]] = field(default_factory=dict)
    batches: set[str] = field(default_factory=set)
    first_class: int = 0
    large: bool = False


class CampaignState:
    """One campaign as it is after event ``row.seq``."""

    def __init__(self, row: CampaignRow) -> None:
        self.row = row
        self.classes: list[Prior] = []
        self.batches: dict[str, BatchRow] = {}
        self.comments: dict[int, str] = {}
        #: By number, in the order in which they came.
        self.workers: list[WorkerRow] = []
        self.numbers: dict[str, int] = {}
        self.pool: TaskPool = self._new_pool()
        self.pool.entries = self.leases = LeaseColumns()
        #: What this process knows of the crowd, up to an event of its own (policy ``crowd``).
        self.crowd: CrowdModel | None = None
        self._source: Source | None = None
        self._open: dict[int, set[int]] = {}
        self._expiries: list[tuple[float, int, int]] = []
        self._controls: list[tuple[float, int]] | None = None
        self._texts: dict[int, tuple[str, Any]] = {}  # of tasks that were given out
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
        self.pool.begin()
        self.changes = Changes(_values(self.row), first_class=len(self.classes))

    def copy_for_reading(self) -> CampaignState:
        """The campaign as it is now, for a thread that reads its log beside it."""
        view, view_of = copy(self), self.source.outside()
        view.row, view.classes, view.changes, view._source = replace(self.row), list(self.classes), Changes(), view_of
        return view

    def rollback(self) -> bool:
        """Undo the transaction; False if it has changed so much that the state has to be read again."""
        changes = self.changes
        if not changes.events:
            return True
        if changes.large:
            return False
        for name, value in zip(_FIELDS, changes.row, strict=True):
            setattr(self.row, name, value)
        learnt = any(event.kind == "refitted" for event in changes.events)
        if self.crowd is not None and (learnt or self.crowd.seq > self.row.seq):
            self.crowd = None
        self.pool.rollback()
        for lease, comment in changes.comments.items():
            self._say(lease, comment)
        for who, tally in sorted(changes.workers.items(), reverse=True):
            if tally is not None:
                self.workers[who] = WorkerRow(*tally)
            else:
                del self.numbers[self.workers.pop().worker], self.pool.held[who:]
        self._index_leases()
        self._controls, self.changes = None, Changes()
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
        for move, arguments in moves(event, self._number):
            getattr(self.pool, move)(*arguments)
        if event.kind in SETS:
            for name, value in SETS[event.kind](event).items():
                setattr(self.row, name, value)
        elif (follow := _FOLLOW[event.kind]) is not None:
            follow(self, event)
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
        campaign, number, secret = split_lease_id(id)
        there = campaign == self.row.id and number < self.leases.size and self.leases.secret[number] == secret
        return self.lease_row(number) if there else None

    def get_lease(self, id: str) -> LeaseRow:
        """A lease by its id, or a NotFoundError."""
        lease = self.lease(id)
        if lease is None:
            raise NotFoundError("there is no such lease.", "Ask for a task and use the lease's id.")
        return lease

    def lease_row(self, number: int) -> LeaseRow:
        """A lease by its number."""
        worker = self.workers[self.leases.worker[number]].worker
        return lease_from(self.row.id, number, worker, self.comments.get(number), *self.leases.row(number))

    def lease_of(self, task: int, worker: str) -> LeaseRow | None:
        """The worker's lease of a task, whatever became of it; a worker has each task once."""
        who = self.numbers.get(worker, NONE)
        mine = (entry for entry in self.pool.entries_of(task) if self.leases.worker[entry] == who)
        return next((self.lease_row(entry) for entry in mine), None)

    def text(self, task: int) -> tuple[str, Any]:
        """The id and the payload of a task."""
        found = self.changes.texts.get(task) or self._texts.get(task)
        if found is None:
            found = self.source.text(task)
            if len(self._texts) >= MOST_TEXTS:
                self._texts.clear()
            self._texts[task] = found
        return found

    def tasks_by_key(self, keys: Sequence[str]) -> dict[str, TaskRow]:
        """The tasks with these ids, as far as there are any."""
        found, wanted = self.source.find(keys), set(keys)
        found |= {key: (number, payload) for number, (key, payload) in self.changes.texts.items() if key in wanted}
        return {
            key: task_from(number, key, payload, *self.pool.tasks.row(number))
            for key, (number, payload) in found.items()
            if number < self.row.tasks
        }

    def predictions_of(self, workers: Iterable[str]) -> dict[int, tuple[str, int]]:
        """The workers' labels that are a model's: worker and label by task."""
        n, leases = self.leases.size, self.leases
        numbers = [self.numbers[name] for name in workers if name in self.numbers]
        which = np.flatnonzero(np.isin(leases.worker[:n], numbers) & (leases.secret[:n] == NONE))
        columns = leases.task[which], leases.worker[which], leases.label[which]
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
        mine = leases.worker[:n] == self.numbers.get(worker, NONE)
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
        return task in self.row.adjudicated

    def counted_labels(self, task: int) -> int:
        """The labels of a task that count, those included that came after its answer was known."""
        return sum(bool(self.leases.answer[entry] >= 0) for entry in self.pool.entries_of(task))

    def is_full(self, task: int) -> bool:
        """Whether a task has as many labels as it can have."""
        return bool(self.pool.tasks.closed[task] != NONE)

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
            is_known[list(self.row.adjudicated)] = False
            known = np.flatnonzero(is_known)
            self._controls = sorted(zip(tasks.place[known].tolist(), known.tolist(), strict=True))
        inorder = sorted(self._controls, key=lambda one: one[0] < start)
        return next((task for _, task in inorder if not self.pool.has_held(task, who)), None)

    def first_right(self, worker: str, many: int) -> Bools:
        """Of the first tasks that a worker had: which of them they answered, and as it is known."""
        leases = self.leases
        mine = np.flatnonzero(leases.worker[: leases.size] == self.numbers.get(worker, NONE))[:many]
        gold, label = self.pool.tasks.gold[leases.task[mine]], leases.label[mine]
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
        who, seconds = leases.worker[which], leases.ended_at[which] - leases.leased_at[which]
        order = np.argsort(who, kind="stable")
        used, first = np.unique(who[order], return_index=True)
        parts = np.split(seconds[order], first[1:])
        return {self.workers[j].worker: float(np.median(some)) for j, some in zip(used.tolist(), parts, strict=False)}

    @property
    def nbytes(self) -> int:
        """Bytes in memory, about."""
        crowd = 0 if self.crowd is None else self.crowd.nbytes
        return self.pool.nbytes + 400 * len(self.workers) + 150 * len(self.classes) + crowd

    def loaded(self) -> None:
        """All columns were filled from the read tables: make what follows from them."""
        pool, leases = self.pool, self.leases
        pool.published = self.row.tasks
        pool.held = np.bincount(leases.worker[: leases.size], minlength=len(self.workers)).tolist()
        self.numbers = {tally.worker: number for number, tally in enumerate(self.workers)}
        self._index_leases()
        self.pool = self._new_pool().take_over(pool)

    def _index_leases(self) -> None:
        """The leases that are out, by worker and by expiry."""
        leases = self.leases
        self._open, self._expiries = {}, []
        for number in np.flatnonzero(leases.status[: leases.size] == _OUT).tolist():
            self._list_open(number)

    def _new_pool(self) -> TaskPool:
        """What the policy chooses by: an order of the tasks, or none where the crowd's model has one of its own."""
        config = self.row.config
        size = config.answers, config.most_labels, config.most_in_flight
        if config.knows_workers:
            return TaskPool(*size)
        scores = scores_for(config, self.classes) if self.row.ranked else None
        return OrderedPool(*size, config.seed, scores, config.label_cost)

    # What events change -----------------------------------------------------------------------------------------

    def _number(self, name: str) -> int:
        """The number of a worker; a new one gets the next."""
        number = self.numbers.get(name)
        if number is None:
            number = self.numbers[name] = len(self.workers)
            self.workers.append(WorkerRow(name))
            self.changes.workers[number] = None
        return number

    def _tally(self, number: int) -> WorkerRow:
        """The tally of a worker, to be changed."""
        if number not in self.changes.workers:
            self.changes.workers[number] = _tally(self.workers[number])
        return self.workers[number]

    def _worker(self, event: Event) -> WorkerRow:
        """The tally of an event's worker, to be changed."""
        return self._tally(self._number(event.data["worker"]))

    def _say(self, lease: int, comment: str | None) -> None:
        if comment is None:
            self.comments.pop(lease, None)
        else:
            self.comments[lease] = comment

    def _comment(self, number: int, comment: str | None) -> None:
        self.leases.touch(number)
        self.changes.comments.setdefault(number, self.comments.get(number))
        self._say(number, comment)

    def _begun(self, event: Event, number: int, status: LeaseStatus, until: float) -> WorkerRow:
        """The pool has a new entry: what else is known of that lease; returns its worker's tally."""
        out, tally = status == LEASED, self._tally(int(self.leases.worker[number]))
        self.leases.put(
            number, status=_CODE[status], leased_at=event.at, expires_at=until, seq=event.seq,
            ended_at=NONE if out else event.at,
        )  # fmt: skip
        self.row.given += 1
        tally.given += 1
        tally.last_at = event.at
        if out:
            self._list_open(number)
        return tally

    def _list_open(self, number: int) -> None:
        """A lease is out, until another time than before."""
        leases = self.leases
        self._open.setdefault(int(leases.worker[number]), set()).add(number)
        heapq.heappush(self._expiries, (float(leases.expires_at[number]), int(leases.seq[number]), number))

    def _ended(self, event: Event, number: int, status: LeaseStatus) -> WorkerRow:
        """A lease has ended, or its answer came later; returns its worker's tally."""
        who = int(self.leases.worker[number])
        self.leases.put(number, status=_CODE[status], ended_at=event.at)
        self._open.get(who, set()).discard(number)
        return self._tally(who)

    def _reserve(self, number: int, change: int) -> None:
        """A label of the budget is reserved for the lease, or is no more; control questions may be outside of it."""
        if not self.leases.free[number]:
            self.row.reserved += change

    def _buy(self, number: int, tally: WorkerRow, change: int) -> None:
        """A label is bought, or its price is given back; those of control questions may be outside of the budget."""
        if self.leases.free[number]:
            tally.free += change
            self.row.free += change
        else:
            tally.bought += change
            self.row.spent += change

    def _close(self, task: int, seq: int) -> None:
        """A task that is no control can have no more labels since event ``seq``, or can again (``NONE``)."""
        if not self.is_control(task) and self.is_full(task) != (seq != NONE):
            self.row.full += 1 if seq != NONE else -1
            self.pool.tasks.put(task, closed=seq)

    def _recount(self) -> None:
        """How many tasks are controls, and how many of the others can have no more labels."""
        tasks, n = self.pool.tasks, self.row.tasks
        known, self._controls = tasks.gold[:n] >= 0, None
        self.row.controls = int(np.count_nonzero(known))
        self.row.full = int(np.count_nonzero(~known & (tasks.closed[:n] != NONE)))

    def _on_tasks_added(self, event: Event) -> None:
        data, own = event.data, self.pool.tasks
        self.changes.large = True
        if self._source is not None:
            self.changes.texts.update(enumerate(((key, payload) for key, payload, _ in data["tasks"]), own.size))
        own.extend(len(data["places"]), class_id=[task[-1] for task in data["tasks"]], place=data["places"])
        if data.get("hidden", False):
            self.row.hidden += len(data["places"])
        else:
            self._publish(len(data["places"]), data)

    def _on_tasks_published(self, event: Event) -> None:
        self.changes.large = True
        self.row.hidden = 0
        self._publish(event.data["tasks"], event.data)

    def _publish(self, tasks: int, data: dict[str, Any]) -> None:
        """So many tasks are there from now on, some with new priors."""
        row = self.row
        self._extend_batch(data["batch"], tasks, data["digest"])
        before = row.ranked, ranked_by_grid(self.classes)
        self.classes.extend(prior_from(prior) for prior in data["classes"])
        row.classes, row.ranked, row.tasks = len(self.classes), data["ranked"], row.tasks + tasks
        self._take_back()
        self._recount()
        if row.ranked and before != (True, ranked_by_grid(self.classes)):
            self.pool.published = row.tasks
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
        _, number, secret = split_lease_id(data["lease"])
        tally = self._begun(event, number, LEASED, data["expires_at"])
        self.leases.put(number, secret=secret, free=data.get("free", False))
        self._reserve(number, 1)
        tally.tested += data.get("control", False)

    def _on_ended(self, event: Event) -> None:
        """A lease has ended in the way that its event is called, or its answer came late."""
        data, row, leases, status = event.data, self.row, self.leases, _STATUS[event.kind]
        number = lease_number(data["lease"])
        tally = self._ended(event, number, status)
        until = min(float(leases.expires_at[number]), event.at) if status == EXPIRED else event.at
        seconds = until - float(leases.leased_at[number])
        if status != LATE:
            self._reserve(number, -1)
            observe_end(row, seconds, status == LABELLED)
        if status == LABELLED:
            tally.seconds += seconds
        else:  # what is late, expired or released is counted under that name
            setattr(row, status, getattr(row, status) + 1)
            setattr(tally, status, getattr(tally, status) + 1)
        if status != EXPIRED:
            self._comment(number, data.get("comment"))
        if "label" in data:
            leases.put(number, label=data["label"], counted=data["counted"])
            row.kept += 1
            tally.labels += 1
            if data["counted"]:
                self._buy(number, tally, 1)
                if data["last"]:
                    self._close(int(leases.task[number]), event.seq)

    _on_labelled = _on_late = _on_expired = _on_released = _on_ended

    def _on_predicted(self, event: Event) -> None:
        """A model's labels are not bought, and count for no task's limit (``campaign.predictions``)."""
        row, data, who = self.row, event.data, self._number(event.data["worker"])
        for task, label in zip(data["tasks"], data["labels"], strict=True):
            number = self.leases.size
            self.pool.hold(number, task, who)
            self._begun(event, number, LABELLED, event.at)
            self.leases.put(number, label=label, counted=False)
        row.kept += len(data["tasks"])
        row.spent += data["charged"]
        row.predicted += len(data["tasks"])
        self._tally(who).labels += len(data["tasks"])

    def _on_renewed(self, event: Event) -> None:
        number = lease_number(event.data["lease"])
        self.leases.put(number, expires_at=event.data["expires_at"])
        self._list_open(number)

    def _on_undone(self, event: Event) -> None:
        number = self._unanswered(event, LEASED, NONE)
        self._reserve(number, 1)
        self._list_open(number)

    def _on_withdrawn(self, event: Event) -> None:
        self._unanswered(event, RELEASED, event.at)

    def _unanswered(self, event: Event, status: LeaseStatus, ended_at: float) -> int:
        """An answer is taken back; returns the number of its lease."""
        number, leases = lease_number(event.data["lease"]), self.leases
        tally = self._tally(int(leases.worker[number]))
        self.row.kept -= 1
        tally.labels -= 1
        if leases.status[number] == _CODE[LATE]:
            self.row.late -= 1
            tally.late -= 1
        else:
            tally.seconds -= float(leases.ended_at[number]) - float(leases.leased_at[number])
        if leases.counted[number] == 1:
            self._buy(number, tally, -1)
            self._close(int(leases.task[number]), NONE)
        leases.put(number, status=_CODE[status], ended_at=ended_at, label=NONE, counted=NONE)
        return number

    def _on_self_assigned(self, event: Event) -> None:
        """Nothing was reserved and nothing is in flight: the lease is over as it begins."""
        _, number, secret = split_lease_id(event.data["lease"])
        self._begun(event, number, RELEASED, event.at)
        self.leases.put(number, secret=secret)

    def _on_resumed(self, event: Event) -> None:
        self.row.paused, self.row.paused_because = False, ""
        if self.row.last_arrival is not None:
            self.row.last_arrival = event.at  # nobody could arrive during the pause

    def _on_changed(self, event: Event) -> None:
        self._take_back()
        self.row.config = self.row.config.with_changes(event.data)

    def _on_closed(self, event: Event) -> None:
        self._take_back()
        self.row.closed_seq, self.row.closed_reason = event.seq, event.data["reason"]

    def _on_clock_accepted(self, event: Event) -> None:
        """The log goes on at another time; if at an earlier one, what was dated later is brought back to it."""
        row, leases, n = self.row, self.leases, self.leases.size
        if row.last_arrival is not None:
            row.last_arrival = event.at
        if "expires_at" in event.data:
            until, out = event.data["expires_at"], leases.status[:n] == _OUT
            for number in np.flatnonzero(leases.expires_at[:n] > until).tolist():
                leases.put(number, expires_at=until)
            for number in np.flatnonzero(out & (leases.leased_at[:n] > event.at)).tolist():
                leases.put(number, leased_at=event.at)
            self._index_leases()
            row.arrivals = row.arrival_s = 0.0  # they counted the time that the clock was ahead

    def _take_back(self, worker: str | None = None) -> None:
        """The notice about a worker, or the one that nobody can label more, no longer holds."""
        if self.row.noticed:
            kept = (one for one in self.row.noticed if one.worker != worker or one.kind == "truths_contradict")
            self.row.noticed = tuple(kept)

    def _on_standing(self, event: Event) -> None:
        """How a worker stands; leases that they held end, and nobody has skipped them, so no tally says so."""
        standing, tally = _STANDING[event.kind], self._worker(event)
        self._take_back(None if standing == "active" else tally.worker)
        for number in map(lease_number, event.data.get("leases", ())):
            self._ended(event, number, RELEASED)
            self._reserve(number, -1)
        tally.standing, tally.reason = standing, event.data.get("reason", "")

    _on_worker_paused = _on_worker_blocked = _on_worker_restored = _on_standing

    def _on_worker_erased(self, event: Event) -> None:
        """The worker is called otherwise from now on, and nothing that they have written is left."""
        self.changes.large = True
        who = self._number(event.data["worker"])
        self._tally(who).reason = ""
        for lease in [lease for lease in self.comments if self.leases.worker[lease] == who]:
            self._comment(lease, None)

    def _rename(self, number: int, name: str) -> None:
        """Call a worker otherwise; whoever reads the log after that meets no other name."""
        if number < len(self.workers) and (old := self.workers[number].worker) != name:
            self.workers[number].worker = name
            self.numbers = {name if which == number else one: which for one, which in self.numbers.items()}
            noticed = (one._replace(worker=name) if one.worker == old else one for one in self.row.noticed)
            self.row.noticed = tuple(noticed)

    def _on_turned_away(self, event: Event) -> None:
        row, tally = self.row, self._worker(event)
        row.turned_away += 1
        row.turned_away_workers += tally.turned_away == 0
        tally.turned_away += 1
        observe_turned_away(row, event.at)

    def _on_labels_dropped(self, event: Event) -> None:
        """A dropped label was bought and stays so; its task loses it, and may get another one, until it is restored."""
        dropped, leases = event.kind == "labels_dropped", event.data["leases"]
        for number in (lease_number(id) for id, _ in leases):
            task = int(self.leases.task[number])
            if dropped or self.pool.tasks.labels[task] >= self.pool.most_labels:
                self._close(task, NONE if dropped else event.seq)
            self.leases.put(number, dropped=dropped)
        self._worker(event).dropped += len(leases) if dropped else -len(leases)

    _on_labels_restored = _on_labels_dropped

    def _on_gold_set(self, event: Event) -> None:
        """Tasks become control questions: they are out of the policy's sight, whatever labels they have."""
        self._adjudicate((), without={task for task, _ in event.data["answers"]})

    def _on_adjudicated(self, event: Event) -> None:
        self._adjudicate([task for task, _ in event.data["answers"] if not self.is_adjudicated(task)])

    def _on_adjudication_undone(self, event: Event) -> None:
        tasks = self.pool.tasks
        for task in event.data["tasks"]:
            if tasks.labels[task] < self.pool.most_labels:
                tasks.put(task, closed=NONE)
            elif not self.is_full(task):
                tasks.put(task, closed=event.seq)
        self._adjudicate((), without=set(event.data["tasks"]))

    def _adjudicate(self, new: Iterable[int], without: Container[int] = ()) -> None:
        """Of more tasks, and not of others, the requester has set the answer; the pool knows it."""
        self.row.adjudicated = (*(task for task in self.row.adjudicated if task not in without), *new)
        self._recount()

    def _on_predictions_dropped(self, event: Event) -> None:
        self.row.dropped_models = (*self.row.dropped_models, event.data["worker"])
        self._worker(event).dropped += event.data["labels"]

    def _on_predictions_restored(self, event: Event) -> None:
        self.row.dropped_models = tuple(name for name in self.row.dropped_models if name != event.data["worker"])
        self._worker(event).dropped -= event.data["labels"]

    def _on_audit_drawn(self, event: Event) -> None:
        row = self.row
        if not row.audit:
            row.audit_of, row.audit_seed = row.tasks, event.data["seed"]
        row.audit = (*row.audit, *((task, NOT_ANSWERED) for task in event.data["tasks"]))
        row.audit_next = row.tasks

    def _on_audit_answered(self, event: Event) -> None:
        row, said = self.row, dict(event.data["answers"])
        row.audit = tuple((task, said.get(task, old)) for task, old in row.audit)
        if all(answer != NOT_ANSWERED for _, answer in row.audit):
            row.audit_of = row.audit_next


#: Events that only set fields of the campaign's row.
SETS: Final[dict[str, Callable[[Event], dict[str, Any]]]] = {
    "created": lambda event: {"rate_memory": event.data["rate_memory"]},
    "tuned": lambda event: {"rho": event.data["rho"]},
    "paused": lambda event: {"paused": True, "paused_because": event.data.get("because", "")},
    "reopened": lambda event: {"closed_seq": None, "closed_reason": None},
    "noticed": lambda event: {"noticed": tuple(Notice(*one) for one in event.data["notices"])},
    "features_added": lambda event: {"features": event.data["hash"]},
    "guarantee_drawn": lambda event: {"guarantee": event.seq},
    "guarantee_reopened": lambda event: {"guarantee": 0},
}
#: What else follows from an event; nothing from those that the log alone has to say (refits, an expert's answers).
_FOLLOW: Final[dict[str, Callable[[CampaignState, Event], None] | None]] = {
    kind: getattr(CampaignState, f"_on_{kind}", None) for kind in KINDS
}


def new_campaign(id: str, config: CampaignSettings, now: float) -> CampaignState:
    """A campaign before its first event."""
    return CampaignState(CampaignRow(id, config, now, config.rho))
