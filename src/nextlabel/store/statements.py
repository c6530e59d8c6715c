"""Statements compiled once for a dialect and run on the driver itself; many rows of a table written by one of them.

SQLAlchemy writes the SQL, for SQLite and PostgreSQL alike, and looks after connections and transactions; what it adds
to each execution costs several times what SQLite needs, so that the few statements of every ask and tell go past it.
A write is described once, by table and columns, and a row is a tuple with a value for each of the columns: arrays that
PostgreSQL unnests, or one prepared statement for all rows on SQLite.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import BigInteger, Boolean, Column, Connection, Dialect, Double, Executable, Integer, Table

Values = tuple[Any, ...]


@dataclass(frozen=True, slots=True, eq=False)
class BulkWrite:
    """One statement for many rows, in each dialect; ``convert`` has for each column what makes its values alike."""

    columns: tuple[str, ...]
    sqlite: str
    postgresql: str
    convert: tuple[Callable[[Any], Any] | None, ...]

    def arrays(self, rows: Sequence[Values]) -> list[list[Any]]:
        """The columns of the rows, as PostgreSQL takes them: one array each, whose values are of one type."""
        return [
            list(column) if convert is None else [None if value is None else convert(value) for value in column]
            for convert, column in zip(self.convert, zip(*rows, strict=True), strict=True)
        ]


def insert_rows(table: Table) -> BulkWrite:
    """New rows, a value for every column."""
    names = tuple(column.name for column in table.c)
    head = f"INSERT INTO {table.name} ({_quoted(names)})"
    return _write(table, names, f"{head} VALUES ({_marks(names)})", f"{head} SELECT * FROM {_unnest(table, names)}")


def upsert_rows(table: Table) -> BulkWrite:
    """New rows, or other values in those with the same primary key."""
    keys = tuple(column.name for column in table.primary_key)
    names = tuple(column.name for column in table.c)
    change = ", ".join(_set(name, f"excluded.{_quoted([name])}") for name in names if name not in keys)
    on_conflict = f"ON CONFLICT ({_quoted(keys)}) DO UPDATE SET {change}"
    new = insert_rows(table)
    return _write(table, names, f"{new.sqlite} {on_conflict}", f"{new.postgresql} {on_conflict}")


def update_rows(table: Table, keys: Sequence[str], changing: Sequence[str]) -> BulkWrite:
    """Other values in rows that are there: the keys first, then what changes."""
    names = (*keys, *changing)
    place = {name: number for number, name in enumerate(names, start=1)}
    sqlite = (
        f"UPDATE {table.name} SET {', '.join(_set(name, f'?{place[name]}') for name in changing)} "
        f"WHERE {' AND '.join(_set(name, f'?{place[name]}') for name in keys)}"
    )
    postgresql = (
        f"UPDATE {table.name} AS old SET {', '.join(_set(name, f'new.{_quoted([name])}') for name in changing)} "
        f"FROM {_unnest(table, names)} AS new({_quoted(names)}) "
        f"WHERE {' AND '.join(f'old.{name} = new.{name}' for name in keys)}"
    )
    return _write(table, names, sqlite, postgresql)


def _write(table: Table, names: tuple[str, ...], sqlite: str, postgresql: str) -> BulkWrite:
    return BulkWrite(names, sqlite, postgresql, tuple(_converter(table.c[name]) for name in names))


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _set(name: str, value: str) -> str:
    return f"{_quoted([name])} = {value}"


def _marks(names: Sequence[str]) -> str:
    return ", ".join("?" for _ in names)


def _unnest(table: Table, names: Sequence[str]) -> str:
    return f"unnest({', '.join(f'%s::{_type(table.c[name])}[]' for name in names)})"


def _type(column: Column[Any]) -> str:
    """PostgreSQL's name for the type of a column."""
    for kind, name in ((BigInteger, "int8"), (Integer, "int4"), (Double, "float8"), (Boolean, "bool")):
        if isinstance(column.type, kind):
            return name
    return "text"


def _converter(column: Column[Any]) -> Callable[[Any], Any] | None:
    for kind, convert in ((Integer, int), (Double, float), (Boolean, bool)):
        if isinstance(column.type, kind):
            return convert
    return None


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
        if self.dialect_name == "postgresql":
            self._cursor.execute(write.postgresql, write.arrays(rows))
        elif len(rows) == 1:
            self._cursor.execute(write.sqlite, rows[0])
        else:
            self._cursor.executemany(write.sqlite, rows)

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
