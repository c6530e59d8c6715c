"""A database from its address, with every acknowledged write on disk, and the statements that run on it.

================================ ==================================================================
address                          is
================================ ==================================================================
sqlite:///labels.db, labels.db   one SQLite file, for its owner alone, write-ahead log, synchronous=FULL
postgresql://user@host/base      PostgreSQL; several processes at once
memory:                          SQLite in memory: one connection, which threads share; nothing is kept
================================ ==================================================================

Errors of a database that does not answer, or not in time, become ours: the request may be sent again.

======================================== ==============================================================
error of the database                    becomes
======================================== ==============================================================
a lock that was not to be had in time    BusyError: another process holds the campaign or the database
no connection, or a connection lost      UnavailableError
a statement or a transaction ended       UnavailableError: it took longer than allowed below
by the server
======================================== ==============================================================

Statements compiled once for a dialect and run on the driver itself; many rows of a table written by one of them.

SQLAlchemy writes the SQL, for SQLite and PostgreSQL alike, and looks after connections and transactions; what it adds
to each execution costs several times what SQLite needs, so that the few statements of every ask and tell go past it.
A write is described once, by table and columns, and a row is a tuple with a value for each of the columns.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from sqlalchemy import (
    Connection,
    Dialect,
    Engine,
    Executable,
    Table,
    bindparam,
    create_engine,
    event,
    exc,
    update,
)  # fmt: skip
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.dialects.postgresql import psycopg as psycopg_dialect
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError
from sqlalchemy.pool import QueuePool, StaticPool

from nextlabel.errors import BusyError, InputError, StorageFullError, UnavailableError
from nextlabel.wording import without_passwords

try:
    import psycopg

    _DRIVER_ERRORS: tuple[type[Exception], ...] = (
        sqlite3.OperationalError, psycopg.OperationalError, psycopg.InterfaceError,
        psycopg.errors.IdleInTransactionSessionTimeout,
    )  # fmt: skip
except ModuleNotFoundError:  # PostgreSQL is an extra
    _DRIVER_ERRORS = (sqlite3.OperationalError,)

_ERRORS: tuple[type[Exception], ...] = (
    exc.OperationalError, exc.InterfaceError, exc.TimeoutError, exc.PendingRollbackError, exc.InternalError,
    *_DRIVER_ERRORS,
)  # fmt: skip

#: PostgreSQL's code for a lock that could not be had within lock_timeout.
_LOCK_NOT_AVAILABLE = "55P03"
#: Its code for a disk without room; bytes below which a disk counts as full.
_FULL, LEAST_ROOM = "53100", 16 << 20

#: Seconds that a writer waits for another one: in programs and commands, and in the service, where others wait behind
#: it and a client can come back.
LOCK_WAIT_S, SERVICE_LOCK_WAIT_S = 30.0, 2.0

#: PostgreSQL ends a transaction in which nothing happened for so many seconds, because its process was stopped or cut
#: off while it held locks, and a statement that takes longer than so many. The first ask of an installation compiles
#: its kernels inside a transaction, which takes seconds.
IDLE_TRANSACTION_S, STATEMENT_S = 30.0, 60.0

#: Connections that are kept open, seconds to connect to a server, and to wait for one that another thread gives back.
READERS, CONNECT_S, POOL_WAIT_S = 8, 10, 5.0

#: SQLite's cache for each connection, and the pages after which the write-ahead log goes into the file: the defaults
#: (2 MB, 1000) are for small databases.
CACHE_KIB, CHECKPOINT_PAGES = 65_536, 4_000
MEMORY = "memory:"
EXAMPLES = "Give e.g. sqlite:///labels.db or postgresql://user@host/base."


def checked_url(url: str) -> str:
    """An address that can be opened; a plain path is a SQLite file."""
    text = url.strip()
    if not text:
        raise InputError("the database's address is empty.", EXAMPLES)
    if text == MEMORY:
        return text
    if "://" not in text:
        text = f"sqlite:///{text}"
    try:
        parts = make_url(text)
    except (ArgumentError, ValueError):
        raise InputError(f"{without_passwords(url)!r} is not the address of a database.", EXAMPLES) from None
    kind = parts.get_backend_name()
    if kind == "sqlite":
        if parts.database in (None, "", ":memory:"):
            raise InputError(
                "a SQLite database needs a file.", "Give e.g. sqlite:///labels.db, or memory: for a trial."
            )
        folder = Path(str(parts.database)).absolute().parent
        if not folder.is_dir():
            raise InputError(f"the folder {folder} does not exist.", "Make it first, or give another path.")
        if Path(str(parts.database)).is_dir():
            raise InputError(f"{parts.database} is a folder.", "Give the path of a file.")
    elif kind in ("postgresql", "postgres"):
        parts = parts.set(drivername="postgresql+psycopg")
    else:
        raise InputError(f"databases of the kind {kind!r} are not supported.", EXAMPLES)
    return parts.render_as_string(hide_password=False)


def make_engine(url: str, lock_wait_s: float = LOCK_WAIT_S) -> Engine:
    """An engine for a checked address; a writer waits for another one for ``lock_wait_s`` seconds.

    A SQLite file that is not there is made for its owner alone.
    """
    pool: dict[str, Any] = {"pool_size": READERS, "max_overflow": 32, "pool_timeout": POOL_WAIT_S}
    if url == MEMORY or url.startswith("sqlite"):
        connect = {"timeout": lock_wait_s, "check_same_thread": False}
        if url == MEMORY:
            engine = create_engine("sqlite://", poolclass=StaticPool, connect_args=connect)
        else:
            _make_private(str(make_url(url).database))
            # The connection that was used last is used next: few of them fill their caches.
            engine = create_engine(url, poolclass=QueuePool, pool_use_lifo=True, connect_args=connect, **pool)
        event.listen(engine, "connect", _sqlite_connect)
        event.listen(engine, "begin", _sqlite_begin)
        return engine
    try:
        connect = {"prepare_threshold": 3, "connect_timeout": CONNECT_S}
        engine = create_engine(url, pool_pre_ping=True, connect_args=connect, **pool)
        event.listen(engine, "connect", _postgresql_connect(lock_wait_s))
        return engine
    except (NoSuchModuleError, ModuleNotFoundError):
        raise InputError("PostgreSQL needs the package psycopg.", "pip install 'nextlabel[postgres]'.") from None


def file_open_to_others(url: str) -> str | None:
    """The path of a SQLite file that others on this machine can read, None if there is none."""
    if checked_url(url) == MEMORY:
        return None
    parts = make_url(checked_url(url))
    if parts.get_backend_name() != "sqlite" or os.name != "posix":
        return None
    path = Path(str(parts.database))
    return str(path) if path.exists() and path.stat().st_mode & 0o044 else None


def _make_private(path: str) -> None:
    """Make an empty database that only its owner can read; SQLite gives the files beside it the same mode."""
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))


def _sqlite_connect(connection: Any, record: Any) -> None:
    connection.isolation_level = None  # transactions are begun below, not by the driver's guess
    cursor = connection.cursor()
    for pragma in (
        "journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", f"cache_size=-{CACHE_KIB}",
        f"wal_autocheckpoint={CHECKPOINT_PAGES}", "secure_delete=ON",
    ):  # fmt: skip
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _postgresql_connect(lock_wait_s: float) -> Callable[[Any, Any], None]:
    limits = {
        "lock_timeout": lock_wait_s, "statement_timeout": STATEMENT_S,
        "idle_in_transaction_session_timeout": IDLE_TRANSACTION_S,
    }  # fmt: skip

    def connect(connection: Any, record: Any) -> None:
        connection.execute("; ".join(f"SET {name} = {round(1000 * limit)}" for name, limit in limits.items()))
        connection.commit()

    return connect


def without_limits(connection: Connection) -> None:
    """Let the transaction that is open take as long as it needs."""
    if connection.dialect.name == "postgresql":
        for name in ("lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout"):
            connection.exec_driver_sql(f"SET LOCAL {name} = 0")


def _sqlite_begin(connection: Any) -> None:
    """Writers take the write lock at once: one that read first and wrote later could not be let through."""
    writes = connection.get_execution_options().get("writes", False)
    driver: Any = connection.connection.driver_connection  # on the driver itself: this happens in every transaction
    driver.execute("BEGIN IMMEDIATE" if writes else "BEGIN").close()


@contextmanager
def errors_as_unavailable() -> Iterator[None]:
    """Turn a database's refusal to answer into an UnavailableError."""
    try:
        yield
    except _ERRORS as error:
        cause: Any = getattr(error, "orig", None) or error
        if isinstance(error, exc.InternalError) and not isinstance(cause, _DRIVER_ERRORS):
            raise
        if getattr(cause, "sqlstate", None) == _LOCK_NOT_AVAILABLE or _sqlite_is_locked(cause):
            raise busy() from error
        if (getattr(cause, "sqlite_errorcode", None) or 0) & 0xFF == sqlite3.SQLITE_FULL or getattr(
            cause, "sqlstate", ""
        ) == _FULL:
            raise storage_full() from error
        raise UnavailableError(f"the database does not answer: {first_line(cause)}.", "Try again.") from error


