"""A database: its connections for reading and writing, its clock, and what it keeps for all campaigns together."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Lock, RLock

from sqlalchemy import Connection, Engine, delete, func, insert, select
from sqlalchemy.exc import IntegrityError

from nextlabel.store import statements as sql
from nextlabel.store.clock import ServerClock
from nextlabel.store.engine import LOCK_WAIT_S, checked_url, make_engine
from nextlabel.store.migrate import check_file, migrate
from nextlabel.store.table_statistics import TableStatistics
from nextlabel.store.tables import settings, table_store
from nextlabel.store.unavailable import busy, errors_as_unavailable


class Database:
    """One database that is open; its tables are those of this version."""

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
        self._statistics = TableStatistics(self.engine)
        self._tables_lock = Lock()
        self._closed = False
        # Threads of one process take turns here instead of at the database.
        self._process_lock = RLock() if self.engine.dialect.name == "sqlite" else None

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
