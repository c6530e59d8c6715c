"""What a database keeps beside its campaigns: who may use it, visits, imports, webhooks and deletions.

The rows are those of ``campaign.records`` and ``campaign.webhooks``; ``read`` and ``write`` begin transactions. A
campaign that is deleted gets an id that no campaign can have; ``deleted_campaigns`` remembers the one that it had, and
the number by which its rows are found until all of them are removed. Its own row goes last.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, fields, replace
from typing import Any, Final, TypeVar

from sqlalchemy import (
    ColumnElement,
    Connection,
    Delete,
    Select,
    Table,
    Update,
    bindparam,
    delete,
    exists,
    insert,
    literal_column,
    or_,
    select,
    tuple_,
    update,
)
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
    no_campaign,
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
Begin = Callable[[], AbstractContextManager[Connection]]
#: Locks a campaign, or raises; returns its number, and about how many rows it has.
Lock = Callable[[Connection, str], tuple[int, int]]
#: Written out, not bound: a partial index serves only queries in which its condition stands.
_ACTIVE = imports.c.state.in_([literal_column(f"'{state}'") for state in ACTIVE])
_import, _first = import_chunks.c["import"], import_chunks.c["first"]
_owner = select(owners.c.owner).where(owners.c.campaign == bindparam("campaign"))
_taken = select(
    or_(
        exists().where(campaigns.c.id == bindparam("campaign")),
        exists().where(deleted_campaigns.c.id == bindparam("campaign")),
    )
)
#: What the id of a campaign that was deleted begins with, until its rows are removed.
GONE: Final = "~"
#: What is written as a webhook is told.
PROGRESS = (
    "position", "delivered", "failures", "first_failed_at", "next_at", "disabled", "last_at", "last_reply",
)  # fmt: skip
#: Events and payloads may have a megabyte each: so many of them are removed at once at most.
LARGE_AT_ONCE: Final = 200
LARGE: Final = (events, payloads)
#: Tables with rows of campaigns.
TABLES: Final = tuple(
    table for table in metadata.sorted_tables if "campaign" in table.c and table.c.campaign.foreign_keys
)


class _Records:
    """Rows that are dataclasses."""

    def __init__(self, read: Begin, write: Begin) -> None:
        self._read, self._write = read, write

    def _rows(self, row: type[T], question: Select[Any]) -> list[T]:
        with self._read() as connection:
            return [row(**one) for one in connection.execute(question).mappings()]

    def _add(self, table: Table, row: Any, instead: ColumnElement[bool] | None = None) -> bool:
        """Insert a row, perhaps ``instead`` of another one; False if there is one with the same key."""
        try:
            with self._write() as connection:
                if instead is not None:
                    connection.execute(delete(table).where(instead))
                connection.execute(insert(table).values(asdict(row)))
        except IntegrityError:
            return False
        return True

    def _change(self, statement: Delete | Update) -> bool:
        """Whether there was a row to be changed or deleted."""
        with self._write() as connection:
            return connection.execute(statement).rowcount > 0


class SqlAccess(_Records):
    """Tokens, sessions and versions of links."""

    def tokens(self) -> list[AccessToken]:
        """All tokens, oldest first."""
        return self._rows(AccessToken, select(access_tokens).order_by(access_tokens.c.created_at, access_tokens.c.name))

    def save_token(self, token: AccessToken, replace: bool = False) -> bool:
        """Add or replace a token."""
        return self._add(access_tokens, token, access_tokens.c.name == token.name if replace else None)

    def remove_token(self, name: str) -> bool:
        """Revoke a token."""
        return self._change(delete(access_tokens).where(access_tokens.c.name == name))

    def add_session(self, session: Session) -> None:
        """A browser has signed in."""
        self._add(sessions, session)

    def session(self, hash: str) -> Session | None:
        """The session with this hash."""
        return next(iter(self._rows(Session, select(sessions).where(sessions.c.hash == hash))), None)

    def end_session(self, hash: str) -> None:
        """A browser has signed out."""
        self._change(delete(sessions).where(sessions.c.hash == hash))

    def end_sessions(self, before: float) -> None:
        """End the sessions that began before a time."""
        self._change(delete(sessions).where(sessions.c.created_at < before))

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

    def note(self, action: Activity) -> None:
        """Something was done."""
        self._add(activity, action)

    def activity(self, owner: str, within: Collection[str], campaign: str, limit: int) -> list[Activity]:
        """What was done, newest first: to a campaign, or by an owner and to what is theirs, or only to some."""
        which = select(*(activity.c[field.name] for field in fields(Activity)))
        if campaign or within:
            which = which.where(activity.c.campaign.in_([campaign] if campaign else within))
        if owner:
            theirs = select(owners.c.campaign).where(owners.c.owner == owner)
            alone = (activity.c.campaign == "") & (activity.c.owner == owner)
            which = which.where(alone | activity.c.campaign.in_(theirs))
        return self._rows(Activity, which.order_by(activity.c.number.desc()).limit(limit))

    def forget_activity(self, before: float) -> int:
        """Forget what was done before a time."""
        with self._write() as connection:
            return connection.execute(delete(activity).where(activity.c.at < before)).rowcount


class SqlVisits(_Records):
    """Visits of platforms' workers."""

    def add(self, visit: Visit) -> Visit:
        """A visit begins, unless it has before."""
        if self._add(visits, visit):
            return visit
        return next(one for one in self.find(visit.platform, visit.id) if one.campaign == visit.campaign)

    def find(self, platform: str, id: str) -> list[Visit]:
        """The visits with that id."""
        return self._those((visits.c.platform == platform) & (visits.c.id == id))

    def of(self, campaign: str, platform: str | None = None, worker: str | None = None) -> list[Visit]:
        """The visits to a campaign."""
        which = visits.c.campaign == campaign
        if platform is not None:
            which &= visits.c.platform == platform
        if worker is not None:
            which &= visits.c.worker == worker
        return self._those(which)

    def forget(self, campaign: str, worker: str) -> int:
        """Forget the visits of a worker to a campaign, and what a platform told of them alone; how many there were."""
        with self._write() as connection:
            which = (visits.c.campaign == campaign) & (visits.c.worker == worker)
            gone = connection.execute(delete(visits).where(which)).rowcount
            claimed = exists().where((visits.c.worker == worker) & (visits.c.campaign != UNCLAIMED))
            if not connection.execute(select(claimed)).scalar():
                connection.execute(delete(visits).where(visits.c.worker == worker))
        return gone

    def of_worker(self, platform: str, worker: str) -> list[Visit]:
        """The visits of a worker to any campaign."""
        this = (visits.c.platform == platform) & (visits.c.worker == worker) & (visits.c.campaign != UNCLAIMED)
        return self._those(this)

    def set_status(self, visit: Visit, status: str, at: float) -> bool:
        """Keep what the platform said, unless it has said something later."""
        this = (visits.c.platform == visit.platform) & (visits.c.id == visit.id) & (visits.c.campaign == visit.campaign)
        in_order = or_(visits.c.status_at.is_(None), visits.c.status_at <= at)
        return self._change(update(visits).where(this & in_order).values(status=status, status_at=at))

    def _those(self, which: ColumnElement[bool]) -> list[Visit]:
        return self._rows(Visit, select(visits).where(which).order_by(visits.c.begun_at, visits.c.id))