def storage_full() -> StorageFullError:
    """There is no room for more."""
    return StorageFullError("the disk of the database is full: nothing was written.", "Make room on it, and try again.")


def check_room(engine: Engine) -> None:
    """Refuse if the disk of a SQLite file has less than LEAST_ROOM bytes left; a server answers for its own."""
    file = engine.url.database if engine.dialect.name == "sqlite" else None
    if file and shutil.disk_usage(Path(file).absolute().parent).free < LEAST_ROOM:
        raise storage_full()


def busy() -> BusyError:
    """Somebody else holds what is needed."""
    return BusyError("the database is busy with another command.", "Try again in a moment.")


def _sqlite_is_locked(cause: Any) -> bool:
    code = getattr(cause, "sqlite_errorcode", None)
    return code is not None and code & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def first_line(cause: Any) -> str:
    """What an error of the driver says, in short."""
    lines = str(cause).strip().splitlines() or [type(cause).__name__]
    return without_passwords(lines[0].rstrip("."))[:200]


# Statements ------------------------------------------------------------------------------------------------------

Row = tuple[Any, ...]
#: Dialects whose parameters go by their order.
_DIALECTS: Final[dict[str, Dialect]] = {
    "sqlite": sqlite.dialect(),
    "postgresql": psycopg_dialect.dialect(paramstyle="format"),  # type: ignore[no-untyped-call]
}


