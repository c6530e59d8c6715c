"""The tables of a database.

============ =======================================================================================
table        holds
============ =======================================================================================
kept         what is kept by name: settings such as the database's part of the key of workers' links, index tables,
             which take long to solve, and snapshots, so that a process need not read the whole log of a campaign
access_tokens, sessions, link_versions, owners
             who may use the database (``campaign.records``); nothing in them is a secret
activity     who changed what (``campaign.records``)
visits       visits of workers whom a platform sends (``campaign.records``)
campaigns    one row per campaign, which is locked by commands: settings and counters, most of them as JSON
deleted_campaigns ids of campaigns that were deleted, for good; with the number by which their rows are found until all
             of them are removed (``store.records``)
events       the truth: append-only, numbered by campaign
classes      the different priors of a campaign's tasks
batches      batches of tasks that were added
imports      imports of many tasks that are under way, and the last ones that have ended (``campaign.records``)
import_chunks tasks of imports that were checked and set aside, until they are in the log
payloads     the id and the payload of each task (``store.campaign_tables``)
texts        free text of events: comments and reasons; names of workers are in ``workers`` alone
tasks        one row per task, with the columns that it has in memory (``policies.allocation.TaskColumns``)
leases       one row per lease in the same way (``campaign.state.LeaseColumns``); a worker never has two for one task
workers      what each worker did, by numbers, which the log and the leases refer to
webhooks     addresses that are told what happens, and how far that has got (``campaign.webhooks``)
============ =======================================================================================

All but ``kept``, ``events``, ``payloads``, ``texts`` and the records of access, visits, imports,
deletions and webhooks follow from the events, their texts and payloads. Times are seconds since 1970, UTC.
"""

from __future__ import annotations

from types import NoneType
from typing import Any, get_args, get_type_hints

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Connection,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.schema import CreateIndex, CreateTable

from nextlabel.campaign.records import AccessToken, Activity, ImportRow, Session, Visit
from nextlabel.campaign.rows import WorkerRow
from nextlabel.campaign.state import STATUSES, LeaseColumns
from nextlabel.campaign.webhooks import Webhook
from nextlabel.policies.allocation import Columns, TaskColumns

#: The revision that the tables below are, that in ``migrations/versions``; another one is refused (``store.migrate``).
HEAD = "0021"

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def _campaign() -> Column[int]:
    return Column("campaign", Integer, ForeignKey("campaigns.number"), nullable=False)


def _columns(**kinds: Any) -> list[Column[Any]]:
    """Columns that always have a value."""
    return [Column(name, kind, nullable=False) for name, kind in kinds.items()]


def _of_campaign(table: str, key: str, /, *more: Any, **kinds: Any) -> Table:
    """A table with rows of campaigns: columns that always have a value, then ``more``; numbered by ``key``."""
    return Table(table, metadata, _campaign(), *_columns(**kinds), *more, PrimaryKeyConstraint("campaign", key))


def _partial_index(name: str, *columns: str, where: str, unique: bool = False) -> Index:
    return Index(name, *columns, unique=unique, sqlite_where=text(where), postgresql_where=text(where))


def _fields(row: type) -> list[Column[Any]]:
    """A column for each field of a dataclass; what is neither a number nor a truth is a text."""
    out: list[Column[Any]] = []
    for name, hint in get_type_hints(row).items():
        kinds = {int: BigInteger, float: Double, bool: Boolean}
        kind = next((kinds[one] for one in (hint, *get_args(hint)) if one in kinds), Text)
        out.append(Column(name, kind, nullable=NoneType in get_args(hint)))
    return out


def _arrays(columns: Columns) -> list[Column[Any]]:
    """A column for each array."""
    kinds = {"b1": Boolean, "i8": BigInteger, "f8": Double}
    return [
        Column(name, kinds.get(array.dtype.str[1:], Integer), nullable=False)
        for name, array in columns.arrays().items()
    ]


kept = Table("kept", metadata, Column("name", Text, primary_key=True), Column("data", LargeBinary, nullable=False))

access_tokens = Table(
    "access_tokens", metadata, *_fields(AccessToken), PrimaryKeyConstraint("name"), UniqueConstraint("hash")
)

sessions = Table("sessions", metadata, *_fields(Session), PrimaryKeyConstraint("hash"))

