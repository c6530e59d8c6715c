"""Campaigns in a database, the same statements for SQLite and PostgreSQL: one log each, and tables to read from.

A transaction locks the campaign's row (SQLite: the one write lock), so that commands on one campaign follow one another
in all processes. The campaign itself is in memory (``campaign.state``): whoever has the lock lets it follow the events
of other processes, and has it for itself until the transaction ends. What it changes is written at the end, all rows
of a table by one statement; a transaction that fails is undone in memory too. Campaigns that were used longest ago are
given up when all of them take more than ``NEXTLABEL_MEMORY`` megabytes. Reads take no lock and load no campaign, and
each answer is as of one moment; a database in memory has one connection, and its readers wait for writers.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from threading import Lock, RLock
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import (
    Connection,
    Double,
    Engine,
    Select,
    and_,
    bindparam,
    case,
    cast,
    delete,
    extract,
    func,
    insert,
    literal_column,
    select,
)
from sqlalchemy.exc import IntegrityError

from nextlabel.campaign.events import Event
from nextlabel.campaign.records import ACTIVE, deleted_campaign, no_campaign, taken_by_deleted
from nextlabel.campaign.rows import CampaignRow, LeaseRow, TaskRow, WorkerRow, split_lease_id
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.campaign.state import CampaignState, new_campaign
from nextlabel.errors import ConflictError, InputError, NotFoundError
from nextlabel.model.prior import Prior
from nextlabel.model.tables import prior_from
from nextlabel.store.campaign_tables import (
    LEASES,
    REASON,
    TASKS,
    TASKS_ADDED,
    WORKER,
    campaign_from,
    campaign_values,
    changed_rows,
    load_state,
    payload_from,
    read_events,
    read_lease,
    read_task,
    together,
)
from nextlabel.store.engine import (
    LOCK_WAIT_S,
    MEMORY,
    Row,
    Runner,
    busy,
    checked_url,
    errors_as_unavailable,
    make_engine,
)
from nextlabel.store.migrate import check_file, migrate
from nextlabel.store.records import GONE, SqlRecords, kept_name
from nextlabel.store.tables import (
    campaigns,
    classes,
    create_tables,
    deleted_campaigns,
    events,
    imports,
    kept,
    leases,
    payloads,
    tasks,
    texts,
    workers,
)
from nextlabel.tracing import span
from nextlabel.wording import is_text

#: Rows that are fetched at once where their size is limited, and events that a campaign follows at once.
ROW_BUFFER, FOLLOWED = 20, 2000

#: Ids of tasks in one statement: the parameters of one are limited.
KEYS_AT_ONCE = 10_000

#: Megabytes of campaigns in memory, unless ``NEXTLABEL_MEMORY`` says otherwise.
USUAL_MEMORY = 2048

#: Tasks and leases of a campaign that is read outside of the transaction.
LARGE_CAMPAIGN = 20_000

#: Seconds between two looks at how much memory campaigns take.
LOOK_S = 1.0

T = TypeVar("T")
_CAMPAIGN: Any = bindparam("campaign")
_ID: Any = bindparam("id")
_COLUMNS = tuple(campaigns.c)
_SEQ, _CAMPAIGN_ID = _COLUMNS.index(campaigns.c.seq), _COLUMNS.index(campaigns.c.id)
_lock_campaign = select(*_COLUMNS).where(campaigns.c.id == _ID).with_for_update()

#: The server's time in seconds since 1970 (PostgreSQL), alone and with the lock.
_server_time = select(cast(extract("epoch", func.clock_timestamp()), Double))
_lock_with_time = _lock_campaign.add_columns(cast(extract("epoch", func.clock_timestamp()), Double))
_skip_locked = _lock_with_time.with_for_update(skip_locked=True)
_campaign_by_id = select(*_COLUMNS).where(campaigns.c.id == _ID)

_all_campaigns = (
    select(*_COLUMNS)
    .where(campaigns.c.id.not_like(f"{GONE}%"))
    .order_by(campaigns.c.created_at.desc(), campaigns.c.number.desc())
)
_deleted_at = select(deleted_campaigns.c.deleted_at).where(deleted_campaigns.c.id == _ID)

_log = select(events.c.seq, events.c.at, events.c.kind, events.c.data, texts.c.data.label("text")).select_from(
    events.outerjoin(texts, and_(texts.c.campaign == events.c.campaign, texts.c.seq == events.c.seq))
)

#: Without the data of events that added tasks, which may have a megabyte.
_light_log = _log.with_only_columns(
    events.c.seq, events.c.at, events.c.kind,
    case((events.c.kind == literal_column(f"'{TASKS_ADDED}'"), literal_column("'{}'")), else_=events.c.data),
    texts.c.data.label("text"), maintain_column_froms=True,
)  # fmt: skip


def _after(log: Any) -> Any:
    return (
        log.where(events.c.campaign == _CAMPAIGN, events.c.seq > bindparam("after"))
        .order_by(events.c.seq)
        .limit(bindparam("many"))
    )


events_after, _light_after = _after(_log), _after(_light_log)

_light_before = (
    _light_log.where(events.c.campaign == _CAMPAIGN, events.c.seq < bindparam("before"))
    .order_by(events.c.seq.desc())
    .limit(bindparam("many"))
)

_last_event = (
    select(events.c.seq)
    .where(events.c.campaign == _CAMPAIGN, events.c.kind == bindparam("kind"))
    .order_by(events.c.seq.desc())
    .limit(1)
)

_payloads = select(payloads.c.number, payloads.c.key, payloads.c.data).where(payloads.c.campaign == _CAMPAIGN)
_text = _payloads.where(payloads.c.number == bindparam("number"))
_payloads_after = (
    _payloads.where(payloads.c.number > bindparam("after")).order_by(payloads.c.number).limit(bindparam("many"))
)

_texts = (
    select(events.c.seq, events.c.data, texts.c.data.label("text"))
    .join(texts, and_(texts.c.campaign == events.c.campaign, texts.c.seq == events.c.seq))
    .where(events.c.campaign == _CAMPAIGN)
)
NOBODY = -1

_active_import = select(imports.c.id).where(
    imports.c.campaign == _ID, imports.c.state.in_([literal_column(f"'{state}'") for state in ACTIVE])
)
_tasks = TASKS.where(tasks.c.campaign == _CAMPAIGN)
_leases = LEASES.where(leases.c.campaign == _CAMPAIGN)


def _seconds_since_boot() -> float:
    """A steady clock, which counts while the machine sleeps where the system has one that does."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