def upsert(table: Table) -> Executable:
    """New rows, or other values in those with the same primary key."""
    new = postgresql.insert(table)  # SQLite has the same words for it
    other = {column.name: column for column in new.excluded if column.name not in table.primary_key}
    return new.on_conflict_do_update(index_elements=list(table.primary_key), set_=other)


def update_by_number(table: Table, *changing: str) -> Executable:
    """Other values in rows that are there: what changes comes first, then the row's number."""
    values: dict[str, Any] = {name: bindparam(f"new_{name}") for name in changing}
    return update(table).where(table.c.number == bindparam("key_number")).values(values)


class Statement(NamedTuple):
    """SQL in the driver's own style, and its parameters in their order; ``constants`` stand in the statement."""

    text: str
    names: tuple[str, ...]
    constants: Mapping[str, Any]


@cache
def compiled(source: Executable, dialect: str) -> Statement:
    """The statement for a dialect, from the second time on without work."""
    made: Any = source.compile(dialect=_DIALECTS[dialect])  # type: ignore[attr-defined]
    constants = {name: value for name, value in made.params.items() if value is not None}
    return Statement(str(made), tuple(made.positiontup), constants)


class Runner:
    """Runs statements on a connection, in the transaction that is open on it."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.dialect_name: str = connection.dialect.name
        self._cursor: Any = connection.connection.cursor()

    def one(self, source: Executable, parameters: Mapping[str, Any]) -> Row | None:
        """The first row, if any."""
        row: Row | None = self._execute(source, parameters).fetchone()
        return row

    def all(self, source: Executable, parameters: Mapping[str, Any]) -> list[Row]:
        """All rows."""
        rows: list[Row] = self._execute(source, parameters).fetchall()
        return rows

    def chunks(self, source: Executable, parameters: Mapping[str, Any], many: int) -> Iterator[list[Row]]:
        """All rows, so many at a time; the next statement ends it."""
        cursor = self._execute(source, parameters)
        while rows := cursor.fetchmany(many):
            yield rows

    def _execute(self, source: Executable, parameters: Mapping[str, Any]) -> Any:
        text, names, constants = compiled(source, self.dialect_name)
        self._cursor.execute(text, [parameters[name] if name in parameters else constants[name] for name in names])
        return self._cursor

    def write_all(self, pending: Mapping[Executable, Sequence[Row]]) -> None:
        """Write the rows of several tables, one statement for each table, in their order.

        On PostgreSQL, statements are sent without waiting for the one before.
        """
        driver: Any = self.connection.connection.driver_connection
        with driver.pipeline() if self.dialect_name == "postgresql" else nullcontext():
            for source, rows in pending.items():
                text = compiled(source, self.dialect_name).text
                if len(rows) == 1:
                    self._cursor.execute(text, rows[0])
                elif rows:
                    self._cursor.executemany(text, rows)
