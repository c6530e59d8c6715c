"""Deleted campaigns (``campaign.deletions``) in a database.

A campaign disappears by getting an id that no campaign can have; ``deleted_campaigns`` remembers the one that it had,
and the number by which its rows are found until all of them are removed. Its own row goes last.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Final

from sqlalchemy import Connection, Table, delete, insert, select, tuple_, update

from nextlabel.campaign.deletions import Deletion
from nextlabel.store import statements as sql
from nextlabel.store.tables import (
    campaigns,
    deleted_campaigns,
    events,
    import_chunks,
    imports,
    link_versions,
    metadata,
    payloads,
    visits,
)

Begin = Callable[[], AbstractContextManager[Connection]]
#: Locks a campaign, or raises; returns its number, and about how many rows it has.
Lock = Callable[[Connection, str], tuple[int, int]]
#: The first character of the id of a campaign that was deleted.
GONE: Final = sql.GONE
#: Events and payloads may have a megabyte each: so many of them are removed at once at most.
LARGE_AT_ONCE: Final = 200
LARGE: Final = (events, payloads)
#: Tables with rows of campaigns.
TABLES: Final = tuple(
    table for table in metadata.sorted_tables if "campaign" in table.c and table.c.campaign.foreign_keys
)


class SqlDeletions:
    """The deletions of a database; ``read`` and ``write`` begin transactions."""

    def __init__(self, read: Begin, write: Begin, lock: Lock, forget: Callable[[str], None]) -> None:
        self._read, self._write, self._lock, self._forget = read, write, lock, forget

    def begin(self, id: str, now: float) -> Deletion:
        """Make a campaign disappear."""
        with self._write() as connection:
            number, rows = self._lock(connection, id)
            gone = update(campaigns).where(campaigns.c.number == number).values(id=f"{GONE}{number}")
            connection.execute(gone)
            connection.execute(
                insert(deleted_campaigns).values(id=id, number=number, deleted_at=now, rows=rows)
            )  # fmt: skip
            connection.execute(delete(link_versions).where(link_versions.c.campaign == id))
            connection.execute(delete(visits).where(visits.c.campaign == id))
        self._forget(id)
        return Deletion(id, now, rows)

    def find(self, id: str) -> float | None:
        """When a campaign was deleted."""
        with self._read() as connection:
            return connection.execute(sql.deleted_at, {"id": id}).scalar()

    def unfinished(self) -> list[Deletion]:
        """Deletions that have left rows."""
        columns = (deleted_campaigns.c.id, deleted_campaigns.c.deleted_at, deleted_campaigns.c.rows)
        question = select(*columns).where(deleted_campaigns.c.number.is_not(None)).order_by(columns[1], columns[0])
        with self._read() as connection:
            return [Deletion(*row) for row in connection.execute(question)]

    def clear(self, deletion: Deletion, many: int) -> int:
        """Remove some rows; the record is locked, and says that the number is still that of the deleted campaign."""
        record = deleted_campaigns.c.id == deletion.id
        with self._write() as connection:
            number = connection.execute(
                select(deleted_campaigns.c.number).where(record).with_for_update()
            ).scalar_one_or_none()  # fmt: skip
            if number is None:
                return 0
            for table in TABLES:
                removed = _remove(connection, table, number, min(many, LARGE_AT_ONCE) if table in LARGE else many)
                if removed:
                    return removed
            staged = select(import_chunks.c["import"]).where(import_chunks.c["import"] == imports.c.id).exists()
            connection.execute(delete(imports).where(imports.c.campaign == deletion.id, ~staged))
            connection.execute(delete(campaigns).where(campaigns.c.number == number))
            connection.execute(update(deleted_campaigns).where(record).values(number=None))
        return 0


def _remove(connection: Connection, table: Table, number: int, many: int) -> int:
    """Remove rows of a campaign from a table; returns how many."""
    keys = list(table.primary_key.columns)
    some = select(*keys).where(table.c.campaign == number).limit(many)
    which = keys[0].in_(some) if len(keys) == 1 else tuple_(*keys).in_(some)
    return connection.execute(delete(table).where(which)).rowcount
