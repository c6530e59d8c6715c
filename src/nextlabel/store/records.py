"""What a database keeps beside its campaigns: who may use it, visits, imports, webhooks and deletions.

The rows are dataclasses of ``campaign.records`` and ``campaign.webhooks``, each kind in a table of its own. A campaign
that is deleted gets an id that no campaign can have; ``deleted_campaigns`` remembers the one that it had, and the
number by which its rows are found until all of them are removed. Its own row goes last.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import fields
from typing import Any, Final, TypeVar

from sqlalchemy import ColumnElement, Connection, Table, bindparam, delete, exists, insert, or_, select, tuple_, update
from sqlalchemy.exc import IntegrityError

from nextlabel.campaign.records import (
    ACTIVE,
    UNCLAIMED,
    AccessToken,
    Activity,
    Deletion,
    ImportRow,
    Session,
    Visit,
)
from nextlabel.campaign.webhooks import Webhook
from nextlabel.store.tables import (
    access_tokens,
    activity,
    campaigns,
    deleted_campaigns,
    events,
    import_chunks,
    imports,
    kept,
    link_versions,
    metadata,
    owners,
    payloads,
    sessions,
    visits,
    webhooks,
)

T = TypeVar("T")
#: A transaction that is ended with the context, and a campaign's number and about how many rows it has, once locked.
Connecting = Callable[[], AbstractContextManager[Connection]]
Locked = Callable[[Connection, str], tuple[int, int]]
#: The table of each kind of rows, and their order.
KINDS: Final[dict[type, tuple[Table, tuple[Any, ...]]]] = {
    AccessToken: (access_tokens, (access_tokens.c.created_at, access_tokens.c.name)),
    Session: (sessions, ()),
    Activity: (activity, (activity.c.number.desc(),)),
    Visit: (visits, (visits.c.begun_at, visits.c.id)),
    ImportRow: (imports, (imports.c.started_at.desc(), imports.c.id)),
    Webhook: (webhooks, (webhooks.c.created_at, webhooks.c.id)),
}
_import, _first = import_chunks.c["import"], import_chunks.c["first"]
_owner = select(owners.c.owner).where(owners.c.campaign == bindparam("campaign"))
_taken = select(
    or_(
        exists().where(campaigns.c.id == bindparam("campaign")),
        exists().where(deleted_campaigns.c.id == bindparam("campaign")),
    )
)
#: Columns in which commas stand between names.
LISTS: Final = ("types", "campaigns")
#: What the id of a campaign that was deleted begins with, until its rows are removed.
GONE: Final = "~"
#: Events and payloads may have a megabyte each: so many of them are removed at once at most.
LARGE_AT_ONCE: Final = 200
LARGE: Final = (events, payloads)
#: Tables with rows of campaigns.
TABLES: Final = tuple(
    table for table in metadata.sorted_tables if "campaign" in table.c and table.c.campaign.foreign_keys
)


class SqlRecords:
    """The rows of one store."""

    def __init__(self, read: Connecting, write: Connecting, locked: Locked, forget: Callable[[str], None]) -> None:
        self._read, self._write, self._locked, self._forget = read, write, locked, forget

    # Rows of any kind

    def find(self, kind: type[T], *which: ColumnElement[bool], limit: int | None = None, **equal: Any) -> list[T]:
        """Rows of a kind in their order: those with these values (of several, any of them; None: whatever it is)."""
        table, order = KINDS[kind]
        columns = [table.c[one.name] for one in fields(kind)]  # type: ignore[arg-type]
        question = select(*columns).where(*which, *_equal(table, equal)).order_by(*order).limit(limit)
        with self._read() as connection:
            return [kind(**_unpacked(row)) for row in connection.execute(question).mappings()]

    def add(self, row: Any, replace: bool = False) -> bool:
        """A new row, perhaps in the place of one with the same key; False if there is one."""
        table, values = KINDS[type(row)][0], _packed(row)
        try:
            with self._write() as connection:
                if replace:
                    connection.execute(delete(table).where(*_key(table, values)))
                connection.execute(insert(table).values(values))
        except IntegrityError:
            return False
        return True

    def save(self, row: Any) -> None:
        """A row that has changed."""
        table, values = KINDS[type(row)][0], _packed(row)
        self.change(type(row), values, *_key(table, values))

    def change(self, kind: type, values: Mapping[str, Any], *which: ColumnElement[bool], **equal: Any) -> bool:
        """Other values in the rows that ``find`` would find; whether there are any."""
        table, _ = KINDS[kind]
        with self._write() as connection:
            return connection.execute(update(table).where(*which, *_equal(table, equal)).values(values)).rowcount > 0

    def remove(self, kind: type, *which: ColumnElement[bool], **equal: Any) -> int:
        """Remove the rows that ``find`` would find; how many there are."""
        table, _ = KINDS[kind]
        with self._write() as connection:
            return connection.execute(delete(table).where(*which, *_equal(table, equal))).rowcount

    def forget(self, kind: type, before: float) -> int:
        """Remove old rows: sessions that began, changes that were made and imports that ended before a time."""
        table, _ = KINDS[kind]
        since = {Session: "created_at", Activity: "at", ImportRow: "beat_at"}[kind]
        ended = [imports.c.state.not_in(ACTIVE)] if kind is ImportRow else []
        return self.remove(kind, table.c[since] < before, *ended)

    # Who may use a campaign

    def link_versions(self) -> dict[tuple[str, str], int]:
        """Current versions of links."""
        with self._read() as connection:
            return {
                (campaign, worker): version for campaign, worker, version in connection.execute(select(link_versions))
            }

    def revoke_link(self, campaign: str, worker: str) -> int:
        """The next version of a link."""
        which = (link_versions.c.campaign == campaign) & (link_versions.c.worker == worker)
        with self._write() as connection:
            before = connection.execute(select(link_versions.c.version).where(which).with_for_update()).scalar() or 0
            connection.execute(delete(link_versions).where(which))
            connection.execute(insert(link_versions).values(campaign=campaign, worker=worker, version=before + 1))
        return int(before) + 1

    def claim(self, campaign: str, owner: str) -> bool:
        """Make a campaign that is about to be created an owner's; False if the id is somebody else's."""
        with self._write() as connection:
            mine = connection.execute(_owner, {"campaign": campaign}).scalar()
            if mine is None and not connection.execute(_taken, {"campaign": campaign}).scalar():
                connection.execute(insert(owners).values(campaign=campaign, owner=owner))
                return True
        return mine == owner

    def set_owner(self, campaign: str, owner: str) -> None:
        """Hand a campaign over, or with an empty owner make it nobody's."""
        with self._write() as connection:
            connection.execute(delete(owners).where(owners.c.campaign == campaign))
            if owner:
                connection.execute(insert(owners).values(campaign=campaign, owner=owner))

    def owner(self, campaign: str) -> str:
        """Whose a campaign is or was; empty for nobody's."""
        with self._read() as connection:
            return str(connection.execute(_owner, {"campaign": campaign}).scalar() or "")

    def owners(self) -> dict[str, str]:
        """The owners of campaigns."""
        with self._read() as connection:
            return {campaign: owner for campaign, owner in connection.execute(select(owners))}

    def activity(self, owner: str, within: Collection[str], campaign: str, limit: int) -> list[Activity]:
        """What was done, newest first: to a campaign, or by an owner and to what is theirs, or only to some."""
        which: list[ColumnElement[bool]] = []
        if campaign or within:
            which.append(activity.c.campaign.in_([campaign] if campaign else within))
        if owner:
            theirs = select(owners.c.campaign).where(owners.c.owner == owner)
            alone = (activity.c.campaign == "") & (activity.c.owner == owner)
            which.append(alone | activity.c.campaign.in_(theirs))
        return self.find(Activity, *which, limit=limit)

    # Visits

    def hear(self, visit: Visit, status: str, at: float) -> bool:
        """Keep what the platform said of a visit, unless it has said something later."""
        in_order = or_(visits.c.status_at.is_(None), visits.c.status_at <= at)
        said, key = {"status": status, "status_at": at}, _key(visits, _packed(visit))
        return self.change(Visit, said, in_order, *key)

    def forget_visits(self, campaign: str, worker: str) -> int:
        """Forget the visits of a worker to a campaign, and what a platform told of them alone; how many there were."""
        gone = self.remove(Visit, campaign=campaign, worker=worker)
        if not self.find(Visit, visits.c.campaign != UNCLAIMED, worker=worker, limit=1):
            self.remove(Visit, worker=worker)
        return gone

    # Tasks of imports that are set aside

    def stage(self, row: ImportRow, first: int, data: str) -> None:
        """Set a chunk of tasks aside."""
        with self._write() as connection:
            connection.execute(insert(import_chunks).values({"import": row.id, "first": first, "data": data}))
            connection.execute(update(imports).where(imports.c.id == row.id).values(_packed(row)))

    def staged(self, id: str, first: int) -> str | None:
        """A chunk that was set aside."""
        with self._read() as connection:
            return connection.execute(select(import_chunks.c.data).where(_import == id, _first == first)).scalar()

    def clear_staged(self, id: str, below: int, many: int) -> int:
        """Throw chunks away."""
        which = select(_first).where(_import == id, _first < below).order_by(_first).limit(many)
        with self._write() as connection:
            firsts = list(connection.execute(which).scalars())
            connection.execute(delete(import_chunks).where(_import == id, _first.in_(firsts)))
        return len(firsts)

    # Webhooks

    def due(self, now: float) -> list[Webhook]:
        """Webhooks that have something to be told."""
        news = exists().where(campaigns.c.id == webhooks.c.campaign, campaigns.c.seq > webhooks.c.position)
        free = webhooks.c.next_at <= now, webhooks.c.claimed_until <= now
        return self.find(Webhook, webhooks.c.disabled.is_(None), *free, news)

    def claim_webhook(self, webhook: Webhook, owner: str, now: float, until: float) -> bool:
        """Be the one who tells it: only if it is where it was read."""
        free = webhooks.c.claimed_until <= now, webhooks.c.disabled.is_(None)
        same = {"id": webhook.id, "position": webhook.position, "failures": webhook.failures}
        return self.change(Webhook, {"owner": owner, "claimed_until": until}, *free, **same)

    def save_webhook(self, webhook: Webhook, owner: str, until: float) -> bool:
        """Write how far a webhook has got, if ``owner`` is the one who tells it."""
        return self.change(Webhook, _packed(webhook) | {"claimed_until": until}, id=webhook.id, owner=owner)

    # Deleted campaigns

    def delete(self, id: str, now: float) -> Deletion:
        """Make a campaign disappear."""
        with self._write() as connection:
            number, rows = self._locked(connection, id)
            gone = update(campaigns).where(campaigns.c.number == number).values(id=f"{GONE}{number}")
            connection.execute(gone)
            connection.execute(insert(deleted_campaigns).values(id=id, number=number, deleted_at=now, rows=rows))
            for table in (link_versions, visits, webhooks):
                connection.execute(delete(table).where(table.c.campaign == id))
            connection.execute(delete(kept).where(kept.c.name.endswith(kept_name(id, ""), autoescape=True)))
        self._forget(id)
        return Deletion(id, now, rows)

    def deleted_at(self, id: str) -> float | None:
        """When a campaign was deleted."""
        which = select(deleted_campaigns.c.deleted_at).where(deleted_campaigns.c.id == id)
        with self._read() as connection:
            return connection.execute(which).scalar()

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
            which = select(deleted_campaigns.c.number).where(record).with_for_update()
            number = connection.execute(which).scalar_one_or_none()
            if number is None:
                return 0
            for table in TABLES:
                removed = _removed(connection, table, number, min(many, LARGE_AT_ONCE) if table in LARGE else many)
                if removed:
                    return removed
            staged = select(_import).where(_import == imports.c.id).exists()
            connection.execute(delete(imports).where(imports.c.campaign == deletion.id, ~staged))
            connection.execute(delete(campaigns).where(campaigns.c.number == number))
            connection.execute(update(deleted_campaigns).where(record).values(number=None))
        return 0