class SqlImports(_Records):
    """Imports of tasks."""

    def begin(self, row: ImportRow) -> bool:
        """A new import."""
        return self._add(imports, row)

    def save(self, row: ImportRow) -> None:
        """An import that has changed."""
        self._change(_saved(row))

    def claim(self, row: ImportRow, owner: str, now: float) -> bool:
        """Take an import over."""
        same = (imports.c.id == row.id, imports.c.owner == row.owner, imports.c.beat_at == row.beat_at)
        taken = self._change(update(imports).where(*same).values(owner=owner, beat_at=now))
        if taken:
            row.owner, row.beat_at = owner, now
        return taken

    def find(self, id: str) -> ImportRow | None:
        """An import by id."""
        return next(iter(self._those(imports.c.id == id)), None)

    def active(self) -> list[ImportRow]:
        """All imports that have not ended."""
        return self._those(_ACTIVE)

    def of_campaign(self, campaign: str, limit: int) -> list[ImportRow]:
        """The imports of a campaign."""
        return self._those(imports.c.campaign == campaign, limit)

    def stage(self, row: ImportRow, first: int, data: str) -> None:
        """Set a chunk of tasks aside."""
        with self._write() as connection:
            connection.execute(insert(import_chunks).values({"import": row.id, "first": first, "data": data}))
            connection.execute(_saved(row))

    def staged(self, id: str, first: int) -> str | None:
        """A chunk that was set aside."""
        with self._read() as connection:
            return connection.execute(select(import_chunks.c.data).where(_import == id, _first == first)).scalar()

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
        self._change(delete(imports).where(~_ACTIVE, imports.c.beat_at < before))

    def _those(self, which: ColumnElement[bool], limit: int = 1000) -> list[ImportRow]:
        question = select(imports).where(which).order_by(imports.c.started_at.desc(), imports.c.id)
        return self._rows(ImportRow, question.limit(limit))


