"""Campaigns in a database, the same statements for SQLite and PostgreSQL.

A transaction locks the campaign's row (SQLite: the one write lock), so that commands on one campaign follow one another
in all processes. Events are written with what they change in that transaction, all rows of a table by one statement at
its end. A transaction may have several campaigns: what their commands need is read once, for all of them. A campaign's
row, the counts of ``states``, the priors, open leases and the tasks and workers that were seen last are remembered
between transactions, and are true as long as the campaign's last event is one that this process wrote.
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
from nextlabel.campaign.deletions import deleted_campaign, taken_by_deleted
from nextlabel.campaign.events import Event
from nextlabel.campaign.needs import Need
from nextlabel.campaign.rows import CampaignRow, Group, LeaseRow, TaskRow, WorkerRow
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.campaign.verification import Verification
from nextlabel.errors import ConflictError, GoneError
from nextlabel.problem.tables import prior_from
from nextlabel.store import questions
from nextlabel.store import statements as sql
from nextlabel.store.bulk import together
from nextlabel.store.cached_rows import CachedRows
from nextlabel.store.clock import ServerClock
from nextlabel.store.engine import LOCK_WAIT_S, checked_url, make_engine
from nextlabel.store.memory import no_campaign
from nextlabel.store.memory_ledger import new_row
from nextlabel.store.migrate import check_file, migrate
from nextlabel.store.payloads import read_events
from nextlabel.store.prefetch import prefetch
from nextlabel.store.prepared import Row, Runner
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
from nextlabel.store.sql_access import SqlAccess
from nextlabel.store.sql_deletions import SqlDeletions
from nextlabel.store.sql_imports import SqlImports
from nextlabel.store.sql_ledger import SqlLedger
from nextlabel.store.table_statistics import TableStatistics
from nextlabel.store.tables import campaigns, settings, table_store
from nextlabel.store.unavailable import busy, errors_as_unavailable
from nextlabel.store.verify import verify

#: Rows that are fetched at once where their size is limited.
ROW_BUFFER = 20
#: Rows of all campaigns that are remembered between transactions; they have small payloads.
MOST_ROWS = 50_000
T = TypeVar("T")


class SqlStore:
    """Campaigns of one database."""

    def __init__(self, url: str, lock_wait_s: float = LOCK_WAIT_S, *, create: bool = True) -> None:
        self.url = checked_url(url)
        check_file(self.url, create)
        self.engine: Engine = make_engine(self.url, lock_wait_s=lock_wait_s)
        self._lock_wait_s = lock_wait_s
        try:
            migrate(self.engine, create)
        except BaseException:
            self.engine.dispose()
            raise
        self._server_clock = ServerClock() if self.engine.dialect.name == "postgresql" else None
        self.clock: Callable[[], float] = self._server_clock or time.time
        self._hear_time()
        self._writer = self.engine.execution_options(writes=True)
        #: What is remembered of campaigns, those that were used last at the end, and how many rows that is.
        self._cached: dict[str, CachedRows] = {}
        self._kept = 0
        self._lock = Lock()
        self._tables_lock = Lock()
        self._closed = False
        self._statistics = TableStatistics(self.engine)
        self.access = SqlAccess(self._read, self._write)
        self.imports = SqlImports(self._read, self._write)
        self.deletions = SqlDeletions(self._read, self._write, self._number_and_rows, self._forget)
        # Threads of one process take turns here instead of at the database.
        self._process_lock = RLock() if self.engine.dialect.name == "sqlite" else None

    @property
    def kind(self) -> str:
        """sqlite or postgresql."""
        return self.engine.dialect.name

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
        self._keep_cached(ledger)
        self._statistics.note(ledger.row)

    @contextmanager
    def transaction(self, id: str, remembered: bool = True) -> Iterator[SqlLedger]:
        """The campaign, locked; without ``remembered``, every row is read again."""
        with self._kept_if_committed() as kept, self._write() as connection, closing(Runner(connection)) as runner:
            ledger = self._ledger(runner, self._lock_campaign(runner, id), remembered)
            before = ledger.row.seq
            try:
                yield ledger
                ledger.flush()
            except BaseException:
                self._keep_crowd(ledger, before)
                raise
            kept.append(self._keep_cached(ledger))

    @contextmanager
    def transactions(self, needs: Mapping[str, Sequence[Need]]) -> Iterator[dict[str, SqlLedger]]:
        """Campaigns by id, locked, and what commands need of them read; those that others hold are left out."""
        with self._kept_if_committed() as kept, self._write() as connection, closing(Runner(connection)) as runner:
            ledgers = {row[ID]: self._ledger(runner, row) for row in self._lock_campaigns(runner, sorted(needs))}
            before = {id: ledger.row.seq for id, ledger in ledgers.items()}
            try:
                prefetch(runner, [(ledger, needs[id]) for id, ledger in ledgers.items()])
                yield ledgers
                runner.write_all(together([ledger.take() for ledger in ledgers.values()]))
            except BaseException:
                for id, ledger in ledgers.items():
                    self._keep_crowd(ledger, before[id])
                raise
            kept.extend(self._keep_cached(ledger) for ledger in ledgers.values())

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
        with self._tables_lock:
            return None if self._closed else self._load_table(name)

    def _load_table(self, name: str) -> bytes | None:
        with self._read() as connection:
            found = connection.execute(select(table_store.c.data).where(table_store.c.name == name)).scalar()
        return None if found is None else bytes(found)

    def save_table(self, name: str, data: bytes) -> None:
        """Store a table."""
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
            yield connection

    @contextmanager
    def _read(self) -> Iterator[Connection]:
        with errors_as_unavailable(), self.engine.connect() as connection:
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
                return _found(runner, sql.lock_campaign, id)
            *row, seconds = _found(runner, sql.lock_campaign_with_time, id)
        except GoneError:  # deleted by another process
            self._forget(id)
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

    def _ledger(self, runner: Runner, found: Row, remembered: bool = True) -> SqlLedger:
        """A ledger with what is remembered and still true; it is given back when the transaction has succeeded."""
        with self._lock:
            cached = self._cached.pop(found[ID], None)
            if cached is not None and cached.rows is not None:
                self._kept -= cached.rows.size
        if cached is None or cached.seq > found[SEQ]:  # its transaction was not committed
            cached = CachedRows()
        elif cached.seq != found[SEQ] or not remembered:
            cached = CachedRows(crowd=cached.crowd, searches=cached.searches)
        row = campaign_from(found)[1] if cached.row is None else cached.row
        return SqlLedger(runner, int(found[NUMBER]), row, cached)

    def _keep_crowd(self, ledger: SqlLedger, seq: int) -> None:
        """The transaction has failed: keep what is known of the crowd if it rests on nothing that was undone."""
        if ledger.crowd is not None and ledger.crowd.seq <= seq:
            self._keep(ledger.row.id, CachedRows(crowd=ledger.crowd))

    @contextmanager
    def _kept_if_committed(self) -> Iterator[list[CachedRows]]:
        """What is remembered before the end of a transaction, so that whoever gets the lock next finds it."""
        kept: list[CachedRows] = []
        try:
            yield kept
        except BaseException:
            with self._lock:
                for id in [id for id, cached in self._cached.items() if any(cached is one for one in kept)]:
                    gone = self._cached.pop(id)
                    self._kept -= 0 if gone.rows is None else gone.rows.size
            raise
        for cached in kept:
            if cached.row is not None:
                self._statistics.note(cached.row)

    def _keep_cached(self, ledger: SqlLedger) -> CachedRows:
        cached = ledger.remember()
        self._keep(ledger.row.id, cached)
        return cached

    def _keep(self, id: str, cached: CachedRows) -> None:
        """Remember a campaign; where there are too many rows, those of the campaigns that were used longest ago go.

        Another thread may have had its transaction, and this turn, since this one's ended: then its knowledge is newer.
        """
        with self._lock:
            present = self._cached.get(id)
            if present is not None:
                if present.seq > cached.seq:
                    return
                self._kept -= 0 if present.rows is None else present.rows.size
                del self._cached[id]
            self._cached[id] = cached
            self._kept += 0 if cached.rows is None else cached.rows.size
            if self._kept > MOST_ROWS:
                self._forget_oldest()

    def _forget(self, id: str) -> None:
        """A campaign was deleted."""
        with self._lock:
            gone = self._cached.pop(id, None)
            self._kept -= 0 if gone is None or gone.rows is None else gone.rows.size

    def _number_and_rows(self, connection: Connection, id: str) -> tuple[int, int]:
        """A campaign, locked: its number, and about how many rows it has."""
        with closing(Runner(connection)) as runner:
            number, row = campaign_from(self._lock_campaign(runner, id))
        return number, row.tasks + row.rules.hidden + row.given + row.seq

    def _forget_oldest(self) -> None:
        for oldest in self._cached.values():
            if oldest.rows is not None:
                self._kept -= oldest.rows.size
                oldest.rows = None
            if self._kept <= 0.75 * MOST_ROWS:
                break


def _find_campaign(connection: Connection, id: str) -> tuple[int, CampaignRow]:
    with closing(Runner(connection)) as runner:
        return campaign_from(_found(runner, sql.campaign_by_id, id))


def _found(runner: Runner, statement: Executable, id: str) -> Row:
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