def _packed(row: Any) -> dict[str, Any]:
    """The columns of a row; lists are texts with commas."""
    values = ((one.name, getattr(row, one.name)) for one in fields(row))
    return {name: ",".join(value) if isinstance(value, tuple) else value for name, value in values}


def _unpacked(row: Any) -> dict[str, Any]:
    return {name: tuple(filter(None, value.split(","))) if name in LISTS else value for name, value in row.items()}


def _equal(table: Table, values: Mapping[str, Any]) -> list[ColumnElement[bool]]:
    return [
        table.c[name].in_(value) if isinstance(value, tuple) else table.c[name] == value
        for name, value in values.items()
        if value is not None
    ]


def _key(table: Table, values: Mapping[str, Any]) -> list[ColumnElement[bool]]:
    return [column == values[column.name] for column in table.primary_key]


def _removed(connection: Connection, table: Table, number: int, many: int) -> int:
    """Remove rows of a campaign from a table; returns how many."""
    keys = list(table.primary_key.columns)
    some = select(*keys).where(table.c.campaign == number).limit(many)
    return connection.execute(delete(table).where(tuple_(*keys).in_(some))).rowcount


def kept_name(campaign: str, part: str = "snapshot") -> str:
    """The name under which a part of a campaign's model is kept: its snapshot, or a learner's word."""
    return f"{part}:{campaign}"