#: By the campaign's id, not its number: it is read for all campaigns at once.
link_versions = Table(
    "link_versions", metadata, *_columns(campaign=Text, worker=Text, version=Integer),
    PrimaryKeyConstraint("campaign", "worker"),
)  # fmt: skip

#: By the campaign's id, which stays when the campaign is deleted.
owners = Table("owners", metadata, *_columns(campaign=Text, owner=Text), PrimaryKeyConstraint("campaign"))
Index("ix_owners_owner", owners.c.owner)

activity = Table(
    "activity", metadata, Column("number", Integer, primary_key=True, autoincrement=True), *_fields(Activity),
    Index("ix_activity_campaign", "campaign"),
)  # fmt: skip

#: By the campaign's id too: a platform does not say which campaign its submission belongs to.
visits = Table(
    "visits", metadata, *_fields(Visit), PrimaryKeyConstraint("platform", "id", "campaign"),
    Index("ix_visits_worker", "campaign", "worker"),
)  # fmt: skip

campaigns = Table(
    "campaigns", metadata, Column("number", Integer, primary_key=True, autoincrement=True),
    *_columns(id=Text, created_at=Double, seq=BigInteger, budget=BigInteger, spent=BigInteger, reserved=BigInteger),
    *_columns(config=Text, data=Text), UniqueConstraint("id"),
    CheckConstraint("spent >= 0 AND spent <= budget", name="budget_kept"),
    CheckConstraint("reserved >= 0", name="reserved_not_negative"),
)  # fmt: skip

deleted_campaigns = Table(
    "deleted_campaigns", metadata, Column("id", Text, primary_key=True), Column("number", Integer),
    *_columns(deleted_at=Double, rows=BigInteger),
)  # fmt: skip

events = _of_campaign("events", "seq", seq=BigInteger, at=Double, kind=Text, data=Text)
classes = _of_campaign("classes", "number", number=Integer, prior=Text)
batches = _of_campaign("batches", "key", Column("digest", Text), key=Text, tasks=BigInteger)

#: A campaign has one import at a time.
imports = Table(
    "imports", metadata, *_fields(ImportRow), PrimaryKeyConstraint("id"),
    _partial_index("ix_imports_active", "campaign", where="state IN ('staging', 'publishing')", unique=True),
    Index("ix_imports_campaign", "campaign", "started_at"),
)  # fmt: skip

import_chunks = Table(
    "import_chunks", metadata, Column("import", Text, ForeignKey("imports.id"), nullable=False),
    *_columns(first=BigInteger, data=Text), PrimaryKeyConstraint("import", "first"),
)  # fmt: skip

payloads = _of_campaign(
    "payloads", "number", UniqueConstraint("campaign", "key"), number=BigInteger, key=Text, data=Text
)  # fmt: skip
texts = _of_campaign("texts", "seq", seq=BigInteger, data=Text)

tasks = _of_campaign(
    "tasks", "number", *_arrays(TaskColumns()),
    CheckConstraint("w >= 0 AND labels >= 0", name="counts_not_negative"), number=BigInteger,
)  # fmt: skip

leases = _of_campaign(
    "leases", "number", *_arrays(LeaseColumns()), Column("comment", Text),
    UniqueConstraint("campaign", "task", "worker"),
    CheckConstraint(f"status BETWEEN 0 AND {len(STATUSES) - 1}", name="status_known"),
    CheckConstraint("(label >= 0) = (status IN (1, 4))", name="label_if_told"),
    _partial_index("ix_leases_open", "campaign", "expires_at", where="status = 0"),
    _partial_index("ix_leases_comment", "campaign", "number", where="comment IS NOT NULL"), number=BigInteger,
)  # fmt: skip

workers = _of_campaign(
    "workers", "number", *_fields(WorkerRow), UniqueConstraint("campaign", "worker"), number=Integer
)  # fmt: skip

webhooks = Table(
    "webhooks", metadata, *_fields(Webhook), Column("owner", Text, nullable=False, default=""),
    Column("claimed_until", Double, nullable=False, default=0.0), PrimaryKeyConstraint("id"),
    Index("ix_webhooks_campaign", "campaign"),
)  # fmt: skip


def create_tables(connection: Connection) -> None:
    """Make all tables; indexes in one order, because SQLite takes the first of those that serve a query alike."""
    for table in metadata.sorted_tables:
        connection.execute(CreateTable(table))
        for index in sorted(table.indexes, key=lambda index: str(index.name)):
            connection.execute(CreateIndex(index))