class ServerClock:
    """Seconds since 1970 by the clock of a database server: one clock for all processes and machines that use it.

    The server is asked in the statement that locks a campaign, so that a command's time costs nothing extra. Between
    two answers this process counts on by a clock that nobody sets.
    """

    def __init__(self) -> None:
        self._ahead = time.time() - _seconds_since_boot()  # until the server is heard

    def __call__(self) -> float:
        """How late it is by the server's clock."""
        return _seconds_since_boot() + self._ahead

    def hear(self, seconds: float) -> None:
        """The server says that it is so late now."""
        self._ahead = seconds - _seconds_since_boot()


@dataclass(slots=True)
class Resident:
    """A campaign in the memory of this process, None before it is read; whoever uses it has its lock."""

    lock: Any = field(default_factory=RLock)
    state: CampaignState | None = None
    used: float = 0.0


class StoredLog:
    """Where a campaign finds what it does not keep in memory (``campaign.state.Source``).

    With a ``runner`` it is inside a transaction.
    """

    def __init__(self, store: SqlStore, id: str, number: int, runner: Runner | None = None) -> None:
        self._store, self._id, self.number, self._runner = store, id, number, runner

    def _reading(self) -> AbstractContextManager[Connection]:
        return self._store.read() if self._runner is None else nullcontext(self._runner.connection)

    def outside(self) -> StoredLog:
        """The same for a thread that reads beside the transaction."""
        return StoredLog(self._store, self._id, self.number)

    def log(self, after: int, limit: int) -> list[Event]:
        """Events above a number; those that added tasks without their data."""
        with self._reading() as connection:
            return _light_events(connection, self.number, limit, after=after)

    def last_event(self, kind: str) -> int | None:
        """The number of the last event of a kind."""
        with self._reading() as connection:
            found = connection.execute(_last_event, {"campaign": self.number, "kind": kind}).scalar()
        return None if found is None else int(found)

    def kept(self, part: str) -> bytes | None:
        """What was kept of the crowd's model."""
        with self._reading() as connection:
            return _get(connection, kept_name(self._id, part))

    def keep(self, part: str, data: bytes) -> None:
        """Keep a learner's word or the features."""
        if self._runner is None:
            self._store.put(kept_name(self._id, part), data)
        elif self.kept(part) is None:
            self._runner.connection.execute(insert(kept).values(name=kept_name(self._id, part), data=data))

    def drop(self, part: str) -> None:
        """Keep it no more."""
        with self._reading() as connection:
            connection.execute(delete(kept).where(kept.c.name == kept_name(self._id, part)))

    def payloads(self, after: int, limit: int) -> list[tuple[str, Any]]:
        """The ids and payloads of tasks with a number above ``after``."""
        which = {"campaign": self.number, "after": after, "many": limit}
        with self._reading() as connection:
            return [(key, json.loads(data)) for _, key, data in connection.execute(_payloads_after, which)]

    def text(self, task: int) -> tuple[str, Any]:
        """The id and the payload of a task."""
        assert self._runner is not None, "texts are read for commands"
        row = self._runner.one(_text, {"campaign": self.number, "number": task})
        key, data = ("", None) if row is None else row[1:]
        return key, payload_from(data, task)

    def find(self, keys: Sequence[str]) -> dict[str, tuple[int, Any]]:
        """The numbers and payloads of the tasks with these ids, as far as there are any."""
        with self._reading() as connection:
            found = _by_key(connection, self.number, keys)
            return {key: (number, json.loads(data)) for number, key, data in found}

    def erase(self, worker: int, worker_of: NDArray[np.int32]) -> None:
        """Remove what a worker has written from the log; ``worker_of`` says whose each lease is."""
        with self._reading() as connection:
            for seq, data, text in connection.execute(_texts, {"campaign": self.number}).all():
                about = json.loads(data)
                _, lease, _ = split_lease_id(about.get("lease", ""))
                if about.get("worker", NOBODY if lease < 0 else worker_of[lease]) == worker:
                    connection.execute(delete(texts).where((texts.c.campaign == self.number) & (texts.c.seq == seq)))
                    if REASON in json.loads(text):
                        new = {"campaign": self.number, "seq": seq, "data": json.dumps({REASON: ""})}
                        connection.execute(insert(texts).values(new))

    def importing(self) -> bool:
        """Whether an import is under way."""
        with self._reading() as connection:
            return connection.execute(_active_import, {"id": self._id}).first() is not None


