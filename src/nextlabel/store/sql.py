"""Campaigns in a database, the same statements for SQLite and PostgreSQL.

A transaction locks the campaign's row (SQLite: the one write lock), so that commands on one campaign follow one another
in all processes. Events are written with what they change in that transaction, all rows of a table by one statement at
its end. A transaction may have several campaigns: what their commands need is read once, for all of them. A campaign's
row, the counts of ``states``, the priors, open leases and the tasks and workers that were seen last are remembered
between transactions, and are true as long as the campaign's last event is one that this process wrote. Reads take no
lock, and each answer is as of one moment; a database in memory has one connection, and its readers wait for writers.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from threading import Lock, RLock
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, Executable, delete, func, insert, select
from sqlalchemy.exc import IntegrityError

from nextlabel.beliefs.prior import Prior
from nextlabel.campaign.deletions import deleted_campaign, no_campaign, taken_by_deleted
from nextlabel.campaign.events import Event
from nextlabel.campaign.needs import Need
from nextlabel.campaign.rows import CampaignRow, Group, LeaseRow, TaskRow, WorkerRow, new_row
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.campaign.verification import Verification
from nextlabel.errors import ConflictError, GoneError
from nextlabel.problem.tables import prior_from
from nextlabel.store import questions
from nextlabel.store import statements as sql
from nextlabel.store.bulk import together
from nextlabel.store.engine import LOCK_WAIT_S, MEMORY, busy, checked_url, errors_as_unavailable, make_engine
from nextlabel.store.migrate import check_file, migrate
from nextlabel.store.overview import SqlOverview
from nextlabel.store.payloads import read_events
from nextlabel.store.prefetch import prefetch
from nextlabel.store.prepared import Row, Runner
from nextlabel.store.records import SqlAccess, SqlDeletions, SqlImports, SqlVisits, SqlWebhooks
from nextlabel.store.remembered_campaigns import RememberedCampaigns
from nextlabel.store.row_mapping import (
    ID,
    NUMBER,
    SEQ,
    campaign_from,
    campaign_values,
    class_of,
    event_from,
    lease_from,
    task_from,
    worker_from,
)
from nextlabel.store.sql_ledger import CachedRows, SqlLedger
from nextlabel.store.table_statistics import TableStatistics
from nextlabel.store.tables import campaigns, create_tables, settings, table_store
from nextlabel.store.verify import verify

#: Rows that are fetched at once where their size is limited.
ROW_BUFFER = 20
T = TypeVar("T")


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
        self.clock: Callable[[], float] = self._server_clock or time.time
        self._hear_time()
        self._statistics = TableStatistics(self.engine)
        self._tables_lock = Lock()
        # In memory, tables are beside the database: a transaction may wait for the thread that makes them.
        self._tables: dict[str, bytes] = {}
        self._closed = False
        self._remembered = RememberedCampaigns()
        self.access = SqlAccess(self._read, self._write)
        self.visits = SqlVisits(self._read, self._write)
        self.imports = SqlImports(self._read, self._write)
        self.webhooks = SqlWebhooks(self._read, self._write)
        self.deletions = SqlDeletions(self._read, self._write, self._number_and_rows, self._remembered.forget)
        self.overview = SqlOverview(self._read)

    @contextmanager
    def create(self, id: str, config: CampaignSettings, now: float) -> Iterator[SqlLedger]:
        """A new campaign."""
        row = new_row(id, config, now)
        with self._write() as connection:
            try:
                found = connection.execute(insert(campaigns).values(campaign_values(row)).returning(campaigns.c.number))
                number = int(found.scalar_one())
            except IntegrityError:
                raise ConflictError(f"there is a campaign {id!r} already.", "Choose another id.") from None
            if connection.execute(sql.deleted_at, {"id": id}).scalar() is not None:
                raise taken_by_deleted(id)
            with closing(Runner(connection)) as runner:
                ledger = SqlLedger(runner, number, row, CachedRows())
                yield ledger
                ledger.flush()
        self._remembered.keep(ledger)
        self._statistics.note(ledger.row)

    @contextmanager
    def transaction(self, id: str, remembered: bool = True) -> Iterator[SqlLedger]:
        """The campaign, locked; without ``remembered``, every row is read again."""
        with self._committed() as kept, self._write() as connection, closing(Runner(connection)) as runner:
            ledger = self._ledger(runner, self._lock_campaign(runner, id), remembered)
            before = ledger.row.seq
            try:
                yield ledger
                ledger.flush()
            except BaseException:
                self._remembered.keep_crowd(ledger, before)
                raise
            kept.append(self._remembered.keep(ledger))

    @contextmanager
    def transactions(self, needs: Mapping[str, Sequence[Need]]) -> Iterator[dict[str, SqlLedger]]:
        """Campaigns by id, locked, and what commands need of them read; those that others hold are left out."""
        with self._committed() as kept, self._write() as connection, closing(Runner(connection)) as runner:
            ledgers = {row[ID]: self._ledger(runner, row) for row in self._lock_campaigns(runner, sorted(needs))}
            before = {id: ledger.row.seq for id, ledger in ledgers.items()}
            try:
                prefetch(runner, [(ledger, needs[id]) for id, ledger in ledgers.items()])
                yield ledgers
                runner.write_all(together([ledger.take() for ledger in ledgers.values()]))
            except BaseException:
                for id, ledger in ledgers.items():
                    self._remembered.keep_crowd(ledger, before[id])
                raise
            kept.extend(self._remembered.keep(ledger) for ledger in ledgers.values())

    def verify(self, id: str, repair: bool, progress: Callable[[float], None] | None = None) -> Verification:
        """Hold every row against the events, and repair those that do not follow from them."""
        return verify(self, id, repair, progress)

    def campaigns(self) -> list[CampaignRow]:
        """Newest first."""
        with self._read() as connection:
            return [campaign_from(tuple(row))[1] for row in connection.execute(sql.all_campaigns)]

    def row(self, id: str) -> CampaignRow:
        """A campaign as it stands."""
        with self._read() as connection:
            return _find_campaign(connection, id)[1]

    def events(self, id: str, after: int = 0, limit: int = 1000, max_bytes: int | None = None) -> list[Event]:
        """Events with a number above ``after``."""
        with self._read() as connection:
            number = _find_campaign(connection, id)[0]
            parameters = {"campaign": number, "after": after, "many": limit}
            with connection.execute(sql.events_after, parameters, execution_options=_limited(max_bytes)) as rows:
                return list(_first_bytes(read_events(connection, number, rows), max_bytes))

    def light_log(self, id: str, after: int, limit: int) -> list[Event]:
        """Events above a number, without the data of those that added tasks."""
        with self._read() as connection:
            parameters = {"campaign": _find_campaign(connection, id)[0], "after": after, "many": limit}
            return [event_from(tuple(row)) for row in connection.execute(sql.light_events_after, parameters)]

    def last_event(self, id: str, kind: str) -> int | None:
        """The last event of a kind."""
        with self._read() as connection:
            parameters = {"campaign": _find_campaign(connection, id)[0], "kind": kind}
            found = connection.execute(sql.last_event, parameters).scalar()
        return None if found is None else int(found)

    def task_classes(self, id: str, first: int, end: int) -> Sequence[int]:
        """The classes of some tasks."""
        with self._read() as connection:
            number, row = _find_campaign(connection, id)
            if row.classes == 1:
                return [0] * (end - first)
            parameters = {"campaign": number, "first": first, "end": end}
            return [class_of(klass) for (klass,) in connection.execute(sql.task_classes, parameters)]

    def tasks(self, id: str, after: int = -1, limit: int = 1000, max_bytes: int | None = None) -> list[TaskRow]:
        """Tasks with a number above ``after``."""
        with self._read() as connection:
            number, row = _find_campaign(connection, id)
            parameters = {"campaign": number, "after": after, "until": row.tasks, "many": limit}
            with connection.execute(sql.tasks_after, parameters, execution_options=_limited(max_bytes)) as rows:
                return list(_first_bytes(((task_from(tuple(row)), len(row.payload)) for row in rows), max_bytes))

    def tasks_by_key(self, id: str, keys: Sequence[str]) -> dict[str, TaskRow]:
        """Those of the tasks that are there."""
        with self._read() as connection:
            number, row = _find_campaign(connection, id)
            found = connection.execute(sql.tasks_by_key, {"campaign": number, "keys": list(keys)})
            tasks = (task_from(tuple(one)) for one in found)
            return {task.key: task for task in tasks if task.number < row.tasks}

    def groups(self, id: str) -> dict[Group, int]:
        """Tasks in each state."""
        with self._read() as connection:
            parameters = {"campaign": _find_campaign(connection, id)[0]}
            return {(k, n, w): c for k, n, w, c in connection.execute(sql.states_of, parameters)}

    def classes(self, id: str) -> Sequence[Prior]:
        """Priors of the tasks."""
        with self._read() as connection:
            parameters = {"campaign": _find_campaign(connection, id)[0], "first": 0}
            return [prior_from(json.loads(text)) for (text,) in connection.execute(sql.classes_from, parameters)]

    def leases(self, id: str, tasks: Iterable[int]) -> list[LeaseRow]:
        """Leases of some tasks."""
        with self._read() as connection:
            parameters = {"campaign": _find_campaign(connection, id)[0], "tasks": list(tasks)}
            return [lease_from(tuple(row)) for row in connection.execute(sql.leases_of, parameters)]

    def workers(self, id: str, limit: int = 1000) -> list[WorkerRow]:
        """Workers with most labels first."""
        with self._read() as connection:
            parameters = {"campaign": _find_campaign(connection, id)[0], "many": limit}
            return [worker_from(tuple(row)) for row in connection.execute(sql.workers_of, parameters)]

    @property
    def kind(self) -> str:
        """sqlite or postgresql."""
        return self.engine.dialect.name

    def setting(self, name: str) -> str | None:
        """A setting of the whole database."""
        with self._read() as connection:
            found = connection.execute(select(settings.c.value).where(settings.c.name == name)).scalar()
        return None if found is None else str(found)

    def first_setting(self, name: str, value: str) -> bool:
        """Set what was never set; False if another process was first."""
        try:
            with self._write() as connection:
                connection.execute(insert(settings).values(name=name, value=value))
        except IntegrityError:
            return False
        return True

    def change_setting(self, name: str, value: str) -> None:
        """Set or replace a setting."""
        with self._write() as connection:
            connection.execute(delete(settings).where(settings.c.name == name))
            connection.execute(insert(settings).values(name=name, value=value))

    def load_table(self, name: str) -> bytes | None:
        """A table solved before."""
        if self.in_memory:
            return self._tables.get(name)
        with self._tables_lock:
            if self._closed:
                return None
            with self._read() as connection:
                found = connection.execute(select(table_store.c.data).where(table_store.c.name == name)).scalar()
        return None if found is None else bytes(found)

    def save_table(self, name: str, data: bytes) -> None:
        """Store a table."""
        if self.in_memory:
            self._tables.setdefault(name, data)
            return
        with self._tables_lock:
            if not self._closed:
                with suppress(IntegrityError), self._write() as connection:
                    connection.execute(insert(table_store).values(name=name, data=data))

    def ping(self) -> None:
        """Raise if the database does not answer."""
        with self._read() as connection:
            connection.execute(select(func.count()).select_from(settings)).scalar()

    def close(self) -> None:
        """Close all connections; a thread that still makes tables neither loads nor stores any after that."""
        with self._tables_lock:
            self._closed = True
        self._statistics.close()
        self.engine.dispose()

    @contextmanager
    def _write(self) -> Iterator[Connection]:
        with self._turn(), errors_as_unavailable(), self._writer.begin() as connection:
            self._open = connection if self.in_memory else None
            try:
                yield connection
            finally:
                self._open = None

    @contextmanager
    def _read(self) -> Iterator[Connection]:
        if not self.in_memory:
            with errors_as_unavailable(), self.engine.connect() as connection:
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

    def _hear_time(self) -> None:
        if self._server_clock is not None:
            with self._read() as connection:
                self._server_clock.hear(float(connection.execute(sql.server_time).scalar_one()))

    def _lock_campaign(self, runner: Runner, id: str) -> Row:
        """The campaign, locked; a server says what time it is."""
        try:
            if self._server_clock is None:
                return found_campaign(runner, sql.lock_campaign, id)
            *row, seconds = found_campaign(runner, sql.lock_campaign_with_time, id)
        except GoneError:  # deleted by another process
            self._remembered.forget(id)
            raise
        self._server_clock.hear(float(seconds))
        return tuple(row)

    def _lock_campaigns(self, runner: Runner, ids: list[str]) -> list[Row]:
        """The campaign, locked; of several those that are there and that nobody else has locked."""
        if len(ids) == 1:
            return [self._lock_campaign(runner, ids[0])]
        if self._server_clock is None:
            return runner.ask(questions.campaigns_by_id("sqlite"), {"ids": ids})
        found = runner.ask(questions.campaigns_by_id("postgresql"), {"ids": ids})
        for row in found[-1:]:
            self._server_clock.hear(float(row[-1]))
        return [row[:-1] for row in found]

    def _number_and_rows(self, connection: Connection, id: str) -> tuple[int, int]:
        """A campaign, locked: its number, and about how many rows it has."""
        with closing(Runner(connection)) as runner:
            number, row = campaign_from(self._lock_campaign(runner, id))
        return number, row.tasks + row.rules.hidden + row.given + row.seq

    def _ledger(self, runner: Runner, found: Row, remembered: bool = True) -> SqlLedger:
        """A ledger with what is remembered and still true; it is given back when the transaction has succeeded."""
        cached = self._remembered.take(found[ID], found[SEQ], remembered)
        row = campaign_from(found)[1] if cached.row is None else cached.row
        return SqlLedger(runner, int(found[NUMBER]), row, cached)

    @contextmanager
    def _committed(self) -> Iterator[list[CachedRows]]:
        """What is remembered of a transaction; once it is committed, tables may be larger by much."""
        with self._remembered.kept_if_committed() as kept:
            yield kept
        for cached in kept:
            if cached.row is not None:
                self._statistics.note(cached.row)


def _find_campaign(connection: Connection, id: str) -> tuple[int, CampaignRow]:
    with closing(Runner(connection)) as runner:
        return campaign_from(found_campaign(runner, sql.campaign_by_id, id))


def found_campaign(runner: Runner, statement: Executable, id: str) -> Row:
    """The campaign that a statement finds, or an error that says what became of it."""
    found = runner.one(statement, {"id": id})
    if found is None:
        raise deleted_campaign(id) if runner.one(sql.deleted_at, {"id": id}) is not None else no_campaign(id)
    return found


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