def _saved(row: ImportRow) -> Update:
    return update(imports).where(imports.c.id == row.id).values(asdict(row))


class SqlWebhooks(_Records):
    """Webhooks of campaigns."""

    def add(self, webhook: Webhook) -> None:
        """A new webhook."""
        values = asdict(webhook) | {"types": ",".join(webhook.types), "owner": "", "claimed_until": 0.0}
        with self._write() as connection:
            number = connection.execute(select(campaigns.c.number).where(campaigns.c.id == webhook.campaign)).scalar()
            if number is None:
                raise no_campaign(webhook.campaign)
            connection.execute(insert(webhooks).values(values | {"campaign": number}))

    def of(self, campaign: str) -> list[Webhook]:
        """Those of a campaign, oldest first."""
        return self._those(campaigns.c.id == campaign)

    def remove(self, campaign: str, id: str) -> bool:
        """End one."""
        return self._change(delete(webhooks).where(*_which(campaign, id)))

    def due(self, now: float) -> list[Webhook]:
        """Those that have something to be told."""
        return self._those(
            webhooks.c.disabled.is_(None), webhooks.c.next_at <= now, webhooks.c.claimed_until <= now,
            campaigns.c.seq > webhooks.c.position, campaigns.c.id.not_like(f"{GONE}%"),
        )  # fmt: skip

    def claim(self, webhook: Webhook, owner: str, now: float, until: float) -> bool:
        """Be the one who tells it: only if it is where it was read."""
        same = (
            webhooks.c.id == webhook.id, webhooks.c.claimed_until <= now, webhooks.c.position == webhook.position,
            webhooks.c.failures == webhook.failures, webhooks.c.disabled.is_(None),
        )  # fmt: skip
        return self._change(update(webhooks).where(*same).values(owner=owner, claimed_until=until))

    def save(self, webhook: Webhook, owner: str, until: float) -> bool:
        """Write how far it has got."""
        values: dict[str, Any] = {name: getattr(webhook, name) for name in PROGRESS}
        which = (webhooks.c.id == webhook.id, webhooks.c.owner == owner)
        return self._change(update(webhooks).where(*which).values(**values, claimed_until=until))

    def enable(self, campaign: str, id: str) -> bool:
        """Go on with one."""
        values = {"disabled": None, "failures": 0, "first_failed_at": None, "next_at": 0.0}
        return self._change(update(webhooks).where(*_which(campaign, id)).values(values))

    def _those(self, *which: ColumnElement[bool]) -> list[Webhook]:
        own = [webhooks.c[field.name] for field in fields(Webhook) if field.name != "campaign"]
        joined = select(*own, campaigns.c.id.label("campaign")).join(
            campaigns, campaigns.c.number == webhooks.c.campaign
        )
        found = self._rows(Webhook, joined.where(*which).order_by(webhooks.c.created_at, webhooks.c.id))
        return [replace(one, types=tuple(str(one.types).split(","))) for one in found]


def _which(campaign: str, id: str) -> tuple[Any, Any]:
    number = select(campaigns.c.number).where(campaigns.c.id == campaign).scalar_subquery()
    return webhooks.c.id == id, webhooks.c.campaign == number


class SqlDeletions:
    """Deleted campaigns."""

    def __init__(self, read: Begin, write: Begin, lock: Lock, forget: Callable[[str], None]) -> None:
        self._read, self._write, self._lock, self._forget = read, write, lock, forget

    def begin(self, id: str, now: float) -> Deletion:
        """Make a campaign disappear."""
        with self._write() as connection:
            number, rows = self._lock(connection, id)
            gone = update(campaigns).where(campaigns.c.number == number).values(id=f"{GONE}{number}")
            connection.execute(gone)
            connection.execute(insert(deleted_campaigns).values(id=id, number=number, deleted_at=now, rows=rows))
            connection.execute(delete(link_versions).where(link_versions.c.campaign == id))
            connection.execute(delete(visits).where(visits.c.campaign == id))
            connection.execute(delete(kept).where(kept.c.name.endswith(kept_name(id, ""), autoescape=True)))
        self._forget(id)
        return Deletion(id, now, rows)

    def find(self, id: str) -> float | None:
        """When a campaign was deleted."""
        with self._read() as connection:
            return connection.execute(
                select(deleted_campaigns.c.deleted_at).where(deleted_campaigns.c.id == id)
            ).scalar()

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


def kept_name(campaign: str, part: str = "snapshot") -> str:
    """The name under which a part of a campaign's model is kept: its snapshot, or a learner's word."""
    return f"{part}:{campaign}"