class SqlStore:
    """Campaigns of one database that is open; its tables are those of this version."""

    def __init__(self, url: str, lock_wait_s: float = LOCK_WAIT_S, *, create: bool = True) -> None:
        self.url = checked_url(url)
        self.in_memory = self.url == MEMORY
        check_file(self.url, create)
        self.engine: Engine = make_engine(self.url, lock_wait_s=lock_wait_s)
        self._writer = self.engine.execution_options(writes=True)
        try:
            if self.in_memory:
                with self._writer.begin() as connection:
                    create_tables(connection)
            else:
                migrate(self.engine, create)
        except BaseException:
            self.engine.dispose()
            raise
        # Threads of one process take turns here instead of at the database.
        self._process_lock = RLock() if self.engine.dialect.name == "sqlite" else None
        self._lock_wait_s = -1.0 if self.in_memory else lock_wait_s
        self._open: Connection | None = None  # in memory: the transaction of the thread that has the lock
        self._server_clock = ServerClock() if self.engine.dialect.name == "postgresql" else None
        #: Seconds since 1970 by the clock of the database, or by this machine's where it has none.
        self.clock: Callable[[], float] = self._server_clock or time.time
        if self._server_clock is not None:
            with self.read() as connection:
                self._server_clock.hear(float(connection.execute(_server_time).scalar_one()))
        self._kept_lock = Lock()
        self._closed = False
        self._residents: dict[str, Resident] = {}
        self._residents_lock = Lock()
        self._looked = 0.0
        self.memory = _memory_limit()
        self.records = SqlRecords(self.read, self.write, self._locked, self._forget)

    # Transactions -----------------------------------------------------------------------------------------------

    @contextmanager
    def create(self, id: str, config: CampaignSettings, now: float) -> Iterator[CampaignState]:
        """A new campaign without events; ConflictError if the id is taken, or was by one that is deleted."""
        state = new_campaign(id, config, now)
        resident = Resident()
        with resident.lock, self.write() as connection:
            try:
                new = insert(campaigns).values(campaign_values(state.row)).returning(campaigns.c.number)
                number = int(connection.execute(new).scalar_one())
            except IntegrityError:
                raise ConflictError(f"there is a campaign {id!r} already.", "Choose another id.") from None
            if connection.execute(_deleted_at, {"id": id}).scalar() is not None:
                raise taken_by_deleted(id)
            runner = Runner(connection)
            state.begin(StoredLog(self, id, number, runner))
            yield state
            runner.write_all(changed_rows(number, state))
        state.end()
        resident.state = state
        with self._residents_lock:
            self._residents.setdefault(id, resident)
        self._make_room()

    @contextmanager
    def transaction(self, id: str) -> Iterator[CampaignState]:
        """The campaign, locked; NotFoundError if there is none, GoneError if it was deleted."""
        with self.transactions([id]) as states:
            yield states[id]

    @contextmanager
    def transactions(self, ids: Iterable[str]) -> Iterator[dict[str, CampaignState]]:
        """Campaigns by id, locked together; one transaction for all.

        Of several campaigns, those that are not there or that somebody else has locked just now are left out, so that
        nobody waits for them; one alone is waited for, or a NotFoundError.
        """
        wanted = sorted(set(ids))
        states: dict[str, CampaignState] = {}
        with ExitStack() as locks:
            residents = {id: one for id in wanted if (one := self._lock_resident(id, locks, len(wanted) == 1))}
            with self._turn():
                try:
                    with span("transaction"), self.write() as connection:
                        runner, numbers = Runner(connection), {}
                        for found in self._lock_campaigns(runner, list(residents)):
                            id, numbers[id] = found[_CAMPAIGN_ID], int(found[0])
                            states[id] = state = self._current(runner, residents[id], found)
                            state.begin(StoredLog(self, id, numbers[id], runner))
                        yield states
                        runner.write_all(together([changed_rows(numbers[id], state) for id, state in states.items()]))
                except BaseException:
                    for id, state in states.items():
                        if not state.rollback():
                            residents[id].state = None
                    raise
                finally:
                    for state in states.values():
                        state.end()
                    for id, resident in residents.items():
                        if resident.state is None and id not in states:  # perhaps there is no such campaign
                            self._forget(id)
        self._make_room()

    def _lock_resident(self, id: str, locks: ExitStack, wait: bool) -> Resident | None:
        """The campaign in memory, which this thread has for itself; None if another thread has it."""
        with self._residents_lock:
            resident = self._residents.setdefault(id, Resident())
            resident.used = time.monotonic()
        if not (resident.lock.acquire(timeout=self._lock_wait_s) if wait else resident.lock.acquire(blocking=False)):
            if wait:
                raise busy()
            return None
        locks.callback(resident.lock.release)
        if resident.state is None and not self.in_memory:
            resident.state = self._preloaded(id)
        return resident

    def _preloaded(self, id: str) -> CampaignState | None:
        """A large campaign that is not in memory, read before anybody has to wait for the lock on it."""
        with self.read(repeatable=True) as connection, suppress(NotFoundError):
            number, row = _find(connection, id)
            return load_state(Runner(connection), number, row) if row.tasks + row.given >= LARGE_CAMPAIGN else None
        return None

    def _current(self, runner: Runner, resident: Resident, found: Row) -> CampaignState:
        """The campaign as of its last event: what is in memory follows the events since, or it is read."""
        number, seq, state = int(found[0]), int(found[_SEQ]), resident.state
        if state is not None and state.row.seq < seq:
            resident.state = None  # until it has followed: an event that fails half-way leaves nothing
            while state is not None and state.row.seq < seq:
                state = self._follow(runner, number, state)
        if state is None or state.row.seq != seq:
            state = load_state(runner, *campaign_from(found))
        resident.state = state
        return state

    def _follow(self, runner: Runner, number: int, state: CampaignState) -> CampaignState | None:
        """Follow more events of others; None if the campaign has to be read again."""
        which = {"campaign": number, "after": state.row.seq, "many": FOLLOWED}
        rows = runner.all(events_after, which)
        for event, _ in read_events(runner.connection, number, rows, with_payloads=False, chunk=FOLLOWED):
            if event.kind == "rebuilt":
                return None
            state.apply(event)
        return state if rows else None

    def _make_room(self) -> None:
        """Memory may be full now."""
        if time.monotonic() < self._looked + LOOK_S:
            return
        self._looked = time.monotonic()
        with self._residents_lock:
            used = {id: one.state.nbytes for id, one in self._residents.items() if one.state is not None}
            total = sum(used.values())
            for id in sorted(used, key=lambda one: self._residents[one].used):
                if total <= self.memory or len(used) == 1:
                    break
                resident = self._residents[id]
                if resident.lock.acquire(blocking=False):
                    try:
                        resident.state = None
                        total -= used.pop(id)
                    finally:
                        resident.lock.release()

    def _forget(self, id: str) -> None:
        """Keep nothing of a campaign in memory: it was deleted, or its tables were repaired."""
        with self._residents_lock:
            self._residents.pop(id, None)

    def _lock_campaigns(self, runner: Runner, ids: Sequence[str]) -> list[Row]:
        """The campaign, locked; of several those that are there and that nobody else has locked.

        A server says what time it is.
        """
        found: list[Row] = []
        for id in ids:
            if self._server_clock is None:
                row = runner.one(_lock_campaign, {"id": id})
            else:
                row = runner.one(_lock_with_time if len(ids) == 1 else _skip_locked, {"id": id})
            if row is not None:
                if self._server_clock is not None:
                    self._server_clock.hear(float(row[-1]))
                    row = row[:-1]
                found.append(row)
            elif len(ids) == 1:
                self._forget(id)
                raise _not_there(runner.connection, id)
        return found

    # Reads: no lock, no campaign in memory ----------------------------------------------------------------------

    def campaigns(self) -> list[CampaignRow]:
        """All campaigns, newest first."""
        with self.read() as connection:
            return [campaign_from(tuple(row))[1] for row in connection.execute(_all_campaigns)]

    def row(self, id: str) -> CampaignRow:
        """A campaign as it stands; NotFoundError if there is none."""
        with self.read() as connection:
            return _find(connection, id)[1]

    def classes(self, id: str) -> Sequence[Prior]:
        """The different priors of the campaign's tasks."""
        which = select(classes.c.prior).where(classes.c.campaign == _CAMPAIGN).order_by(classes.c.number)
        with self.read() as connection:
            found = connection.execute(which, {"campaign": _find(connection, id)[0]})
            return [prior_from(json.loads(text)) for (text,) in found]

    def events(self, id: str, after: int = 0, limit: int = 1000, max_bytes: int | None = None) -> list[Event]:
        """Events with a number above ``after``: at most ``limit``, and no more after ``max_bytes`` of data."""
        with self.read() as connection:
            number = _find(connection, id)[0]
            which = {"campaign": number, "after": after, "many": limit}
            with connection.execute(events_after, which, execution_options=_limited(max_bytes)) as rows:
                return list(_first_bytes(read_events(connection, number, rows), max_bytes))

    def light_events(self, id: str, limit: int, *, after: int | None = None, before: int | None = None) -> list[Event]:
        """Events without the data of those that added tasks: above a number, or newest first, below one."""
        with self.read() as connection:
            return _light_events(connection, _find(connection, id)[0], limit, after=after, before=before)

    def last_event(self, id: str, kind: str) -> int | None:
        """The number of the last event of a kind."""
        with self.read() as connection:
            number = _find(connection, id)[0]
        return StoredLog(self, id, number).last_event(kind)

    def tasks(self, id: str, after: int = -1, limit: int = 1000, max_bytes: int | None = None) -> list[TaskRow]:
        """Tasks with a number above ``after``: at most ``limit``, and no more after ``max_bytes`` of payloads."""
        with self.read() as connection:
            number, row = _find(connection, id)
            which = _tasks.where(tasks.c.number > after, tasks.c.number < row.tasks)
            statement = which.order_by(tasks.c.number).limit(limit)
            with connection.execute(statement, {"campaign": number}, execution_options=_limited(max_bytes)) as rows:
                return list(_first_bytes(((read_task(one), len(one.data or "")) for one in rows), max_bytes))

    def tasks_by_key(self, id: str, keys: Iterable[str]) -> dict[str, TaskRow]:
        """The tasks with these ids, as far as there are any."""
        with self.read() as connection:
            found = [number for number, *_ in _by_key(connection, _find(connection, id)[0], list(keys))]
        return {task.key: task for task in self.tasks_by_number(id, found).values()}

    def tasks_by_number(self, id: str, numbers: Iterable[int]) -> dict[int, TaskRow]:
        """The tasks with these numbers, as far as there are any."""
        with self.read() as connection:
            number, row = _find(connection, id)
            which = _tasks.where(tasks.c.number.in_(sorted(set(numbers))), tasks.c.number < row.tasks)
            return {task.number: task for task in map(read_task, connection.execute(which, {"campaign": number}))}

    def leases(
        self,
        id: str,
        tasks: Iterable[int] | None = None,
        *,
        ids: Iterable[str] | None = None,
        open: bool = False,
        commented: bool = False,
        worker: str | None = None,
        limit: int | None = None,
    ) -> list[LeaseRow]:
        """Leases in the order in which they were given out: of some tasks, by their ids, or of one worker.

        ``open``: those that are out, in the order in which they expire; ``commented``: with a comment, newest first.
        """
        which: Select[Any] = _leases
        order: Any = leases.c.number
        if tasks is not None:  # sorted, not read in order: SQLite would go through all leases of the campaign
            which, order = which.where(leases.c.task.in_(list(tasks))), leases.c.number + literal_column("0")
        wanted = None if ids is None else set(ids)
        if wanted is not None:
            parts = map(split_lease_id, wanted)
            which = which.where(leases.c.number.in_([number for campaign, number, _ in parts if campaign == id]))
        if open:  # written out, not bound: a partial index serves only queries in which its condition stands
            which, order = which.where(leases.c.status == literal_column("0")), leases.c.expires_at
        if commented:
            which, order = which.where(leases.c.comment.is_not(None)), leases.c.number.desc()
        if worker is not None:
            which = which.where(workers.c.worker == worker)
        with self.read() as connection:
            rows = connection.execute(which.order_by(order).limit(limit), {"campaign": _find(connection, id)[0]})
            found = [read_lease(id, row) for row in rows]
        return found if wanted is None else [one for one in found if one.id in wanted]

    def workers(self, id: str, limit: int = 1000) -> list[WorkerRow]:
        """Workers with most labels first."""
        which = select(*WORKER).where(workers.c.campaign == _CAMPAIGN)
        statement = which.order_by(workers.c.labels.desc(), workers.c.worker).limit(limit)
        with self.read() as connection:
            return [WorkerRow(*row) for row in connection.execute(statement, {"campaign": _find(connection, id)[0]})]

    # What a database keeps for all campaigns together -----------------------------------------------------------

    def get(self, name: str) -> bytes | None:
        """What is kept under a name for the whole database: settings, tables that take long to solve, snapshots."""
        with self._kept_lock:
            if self._closed:
                return None
            with self.read() as connection:
                return _get(connection, name)

    def put(self, name: str, data: bytes, *, replace: bool = False) -> bool:
        """Keep something under a name; False if there is something, unless it is replaced."""
        with self._kept_lock, suppress(IntegrityError):
            if not self._closed:
                with self.write() as connection:
                    if replace:
                        connection.execute(delete(kept).where(kept.c.name == name))
                    connection.execute(insert(kept).values(name=name, data=data))
                return True
        return False

    def forget_pages(self) -> None:
        """Have SQLite empty its write-ahead log, in which erased texts may be; a server does so in its own time."""
        if self.engine.dialect.name == "sqlite" and not self.in_memory:
            with self._turn(), errors_as_unavailable(), self.engine.connect() as connection:
                connection.connection.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Close all connections; a thread that still makes tables neither reads nor keeps any after that."""
        with self._kept_lock:
            self._closed = True
        self.engine.dispose()

    # Connections ------------------------------------------------------------------------------------------------

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A transaction that writes."""
        with self._turn(), errors_as_unavailable(), self._writer.begin() as connection:
            self._open = connection if self.in_memory else None
            try:
                yield connection
            finally:
                self._open = None

    @contextmanager
    def read(self, repeatable: bool = False) -> Iterator[Connection]:
        """A connection to read from; ``repeatable``: all that is read is as of one moment."""
        if not self.in_memory:
            level = {"isolation_level": "REPEATABLE READ"} if repeatable and self._server_clock is not None else {}
            with errors_as_unavailable(), self.engine.connect().execution_options(**level) as connection:
                yield connection
            return
        with self._turn():
            if self._open is not None:  # this thread's own transaction
                yield self._open
                return
            with self.engine.connect() as connection:
                yield connection

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """This thread's turn to write."""
        if self._process_lock is None:
            yield
            return
        if not self._process_lock.acquire(timeout=self._lock_wait_s):
            raise busy()
        try:
            yield
        finally:
            self._process_lock.release()

    def _locked(self, connection: Connection, id: str) -> tuple[int, int]:
        """A campaign, locked: its number, and about how many rows it has."""
        number, row = campaign_from(self._lock_campaigns(Runner(connection), [id])[0])
        return number, row.tasks + row.hidden + row.given + row.seq


