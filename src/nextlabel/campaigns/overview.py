"""What a requester looks at: small reads that an index answers, however many tasks a campaign has.

``SqlOverview`` asks a database; ``PlainOverview`` answers the same from any store by looking at everything.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from sqlalchemy import and_, bindparam, case, literal_column, null, select

from nextlabel.campaign.events import Event
from nextlabel.campaign.ledger import Store
from nextlabel.campaign.rows import Group, LeaseRow, TaskRow
from nextlabel.campaign.transitions import LABELLED, LEASED
from nextlabel.store.memory import no_campaign
from nextlabel.store.row_mapping import event_from, lease_from, task_from
from nextlabel.store.sql import SqlStore
from nextlabel.store.statements import LEASE, TASK
from nextlabel.store.tables import campaigns, events, leases, tasks

#: Tasks and leases that are looked at in one go: more than the store's CHUNK of them is never asked for.
EVERYTHING = 10**9
#: Events whose data may have a megabyte: they are told of without it.
LARGE = "tasks_added"


@dataclass(frozen=True, slots=True)
class RecentAnswers:
    """One label of a worker, and the state of its task now; ``seconds`` if it came in time."""

    label: int
    klass: int
    node: int
    labels: int
    seconds: float | None


class Overview(Protocol):
    """Reads for a requester."""

    def events_before(self, id: str, before: int | None, limit: int) -> list[Event]:
        """Events below a number, newest first; those that added tasks without their data."""
        ...

    def tasks_in(self, id: str, groups: Sequence[Group], limit: int) -> list[TaskRow]:
        """Tasks of these groups, group by group, at most so many."""
        ...

    def tasks_numbered(self, id: str, numbers: Iterable[int]) -> dict[int, TaskRow]:
        """Those of the tasks that there are."""
        ...

    def leases_named(self, id: str, names: Iterable[str]) -> dict[str, LeaseRow]:
        """Those of the leases that there are."""
        ...

    def out_now(self, id: str, limit: int) -> list[LeaseRow]:
        """Leases that are out, those that end first first."""
        ...

    def said_by(self, id: str, worker: str, limit: int) -> list[RecentAnswers]:
        """A worker's last labels."""
        ...


def overview_of(store: Store) -> Overview:
    """The quickest there is for a store."""
    return SqlOverview(store) if isinstance(store, SqlStore) else PlainOverview(store)


_CAMPAIGN: Any = bindparam("campaign")
_MANY: Any = bindparam("many")
_number = select(campaigns.c.number).where(campaigns.c.id == bindparam("id"))
_data = case((events.c.kind == LARGE, "{}"), else_=events.c.data)
_events_before = (
    select(events.c.seq, events.c.at, events.c.kind, _data)
    .where(events.c.campaign == _CAMPAIGN, events.c.seq < bindparam("before"))
    .order_by(events.c.seq.desc())
    .limit(_MANY)
)
_tasks_in = (
    select(*TASK)
    .where(
        tasks.c.campaign == _CAMPAIGN,
        tasks.c.klass == bindparam("klass"),
        tasks.c.node == bindparam("node"),
        tasks.c.w == bindparam("w"),
    )
    .order_by(tasks.c.lot)
    .limit(_MANY)
)
_tasks_numbered = select(*TASK).where(
    tasks.c.campaign == _CAMPAIGN, tasks.c.number.in_(bindparam("numbers", expanding=True))
)
_leases_named = select(*LEASE).where(
    leases.c.campaign == _CAMPAIGN, leases.c.id.in_(bindparam("names", expanding=True))
)
# Written out, not bound: a partial index serves only queries in which its condition stands.
_out_now = (
    select(*LEASE)
    .where(leases.c.campaign == _CAMPAIGN, leases.c.status == literal_column("'leased'"))
    .order_by(leases.c.expires_at, leases.c.seq)
    .limit(_MANY)
)
_last = (
    select(
        leases.c.task,
        leases.c.label,
        leases.c.seq,
        case((leases.c.status == LABELLED, leases.c.ended_at - leases.c.leased_at), else_=null()).label("seconds"),
    )
    .where(leases.c.campaign == _CAMPAIGN, leases.c.worker == bindparam("worker"), leases.c.label.is_not(None))
    .order_by(leases.c.seq.desc())
    .limit(_MANY)
    .subquery()
)
_said_by = (
    select(_last.c.label, tasks.c.klass, tasks.c.node, tasks.c.labels, _last.c.seconds)
    .join(tasks, and_(tasks.c.campaign == _CAMPAIGN, tasks.c.number == _last.c.task))
    .order_by(_last.c.seq.desc())
)


