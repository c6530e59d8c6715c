"""Statements compiled once for a dialect and run on the driver itself; many rows of a table written by one of them.

SQLAlchemy writes the SQL, for SQLite and PostgreSQL alike, and looks after connections and transactions; what it adds
to each execution costs several times what SQLite needs, so that the few statements of every ask and tell go past it.
A write is described once, by table and columns, and a row is a tuple with a value for each of the columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, Dialect, Executable, Table, bindparam, insert, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.dialects.postgresql import psycopg

Values = tuple[Any, ...]
#: Dialects whose parameters are in the order of a row, and what inserts into each.
_DIALECTS: Final[dict[str, tuple[Dialect, Callable[[Table], Any]]]] = {
    "sqlite": (sqlite.dialect(), sqlite.insert),
    "postgresql": (psycopg.dialect(paramstyle="format"), postgresql.insert),  # type: ignore[no-untyped-call]
}


@dataclass(frozen=True, slots=True, eq=False)
class BulkWrite:
    """A statement for many rows, in each dialect, and the columns of a row."""

    columns: tuple[str, ...]
    text: Mapping[str, str]


def insert_rows(table: Table) -> BulkWrite:
    """New rows, a value for every column."""
    return _write(lambda _: insert(table))


def upsert_rows(table: Table) -> BulkWrite:
    """New rows, or other values in those with the same primary key."""

    def made(insert: Callable[[Table], Any]) -> Any:
        new, keys = insert(table), list(table.primary_key)
        return new.on_conflict_do_update(
            index_elements=keys,
            set_={column.name: column for column in new.excluded if column.name not in table.primary_key},
        )

    return _write(made)


def update_rows(table: Table, keys: Sequence[str], changing: Sequence[str]) -> BulkWrite:
    """Other values in rows that are there: what changes first, then the keys."""
    which = [table.c[name] == bindparam(f"key_{name}") for name in keys]
    return _write(lambda _: update(table).where(*which).values({name: bindparam(f"new_{name}") for name in changing}))


def _write(made: Callable[[Callable[[Table], Any]], Any]) -> BulkWrite:
    """The statement that is made with the insertion of each dialect."""
    found = {name: made(insert).compile(dialect=dialect) for name, (dialect, insert) in _DIALECTS.items()}
    return BulkWrite(tuple(found["sqlite"].positiontup), {name: str(one) for name, one in found.items()})


Row = tuple[Any, ...]
_COMPILED: dict[tuple[str, int], Statement] = {}


@dataclass(frozen=True, slots=True)
class Statement:
    """SQL in the driver's own style; ``names`` are the parameters in order, or None where they go by name."""

    text: str
    names: tuple[str, ...] | None
    constants: dict[str, Any]  # parameters whose value stands in the statement
    source: Executable  # kept alive: its identity is the key

    def values(self, parameters: Mapping[str, Any]) -> Any:
        """Parameters as the driver takes them."""
        every = {**self.constants, **parameters} if self.constants else parameters
        return every if self.names is None else [every[name] for name in self.names]


def compiled(statement: Executable, dialect: Dialect) -> Statement:
    """The statement for a dialect, from the second time on without work."""
    key = (dialect.name, id(statement))
    if key not in _COMPILED:
        made: Any = statement.compile(dialect=dialect)  # type: ignore[attr-defined]
        names = tuple(made.positiontup) if made.positional else None
        constants = {name: value for name, value in made.params.items() if value is not None}
        _COMPILED[key] = Statement(str(made), names, constants, statement)
    return _COMPILED[key]


class Runner:
    """Runs statements on a connection, in the transaction that is open on it."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.dialect_name: str = connection.dialect.name
        self._dialect = connection.dialect
        self._cursor: Any = connection.connection.cursor()

    def one(self, statement: Executable, parameters: Mapping[str, Any]) -> Row | None:
        """The first row, if any."""
        ready = compiled(statement, self._dialect)
        self._cursor.execute(ready.text, ready.values(parameters))
        row: Row | None = self._cursor.fetchone()
        return row

    def all(self, statement: Executable, parameters: Mapping[str, Any]) -> list[Row]:
        """All rows."""
        ready = compiled(statement, self._dialect)
        self._cursor.execute(ready.text, ready.values(parameters))
        rows: list[Row] = self._cursor.fetchall()
        return rows

    def chunks(self, statement: Executable, parameters: Mapping[str, Any], many: int) -> Iterator[list[Row]]:
        """All rows, so many at a time; the next statement ends it."""
        ready = compiled(statement, self._dialect)
        self._cursor.execute(ready.text, ready.values(parameters))
        while rows := self._cursor.fetchmany(many):
            yield rows

    def write_all(self, pending: Mapping[BulkWrite, Sequence[Values]]) -> None:
        """Write the rows of several tables, one statement for each table, in their order."""
        with self._pipeline():
            for write, rows in pending.items():
                self._write_rows(write, rows)

    def _write_rows(self, write: BulkWrite, rows: Sequence[Values]) -> None:
        """Write the rows of one table by one statement."""
        if not rows:
            return
        text = write.text[self.dialect_name]
        if len(rows) == 1:
            self._cursor.execute(text, rows[0])
        else:
            self._cursor.executemany(text, rows)

    @contextmanager
    def _pipeline(self) -> Iterator[None]:
        """On PostgreSQL, statements are sent without waiting for the one before."""
        if self.dialect_name != "postgresql":
            yield
            return
        driver: Any = self.connection.connection.driver_connection
        with driver.pipeline():
            yield

    def close(self) -> None:
        """Give the cursor back."""
        self._cursor.close()
