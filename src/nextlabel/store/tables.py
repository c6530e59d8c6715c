"""The tables of a database; ``migrations`` make them and every later change to them.

============ =======================================================================================
table        holds
============ =======================================================================================
kept         what is kept by name: settings such as the database's part of the key of workers' links, index tables,
             which take long to solve, and snapshots, so that a process need not read the whole log of a campaign
access_tokens, sessions, link_versions
             who may use the database (``campaign.records``); nothing in them is a secret
visits       visits of workers whom a platform sends (``campaign.records``)
campaigns    one row per campaign, which is locked by commands: settings, rules and counters
deleted_campaigns ids of campaigns that were deleted, for good; with the number by which their rows are found until all
             of them are removed (``store.records``)
events       the truth: append-only, numbered by campaign
classes      the different priors of a campaign's tasks
batches      batches of tasks that were added
imports      imports of many tasks that are under way, and the last ones that have ended (``campaign.records``)
import_chunks tasks of imports that were checked and set aside, until they are in the log
payloads     the payload of each task (``store.campaign_tables``)
texts        free text of events: comments and reasons; names of workers are in ``workers`` alone
tasks        one row per task: its id, class, place, belief, labels in flight
leases       one row per lease; a worker never has two for one task
workers      what each worker did, by numbers, which the log and the leases refer to
webhooks     addresses that are told what happens, and how far that has got (``campaign.webhooks``)
============ =======================================================================================

All but ``kept``, ``events``, ``payloads``, ``texts`` and the records of access, visits, imports,
deletions and webhooks follow from the events, their texts and payloads. Times are seconds since 1970, UTC.
"""

from __future__ import annotations

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
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.schema import CreateIndex, CreateTable

#: The revision that the tables below are; the newest in ``migrations/versions``.
HEAD = "0018"

#: A campaign has one import at a time (``campaign.imports.ACTIVE``).
_ACTIVE = "state IN ('staging', 'publishing')"

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


kept = Table(
    "kept", metadata, Column("name", String(200), primary_key=True), Column("data", LargeBinary, nullable=False)
)

access_tokens = Table(
    "access_tokens",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("role", String(16), nullable=False),
    Column("hash", String(64), nullable=False, unique=True),
    Column("created_at", Double, nullable=False),
)

sessions = Table(
    "sessions",
    metadata,
    Column("hash", String(64), primary_key=True),
    Column("token_hash", String(64), nullable=False),
    Column("created_at", Double, nullable=False),
)

#: By the campaign's id, not its number: it is read for all campaigns at once.
link_versions = Table(
    "link_versions",
    metadata,
    Column("campaign", String(48), nullable=False),
    Column("worker", String(200), nullable=False),
    Column("version", Integer, nullable=False),
    PrimaryKeyConstraint("campaign", "worker"),
)

#: By the campaign's id too: a platform does not say which campaign its submission belongs to.
visits = Table(
    "visits",
    metadata,
    Column("platform", String(16), nullable=False),
    Column("id", String(128), nullable=False),
    Column("campaign", String(48), nullable=False),
    Column("worker", String(200), nullable=False),
    Column("study", String(128), nullable=False),
    Column("begun_at", Double, nullable=False),
    Column("labels_before", BigInteger, nullable=False),
    Column("status", String(128), nullable=False),
    Column("status_at", Double),
    PrimaryKeyConstraint("platform", "id", "campaign"),
    Index("ix_visits_worker", "campaign", "worker"),
)