def _memory_limit() -> int:
    """Bytes that campaigns in memory may take, from ``NEXTLABEL_MEMORY``."""
    text = os.environ.get("NEXTLABEL_MEMORY", str(USUAL_MEMORY))
    if not text.isdecimal() or int(text) < 1:
        raise InputError(
            f"NEXTLABEL_MEMORY {text[:40]!r} is not a number of megabytes.",
            f"Give a whole number such as {USUAL_MEMORY}.",
        )
    return int(text) << 20


def _find(connection: Connection, id: str) -> tuple[int, CampaignRow]:
    found = connection.execute(_campaign_by_id, {"id": id}).first()
    if found is None:
        raise _not_there(connection, id)
    return campaign_from(tuple(found))


def _light_events(
    connection: Connection, campaign: int, limit: int, *, after: int | None = None, before: int | None = None
) -> list[Event]:
    which = {"campaign": campaign, "many": limit, "after": after, "before": 2**62 if before is None else before}
    rows = connection.execute(_light_before if after is None else _light_after, which).all()
    return [event for event, _ in read_events(connection, campaign, rows, with_payloads=False, chunk=limit)]


def _by_key(connection: Connection, campaign: int, keys: Sequence[str]) -> Iterator[Any]:
    """Number, id and payload of the tasks with these ids."""
    keys = [key for key in keys if is_text(key)]
    for first in range(0, len(keys), KEYS_AT_ONCE):
        some = _payloads.where(payloads.c.key.in_(keys[first : first + KEYS_AT_ONCE]))
        yield from connection.execute(some, {"campaign": campaign})


