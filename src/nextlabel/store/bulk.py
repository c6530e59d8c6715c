"""Many rows written by one statement: arrays that PostgreSQL unnests, or one prepared statement for all rows on SQLite.

A write is described once, by table and columns, and a row is a tuple with a value for each of the columns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import BigInteger, Boolean, Column, Double, Integer, Table

from nextlabel.store.statements import FIXED
from nextlabel.store.tables import campaigns, events, held_counts, leases, payloads, states, tasks, workers

Values = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
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


def upsert_rows(table: Table, adding: bool = False) -> BulkWrite:
    """New rows, or other values in those with the same primary key; ``adding``: theirs plus these."""
    keys = tuple(column.name for column in table.primary_key)
    names = tuple(column.name for column in table.c)
    old = f'{table.name}."{{0}}" + ' if adding else ""
    change = ", ".join(f'"{{0}}" = {old}excluded."{{0}}"'.format(name) for name in names if name not in keys)
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


ADD_TASKS = insert_rows(tasks)
ADD_PAYLOADS = insert_rows(payloads)
ADD_EVENTS = insert_rows(events)
ADD_LEASES = insert_rows(leases)
SAVE_LEASES = update_rows(
    leases, ("id",), ("status", "expires_at", "ended_at", "label", "counted", "dropped", "comment")
)
MOVE_TASKS = update_rows(tasks, ("campaign", "number"), ("node", "w", "labels", "score", "last_seq", "closed_seq"))
SAVE_STATES = upsert_rows(states)
SAVE_WORKERS = upsert_rows(workers)
CHANGING = tuple(column.name for column in campaigns.c if column.name not in FIXED)
ADD_HELD_COUNTS = upsert_rows(held_counts, adding=True)
SAVE_CAMPAIGNS = update_rows(campaigns, ("number",), CHANGING)
#: The order in which they are written.
WRITES = (MOVE_TASKS, ADD_LEASES, SAVE_LEASES, ADD_EVENTS, SAVE_STATES, SAVE_WORKERS, ADD_HELD_COUNTS, SAVE_CAMPAIGNS)


def together(pending: Sequence[Mapping[BulkWrite, Sequence[Values]]]) -> dict[BulkWrite, list[Values]]:
    """What several campaigns have to write, table by table."""
    return {write: [row for one in pending for row in one.get(write, ())] for write in WRITES}
