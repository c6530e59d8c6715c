"""The reads of ``campaign.overview`` from a database, through its indexes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import and_, bindparam, case, literal_column, null, select

from nextlabel.campaign.deletions import no_campaign
from nextlabel.campaign.events import Event
from nextlabel.campaign.overview import LARGE, RecentAnswer
from nextlabel.campaign.rows import Group, LeaseRow, TaskRow
from nextlabel.campaign.rules import rules_from_json
from nextlabel.campaign.transitions import LABELLED
from nextlabel.store.records import Begin
from nextlabel.store.row_mapping import class_of, event_from, lease_from, task_from
from nextlabel.store.statements import LEASE, TASK
from nextlabel.store.tables import campaigns, events, leases, tasks

_CAMPAIGN: Any = bindparam("campaign")
_MANY: Any = bindparam("many")
_number = select(campaigns.c.number).where(campaigns.c.id == bindparam("id"))
_rules = select(campaigns.c.rules).where(campaigns.c.number == _CAMPAIGN)
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
        tasks.c.lot < bindparam("end"),
    )
    .order_by(tasks.c.lot)
    .limit(_MANY)
)
_tasks_numbered = select(*TASK).where(
    tasks.c.campaign == _CAMPAIGN, tasks.c.number.in_(bindparam("numbers", expanding=True))
)
# By ids alone, which no two campaigns share: with the campaign in it, SQLite reads all leases of the campaign.
_leases_named = select(*LEASE, leases.c.campaign == _CAMPAIGN).where(
    leases.c.id.in_(bindparam("names", expanding=True))
)
# Written out, not bound: a partial index serves only queries in which its condition stands.
_open_leases = (
    select(*LEASE)
    .where(leases.c.campaign == _CAMPAIGN, leases.c.status == literal_column("'leased'"))
    .order_by(leases.c.expires_at, leases.c.seq)
    .limit(_MANY)
)
_comments = (
    select(*LEASE)
    .where(leases.c.campaign == _CAMPAIGN, leases.c.comment.is_not(None))
    .order_by(leases.c.seq.desc())
    .limit(_MANY)
)
_comments_of = _comments.where(leases.c.worker == bindparam("worker"))
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
_recent_answers = (
    select(_last.c.label, tasks.c.klass, tasks.c.node, tasks.c.labels, _last.c.seconds)
    .join(tasks, and_(tasks.c.campaign == _CAMPAIGN, tasks.c.number == _last.c.task))
    .order_by(_last.c.seq.desc())
)


class SqlOverview:
    """From a database, through its indexes."""

    def __init__(self, read: Begin) -> None:
        self._read = read

    def events_before(self, id: str, before: int | None, limit: int) -> list[Event]:
        """Events below a number, newest first."""
        top = 2**62 if before is None else before
        return [event_from(row) for row in self._rows(id, _events_before, before=top, many=limit)]

    def tasks_in(self, id: str, groups: Sequence[Group], limit: int) -> list[TaskRow]:
        """Tasks of these groups."""
        found: list[TaskRow] = []
        ((rules,),) = self._rows(id, _rules)
        end = float(rules_from_json(rules).segments)  # tasks that are not published have later places
        for klass, node, w in groups:
            if len(found) >= limit:
                break
            rows = self._rows(id, _tasks_in, klass=klass, node=node, w=w, end=end, many=limit - len(found))
            found.extend(task_from(row) for row in rows)
        return found

    def tasks_numbered(self, id: str, numbers: Iterable[int]) -> dict[int, TaskRow]:
        """The tasks with these numbers, as far as there are any."""
        found = (task_from(row) for row in self._rows(id, _tasks_numbered, numbers=sorted(set(numbers))))
        return {task.number: task for task in found}

    def leases_named(self, id: str, names: Iterable[str]) -> dict[str, LeaseRow]:
        """The leases with these ids, as far as there are any."""
        rows = self._rows(id, _leases_named, names=sorted(set(names)))
        found = (lease_from(tuple(row)) for *row, mine in rows if mine)
        return {lease.id: lease for lease in found}

    def open_leases(self, id: str, limit: int) -> list[LeaseRow]:
        """Leases that are out."""
        return [lease_from(row) for row in self._rows(id, _open_leases, many=limit)]

    def comments(self, id: str, worker: str | None, limit: int) -> list[LeaseRow]:
        """The last leases with a comment."""
        which = {} if worker is None else {"worker": worker}
        found = self._rows(id, _comments if worker is None else _comments_of, many=limit, **which)
        return [lease_from(row) for row in found]

    def recent_answers(self, id: str, worker: str, limit: int) -> list[RecentAnswer]:
        """A worker's last labels."""
        found = self._rows(id, _recent_answers, worker=worker, many=limit)
        return [RecentAnswer(label, class_of(klass), *rest) for label, klass, *rest in found]

    def _rows(self, id: str, statement: Any, **which: Any) -> list[tuple[Any, ...]]:
        with self._read() as connection:
            number = connection.execute(_number, {"id": id}).scalar()
            if number is None:
                raise no_campaign(id)
            return [tuple(row) for row in connection.execute(statement, {"campaign": number, **which})]