campaigns = Table(
    "campaigns",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=True),
    Column("id", String(48), nullable=False, unique=True),
    Column("config", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("budget", BigInteger, nullable=False),
    Column("deadline", Double),
    Column("lease_seconds", Double),
    Column("rho", Double, nullable=False),
    Column("paused", Boolean, nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("last_at", Double, nullable=False),
    Column("tasks", BigInteger, nullable=False),
    Column("full", BigInteger, nullable=False),
    Column("classes", BigInteger, nullable=False),
    Column("spent", BigInteger, nullable=False),
    Column("reserved", BigInteger, nullable=False),
    Column("given", BigInteger, nullable=False),
    Column("kept", BigInteger, nullable=False),
    Column("late", BigInteger, nullable=False),
    Column("expired", BigInteger, nullable=False),
    Column("released", BigInteger, nullable=False),
    Column("closed_seq", BigInteger),
    Column("closed_reason", String(32)),
    Column("arrivals", Double, nullable=False),
    Column("arrival_s", Double, nullable=False),
    Column("completions", Double, nullable=False),
    Column("work_s", Double, nullable=False),
    Column("last_arrival", Double),
    Column("rules", Text, nullable=False, server_default="{}"),
    Column("amended", Text, nullable=False, server_default="{}"),
    Column("controls", BigInteger, nullable=False, server_default="0"),
    CheckConstraint("spent >= 0 AND spent <= budget", name="budget_kept"),
    CheckConstraint("reserved >= 0", name="reserved_not_negative"),
)

deleted_campaigns = Table(
    "deleted_campaigns",
    metadata,
    Column("id", String(48), primary_key=True),
    Column("number", Integer),
    Column("deleted_at", Double, nullable=False),
    Column("rows", BigInteger, nullable=False),
)

events = Table(
    "events",
    metadata,
    _campaign(),
    Column("seq", BigInteger, nullable=False),
    Column("at", Double, nullable=False),
    Column("kind", String(32), nullable=False),
    Column("data", Text, nullable=False),
    PrimaryKeyConstraint("campaign", "seq"),
)

classes = Table(
    "classes",
    metadata,
    _campaign(),
    Column("number", Integer, nullable=False),
    Column("prior", Text, nullable=False),
    PrimaryKeyConstraint("campaign", "number"),
)

batches = Table(
    "batches",
    metadata,
    _campaign(),
    Column("key", String(200), nullable=False),
    Column("tasks", BigInteger, nullable=False),
    Column("digest", String(64)),
    PrimaryKeyConstraint("campaign", "key"),
)

imports = Table(
    "imports",
    metadata,
    Column("id", String(32), nullable=False, primary_key=True),
    Column("campaign", String(48), nullable=False),
    Column("batch", String(200)),
    Column("state", String(16), nullable=False),
    Column("owner", String(300), nullable=False),
    Column("started_at", Double, nullable=False),
    Column("beat_at", Double, nullable=False),
    Column("rows", BigInteger, nullable=False),
    Column("first", BigInteger, nullable=False),
    Column("added", BigInteger, nullable=False),
    Column("known", BigInteger, nullable=False),
    Column("digest", String(64)),
    Column("config", Text),
    Column("priors", Text, nullable=False),
    Column("counts", Text, nullable=False),
    Column("error", Text),
    Index(
        "ix_imports_active",
        "campaign",
        unique=True,
        sqlite_where=text(_ACTIVE),
        postgresql_where=text(_ACTIVE),
    ),
    Index("ix_imports_campaign", "campaign", "started_at"),
)

import_chunks = Table(
    "import_chunks",
    metadata,
    Column("import", String(32), ForeignKey("imports.id"), nullable=False),
    Column("first", BigInteger, nullable=False),
    Column("data", Text, nullable=False),
    PrimaryKeyConstraint("import", "first"),
)

payloads = Table(
    "payloads",
    metadata,
    _campaign(),
    Column("number", BigInteger, nullable=False),
    Column("data", Text, nullable=False),
    PrimaryKeyConstraint("campaign", "number"),
)

texts = Table(
    "texts",
    metadata,
    _campaign(),
    Column("seq", BigInteger, nullable=False),
    Column("data", Text, nullable=False),
    PrimaryKeyConstraint("campaign", "seq"),
)

tasks = Table(
    "tasks",
    metadata,
    _campaign(),
    Column("number", BigInteger, nullable=False),
    Column("key", String(200), nullable=False),
    Column("class_number", Integer, nullable=False),
    Column("place", Double, nullable=False),
    Column("node", Integer, nullable=False),
    Column("w", Integer, nullable=False),
    Column("labels", Integer, nullable=False),
    Column("closed_seq", BigInteger),
    Column("gold", Integer),
    PrimaryKeyConstraint("campaign", "number"),
    UniqueConstraint("campaign", "key"),
    CheckConstraint("w >= 0 AND labels >= 0", name="counts_not_negative"),
)

leases = Table(
    "leases",
    metadata,
    _campaign(),
    Column("number", BigInteger, nullable=False),
    Column("task", BigInteger, nullable=False),
    Column("worker", Integer, nullable=False),
    Column("status", String(16), nullable=False),
    Column("leased_at", Double, nullable=False),
    Column("expires_at", Double, nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("ended_at", Double),
    Column("label", Integer),
    Column("counted", Boolean),
    Column("dropped", Boolean, nullable=False),
    Column("free", Boolean, nullable=False),
    Column("comment", Text),
    Column("secret", BigInteger, nullable=False),
    PrimaryKeyConstraint("campaign", "number"),
    UniqueConstraint("campaign", "task", "worker"),
    CheckConstraint("status IN ('leased', 'labelled', 'expired', 'released', 'late')", name="status_known"),
    CheckConstraint("(label IS NOT NULL) = (status IN ('labelled', 'late'))", name="label_if_told"),
    Index(
        "ix_leases_open",
        "campaign",
        "expires_at",
        sqlite_where=text("status = 'leased'"),
        postgresql_where=text("status = 'leased'"),
    ),
    Index(
        "ix_leases_comment",
        "campaign",
        "number",
        sqlite_where=text("comment IS NOT NULL"),
        postgresql_where=text("comment IS NOT NULL"),
    ),
)

workers = Table(
    "workers",
    metadata,
    _campaign(),
    Column("number", Integer, nullable=False),
    Column("worker", String(200), nullable=False),
    Column("given", BigInteger, nullable=False),
    Column("labels", BigInteger, nullable=False),
    Column("late", BigInteger, nullable=False),
    Column("expired", BigInteger, nullable=False),
    Column("released", BigInteger, nullable=False),
    Column("seconds", Double, nullable=False),
    Column("last_at", Double, nullable=False),
    Column("bought", BigInteger, nullable=False),
    Column("dropped", BigInteger, nullable=False),
    Column("standing", String(16), nullable=False),
    Column("reason", String(500), nullable=False),
    Column("tested", BigInteger, nullable=False),
    Column("free", BigInteger, nullable=False),
    Column("turned_away", BigInteger, nullable=False),
    PrimaryKeyConstraint("campaign", "number"),
    UniqueConstraint("campaign", "worker"),
)

webhooks = Table(
    "webhooks",
    metadata,
    _campaign(),
    Column("id", String(40), primary_key=True),
    Column("url", Text, nullable=False),
    Column("types", String(200), nullable=False),
    Column("created_at", Double, nullable=False),
    Column("position", BigInteger, nullable=False),
    Column("delivered", BigInteger, nullable=False),
    Column("failures", BigInteger, nullable=False),
    Column("first_failed_at", Double),
    Column("next_at", Double, nullable=False),
    Column("disabled", Text),
    Column("last_at", Double),
    Column("last_reply", Text, nullable=False),
    Column("owner", String(64), nullable=False),
    Column("claimed_until", Double, nullable=False),
    Index("ix_webhooks_campaign", "campaign"),
)


def create_tables(connection: Connection) -> None:
    """Make all tables; indexes in one order, because SQLite takes the first of those that serve a query alike."""
    for table in metadata.sorted_tables:
        connection.execute(CreateTable(table))
        for index in sorted(table.indexes, key=lambda index: str(index.name)):
            connection.execute(CreateIndex(index))
