"""The statements of the SQL store, built once: SQLAlchemy keeps what it compiled for each."""

from __future__ import annotations

from functools import cache
from typing import Any

from sqlalchemy import (
    BindParameter,
    Double,
    Insert,
    Table,
    and_,
    bindparam,
    case,
    cast,
    extract,
    func,
    insert,
    literal_column,
    null,
    select,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite

from nextlabel.campaign.imports import ACTIVE
from nextlabel.store.payloads import PAYLOAD
from nextlabel.store.tables import (
    batches,
    campaigns,
    classes,
    deleted_campaigns,
    events,
    imports,
    leases,
    states,
    tasks,
    workers,
)

#: Written out, not bound: a partial index serves only queries in which its condition stands.
_OPEN = leases.c.status == literal_column("'leased'")
_CAMPAIGN: BindParameter[int] = bindparam("campaign")

TASK = (
    tasks.c.number, tasks.c.key, PAYLOAD, tasks.c.klass, tasks.c.lot, tasks.c.node, tasks.c.w, tasks.c.labels,
    tasks.c.score, tasks.c.last_seq, tasks.c.closed_seq, tasks.c.gold,
)  # fmt: skip
LEASE = (
    leases.c.id, leases.c.task, leases.c.worker, leases.c.status, leases.c.leased_at, leases.c.expires_at, leases.c.seq,
    leases.c.ended_at, leases.c.label, leases.c.counted, leases.c.dropped, leases.c.free,
    leases.c.comment,
)  # fmt: skip
WORKER = tuple(column for column in workers.c if column.name != "campaign")


def _all(table: Table) -> dict[str, Any]:
    """A parameter for every column."""
    return {column.name: bindparam(column.name) for column in table.c}


CAMPAIGN = tuple(campaigns.c)
#: Columns of a campaign that never change.
FIXED = ("number", "id", "config", "created_at")

lock_campaign = select(*CAMPAIGN).where(campaigns.c.id == bindparam("id")).with_for_update()
#: The server's time in seconds since 1970 (PostgreSQL), alone and with the lock.
server_time = select(cast(extract("epoch", func.clock_timestamp()), Double))
lock_campaign_with_time = lock_campaign.add_columns(cast(extract("epoch", func.clock_timestamp()), Double))
campaign_by_id = select(*CAMPAIGN).where(campaigns.c.id == bindparam("id"))
#: What the id of a campaign that was deleted begins with, until its rows are removed (``store.records``).
GONE = "~"
all_campaigns = (
    select(*CAMPAIGN)
    .where(campaigns.c.id.not_like(f"{GONE}%"))
    .order_by(campaigns.c.created_at.desc(), campaigns.c.number.desc())
)
deleted_at = select(deleted_campaigns.c.deleted_at).where(deleted_campaigns.c.id == bindparam("id"))
events_after = (
    select(events.c.seq, events.c.at, events.c.kind, events.c.data)
    .where(events.c.campaign == _CAMPAIGN, events.c.seq > bindparam("after"))
    .order_by(events.c.seq)
    .limit(bindparam("many"))
)

#: Without the data of events that added tasks, which may have a megabyte.
light_events_after = (
    select(
        events.c.seq,
        events.c.at,
        events.c.kind,
        case((events.c.kind == literal_column("'tasks_added'"), literal_column("'{}'")), else_=events.c.data),
    )
    .where(events.c.campaign == _CAMPAIGN, events.c.seq > bindparam("after"))
    .order_by(events.c.seq)
    .limit(bindparam("many"))
)
last_event = (
    select(events.c.seq)
    .where(events.c.campaign == _CAMPAIGN, events.c.kind == bindparam("kind"))
    .order_by(events.c.seq.desc())
    .limit(1)
)

classes_from = (
    select(classes.c.prior)
    .where(classes.c.campaign == _CAMPAIGN, classes.c.number >= bindparam("first"))
    .order_by(classes.c.number)
)
active_import = select(imports.c.id).where(
    imports.c.campaign == bindparam("id"), imports.c.state.in_([literal_column(f"'{state}'") for state in ACTIVE])
)
batch_by_key = select(batches.c.tasks, batches.c.digest).where(
    batches.c.campaign == _CAMPAIGN, batches.c.key == bindparam("key")
)

task_by_number = select(*TASK).where(tasks.c.campaign == _CAMPAIGN, tasks.c.number == bindparam("number"))
tasks_by_key = select(*TASK).where(tasks.c.campaign == _CAMPAIGN, tasks.c.key.in_(bindparam("keys", expanding=True)))
#: Tasks of an import that is not published have numbers from ``until`` on, and places from ``end`` on.
tasks_after = (
    select(*TASK)
    .where(tasks.c.campaign == _CAMPAIGN, tasks.c.number > bindparam("after"), tasks.c.number < bindparam("until"))
    .order_by(tasks.c.number)
    .limit(bindparam("many"))
)
task_classes = (
    select(tasks.c.klass)
    .where(tasks.c.campaign == _CAMPAIGN, tasks.c.number >= bindparam("first"), tasks.c.number < bindparam("end"))
    .order_by(tasks.c.number)
)
set_gold = (
    update(tasks)
    .where(tasks.c.campaign == bindparam("b_campaign"), tasks.c.number == bindparam("b_number"))
    .values(gold=bindparam("gold"), klass=bindparam("klass"), score=null())
)
_had = select(leases.c.id).where(
    leases.c.campaign == _CAMPAIGN, leases.c.task == tasks.c.number, leases.c.worker == bindparam("worker")
)
control_from = (
    select(*TASK)
    .where(
        tasks.c.campaign == _CAMPAIGN,
        tasks.c.gold.is_not(None),
        tasks.c.lot >= bindparam("start"),
        tasks.c.number < bindparam("until"),
        ~_had.exists(),
    )
    .order_by(tasks.c.lot)
    .limit(1)
)
score_task = (
    update(tasks)
    .where(tasks.c.campaign == bindparam("b_campaign"), tasks.c.number == bindparam("b_number"))
    .values(score=bindparam("score"))
)

_scored = and_(tasks.c.campaign == _CAMPAIGN, tasks.c.score.is_not(None))
scored_task = select(tasks.c.number).where(_scored).limit(1)

states_of = select(states.c.klass, states.c.node, states.c.w, states.c.count).where(
    states.c.campaign == _CAMPAIGN, states.c.count > 0
)

add_class = insert(classes).values(_all(classes))
lease_by_id = select(*LEASE).where(leases.c.id == bindparam("id"), leases.c.campaign == _CAMPAIGN)
open_leases = (
    select(*LEASE)
    .where(leases.c.campaign == _CAMPAIGN, leases.c.worker == bindparam("worker"), _OPEN)
    .order_by(leases.c.seq)
)
labels_of = (
    select(*LEASE)
    .where(
        leases.c.campaign == _CAMPAIGN,
        leases.c.worker == bindparam("worker"),
        leases.c.seq > bindparam("after"),
        leases.c.counted.is_(True),
        leases.c.dropped == bindparam("dropped"),
    )
    .order_by(leases.c.seq)
    .limit(bindparam("many"))
)
expired_leases = (
    select(*LEASE)
    .where(leases.c.campaign == _CAMPAIGN, leases.c.expires_at <= bindparam("now"), _OPEN)
    .order_by(leases.c.expires_at, leases.c.seq)
    .limit(bindparam("many"))
)
next_expiry = select(func.min(leases.c.expires_at)).where(leases.c.campaign == _CAMPAIGN, _OPEN)
shorten_leases = (
    update(leases)
    .where(leases.c.campaign == bindparam("b_campaign"), leases.c.expires_at > bindparam("until"))
    .values(expires_at=bindparam("until"))
)
backdate_leases = (
    update(leases)
    .where(leases.c.campaign == bindparam("b_campaign"), leases.c.leased_at > bindparam("given"), _OPEN)
    .values(leased_at=bindparam("given"))
)
leases_of = (
    select(*LEASE)
    .where(leases.c.campaign == _CAMPAIGN, leases.c.task.in_(bindparam("tasks", expanding=True)))
    .order_by(leases.c.seq)
)

worker_by_name = select(*WORKER).where(workers.c.campaign == _CAMPAIGN, workers.c.worker == bindparam("worker"))
workers_of = (
    select(*WORKER)
    .where(workers.c.campaign == _CAMPAIGN)
    .order_by(workers.c.labels.desc(), workers.c.worker)
    .limit(bindparam("many"))
)


@cache
def upsert(dialect: str, table: Table) -> Insert:
    """Insert rows, or write them over those with the same primary key."""
    keys = tuple(column.name for column in table.primary_key)
    make: Any = postgresql.insert if dialect == "postgresql" else sqlite.insert
    statement = make(table).values(_all(table))
    rest = {column.name: statement.excluded[column.name] for column in table.c if column.name not in keys}
    out: Insert = statement.on_conflict_do_update(index_elements=list(keys), set_=rest)
    return out