class SqlOverview:
    """From a database, through its indexes."""

    def __init__(self, store: SqlStore) -> None:
        self._engine = store.engine

    def events_before(self, id: str, before: int | None, limit: int) -> list[Event]:
        """Events below a number, newest first."""
        top = 2**62 if before is None else before
        return [event_from(row) for row in self._rows(id, _events_before, before=top, many=limit)]

    def tasks_in(self, id: str, groups: Sequence[Group], limit: int) -> list[TaskRow]:
        """Tasks of these groups."""
        found: list[TaskRow] = []
        for klass, node, w in groups:
            if len(found) >= limit:
                break
            rows = self._rows(id, _tasks_in, klass=klass, node=node, w=w, many=limit - len(found))
            found.extend(task_from(row) for row in rows)
        return found

    def tasks_numbered(self, id: str, numbers: Iterable[int]) -> dict[int, TaskRow]:
        """Those of the tasks that there are."""
        found = (task_from(row) for row in self._rows(id, _tasks_numbered, numbers=sorted(set(numbers))))
        return {task.number: task for task in found}

    def leases_named(self, id: str, names: Iterable[str]) -> dict[str, LeaseRow]:
        """Those of the leases that there are."""
        found = (lease_from(row) for row in self._rows(id, _leases_named, names=sorted(set(names))))
        return {lease.id: lease for lease in found}

    def out_now(self, id: str, limit: int) -> list[LeaseRow]:
        """Leases that are out."""
        return [lease_from(row) for row in self._rows(id, _out_now, many=limit)]

    def said_by(self, id: str, worker: str, limit: int) -> list[RecentAnswers]:
        """A worker's last labels."""
        return [RecentAnswers(*row) for row in self._rows(id, _said_by, worker=worker, many=limit)]

    def _rows(self, id: str, statement: Any, **which: Any) -> list[tuple[Any, ...]]:
        with self._engine.connect() as connection:
            number = connection.execute(_number, {"id": id}).scalar()
            if number is None:
                raise no_campaign(id)
            return [tuple(row) for row in connection.execute(statement, {"campaign": number, **which})]


class PlainOverview:
    """From any store, by looking at everything."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def events_before(self, id: str, before: int | None, limit: int) -> list[Event]:
        """Events below a number, newest first."""
        found = [one for one in self._store.events(id, 0, EVERYTHING) if before is None or one.seq < before]
        return [Event(e.seq, e.at, e.kind, {} if e.kind == LARGE else e.data) for e in found[::-1][:limit]]

    def tasks_in(self, id: str, groups: Sequence[Group], limit: int) -> list[TaskRow]:
        """Tasks of these groups."""
        place = {group: n for n, group in enumerate(groups)}
        found = [task for task in self._tasks(id) if task.group in place]
        return sorted(found, key=lambda task: (place[task.group], task.lot))[:limit]

    def tasks_numbered(self, id: str, numbers: Iterable[int]) -> dict[int, TaskRow]:
        """Those of the tasks that there are."""
        wanted = set(numbers)
        return {task.number: task for task in self._tasks(id) if task.number in wanted}

    def leases_named(self, id: str, names: Iterable[str]) -> dict[str, LeaseRow]:
        """Those of the leases that there are."""
        wanted = set(names)
        return {lease.id: lease for lease in self._leases(id) if lease.id in wanted}

    def out_now(self, id: str, limit: int) -> list[LeaseRow]:
        """Leases that are out."""
        out = [lease for lease in self._leases(id) if lease.status == LEASED]
        return sorted(out, key=lambda lease: (lease.expires_at, lease.seq))[:limit]

    def said_by(self, id: str, worker: str, limit: int) -> list[RecentAnswers]:
        """A worker's last labels."""
        tasks_now = {task.number: task for task in self._tasks(id)}
        found: list[RecentAnswers] = []
        for lease in sorted(self._leases(id), key=lambda one: -one.seq):
            if lease.worker == worker and lease.label is not None and len(found) < limit:
                task = tasks_now[lease.task]
                in_time = lease.status == LABELLED and lease.ended_at is not None
                seconds = (lease.ended_at or 0.0) - lease.leased_at if in_time else None
                found.append(RecentAnswers(lease.label, task.klass, task.node, task.labels, seconds))
        return found

    def _tasks(self, id: str) -> list[TaskRow]:
        return self._store.tasks(id, -1, EVERYTHING)

    def _leases(self, id: str) -> list[LeaseRow]:
        return self._store.leases(id, [task.number for task in self._tasks(id)])
