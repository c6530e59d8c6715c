"""Imports of tasks (``campaign.imports``) in a database."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict

from sqlalchemy import ColumnElement, Connection, delete, insert, literal_column, select, update
from sqlalchemy.exc import IntegrityError

from nextlabel.campaign.imports import ACTIVE, ImportRow
from nextlabel.store.tables import import_chunks, imports

Begin = Callable[[], AbstractContextManager[Connection]]
#: Written out, not bound: a partial index serves only queries in which its condition stands.
_ACTIVE = imports.c.state.in_([literal_column(f"'{state}'") for state in ACTIVE])
_import, _first = import_chunks.c["import"], import_chunks.c["first"]


class SqlImports:
    """The imports of a database; ``read`` and ``write`` begin transactions."""

    def __init__(self, read: Begin, write: Begin) -> None:
        self._read, self._write = read, write

    def begin(self, row: ImportRow) -> bool:
        """A new import."""
        try:
            with self._write() as connection:
                connection.execute(insert(imports).values(asdict(row)))
        except IntegrityError:
            return False
        return True

    def save(self, row: ImportRow) -> None:
        """An import that has changed."""
        with self._write() as connection:
            _save(connection, row)

    def claim(self, row: ImportRow, owner: str, now: float) -> bool:
        """Take an import over."""
        same = (imports.c.id == row.id, imports.c.owner == row.owner, imports.c.beat_at == row.beat_at)
        with self._write() as connection:
            taken = connection.execute(update(imports).where(*same).values(owner=owner, beat_at=now)).rowcount > 0
        if taken:
            row.owner, row.beat_at = owner, now
        return taken

    def find(self, id: str) -> ImportRow | None:
        """An import by id."""
        return next(iter(self._rows(imports.c.id == id)), None)

    def active(self) -> list[ImportRow]:
        """All imports that have not ended."""
        return self._rows(_ACTIVE)

    def of_campaign(self, campaign: str, limit: int) -> list[ImportRow]:
        """The imports of a campaign."""
        return self._rows(imports.c.campaign == campaign, limit)

    def stage(self, row: ImportRow, first: int, data: str) -> None:
        """Set a chunk of tasks aside."""
        with self._write() as connection:
            connection.execute(insert(import_chunks).values({"import": row.id, "first": first, "data": data}))
            _save(connection, row)

    def staged(self, id: str, first: int) -> str | None:
        """A chunk that was set aside."""
        which = select(import_chunks.c.data).where(_import == id, _first == first)
        with self._read() as connection:
            found = connection.execute(which).scalar()
        return None if found is None else str(found)

    def clear(self, id: str, below: int, many: int) -> int:
        """Throw chunks away."""
        which = select(_first).where(_import == id, _first < below).order_by(_first).limit(many)
        with self._write() as connection:
            firsts: Sequence[int] = list(connection.execute(which).scalars())
            if firsts:
                connection.execute(delete(import_chunks).where(_import == id, _first.in_(firsts)))
        return len(firsts)

    def forget(self, before: float) -> None:
        """Forget old imports."""
        with self._write() as connection:
            connection.execute(delete(imports).where(~_ACTIVE, imports.c.beat_at < before))

    def _rows(self, which: ColumnElement[bool], limit: int = 1000) -> list[ImportRow]:
        question = select(imports).where(which).order_by(imports.c.started_at.desc(), imports.c.id).limit(limit)
        with self._read() as connection:
            return [ImportRow(**row) for row in connection.execute(question).mappings()]


def _save(connection: Connection, row: ImportRow) -> None:
    connection.execute(update(imports).where(imports.c.id == row.id).values(asdict(row)))