def _get(connection: Connection, name: str) -> bytes | None:
    found = connection.execute(select(kept.c.data).where(kept.c.name == name)).scalar()
    return None if found is None else bytes(found)


def _not_there(connection: Connection, id: str) -> Exception:
    """What became of a campaign."""
    deleted = connection.execute(_deleted_at, {"id": id}).scalar()
    return no_campaign(id) if deleted is None else deleted_campaign(id)


def _limited(max_bytes: int | None) -> dict[str, Any]:
    """How rows are fetched: a few at a time where their size is limited."""
    return {} if max_bytes is None else {"stream_results": True, "max_row_buffer": ROW_BUFFER}


def _first_bytes(sized: Iterator[tuple[T, int]], max_bytes: int | None) -> Iterator[T]:
    """The first of some rows with their sizes, until they have so many bytes; more are not fetched."""
    for row, size in sized:
        yield row
        if max_bytes is not None:
            max_bytes -= size
            if max_bytes <= 0:
                return


def open_store(url: str, lock_wait_s: float | None = None, *, create: bool = True) -> SqlStore:
    """The store at that address (``store.engine``), its tables made if it has none.

    A command waits for another process for ``lock_wait_s`` seconds, or for as long as ``store.engine`` says. Without
    ``create``, a database that is not there, or has no tables, is not made: NotFoundError.
    """
    return SqlStore(url, create=create) if lock_wait_s is None else SqlStore(url, lock_wait_s, create=create)
