"""Statements compiled once for a dialect and run on the driver itself.

SQLAlchemy writes the SQL, for SQLite and PostgreSQL alike, and looks after connections and transactions; what it adds
to each execution costs several times what SQLite needs, so that the few statements of every ask and tell go past it.
Questions that do not depend on one another go to PostgreSQL together and wait for its answers once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Dialect, Executable

from nextlabel.store.bulk import WRITES, BulkWrite, Values
from nextlabel.store.questions import Question

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

    def ask(self, question: Question, parameters: Mapping[str, Any]) -> list[Row]:
        """The answer to a question."""
        self._cursor.execute(question.text, question.values(self.dialect_name, parameters))
        rows: list[Row] = self._cursor.fetchall()
        return rows

    def stream(self, question: Question, parameters: Mapping[str, Any]) -> Iterator[Row]:
        """The same, row by row; the next statement ends it."""
        self._cursor.execute(question.text, question.values(self.dialect_name, parameters))
        return iter(self._cursor)

    def tell(self, statement: Question, parameters: Mapping[str, Any]) -> None:
        """Run a statement that has no answer."""
        self._cursor.execute(statement.text, statement.values(self.dialect_name, parameters))

    def ask_all(self, questions: Sequence[tuple[Question, Mapping[str, Any]]]) -> list[list[Row]]:
        """The answers to questions that do not depend on one another."""
        if self.dialect_name != "postgresql" or len(questions) < 2:
            return [self.ask(question, parameters) for question, parameters in questions]
        driver: Any = self.connection.connection.driver_connection
        cursors = [driver.cursor() for _ in questions]
        with driver.pipeline():
            for cursor, (question, parameters) in zip(cursors, questions, strict=True):
                cursor.execute(question.text, question.values(self.dialect_name, parameters))
        return [cursor.fetchall() for cursor in cursors]

    def write(self, statement: Executable, rows: Sequence[Mapping[str, Any]]) -> None:
        """Run a statement once for each of ``rows``."""
        ready = compiled(statement, self._dialect)
        if len(rows) == 1:
            self._cursor.execute(ready.text, ready.values(rows[0]))
        elif rows:
            self._cursor.executemany(ready.text, [ready.values(row) for row in rows])

    def write_all(self, pending: Mapping[BulkWrite, Sequence[Values]]) -> None:
        """Write the rows of several tables, one statement for each table."""
        with self._pipeline():
            for write in WRITES:
                self.write_rows(write, pending.get(write, ()))

    def write_rows(self, write: BulkWrite, rows: Sequence[Values]) -> None:
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
