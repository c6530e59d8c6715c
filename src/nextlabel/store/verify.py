"""Hold the read tables of a campaign against its events, and repair them, while the campaign goes on.

The log is replayed beside the campaign, in memory and without a lock. Then one slice of rows after the other is
compared, with the campaign locked and the replay brought up to its last event, so that every difference is real. A
slice takes a fraction of a second, and commands run in between. A repaired slice leaves an event in the log, so that no
process goes on with what it has in memory from before.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from sqlalchemy import ColumnElement, Connection, Table, and_, delete, insert, or_, select, update

from nextlabel.campaign.events import Event
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.campaign.state import CampaignState, new_campaign
from nextlabel.problem.tables import prior_table
from nextlabel.store.campaign_tables import (
    CHANGING,
    TASKS_ADDED,
    campaign_from,
    changing_columns,
    lease_columns,
    payload_from,
    read_events,
    task_columns,
    worker_columns,
)
from nextlabel.store.sql import SqlStore
from nextlabel.store.statements import Runner, Values
from nextlabel.store.tables import batches, campaigns, classes, events, leases, payloads, tasks, texts, workers

#: Events that are read at once, and rows that are compared at once.
EVENTS, SLICE = 500, 1000
#: The share of the work that replaying is, for the progress that is shown.
REPLAYING = 0.8
#: Columns by which the rows of a table are told apart.
KEYS: Final[dict[Table, str]] = {
    classes: "number", tasks: "number", leases: "number", workers: "number", batches: "key",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Verification:
    """``differing``: how many rows of each table did not follow from the events; ``repaired``: they do now.

    A row that stands in another's place counts as a wrong one there and as a missing one here.
    """

    events: int
    differing: dict[str, int]
    repaired: bool = False

    @property
    def right(self) -> bool:
        """Whether every row followed from the events."""
        return not self.differing


@dataclass(slots=True)
class _Replay:
    """A campaign that has followed its log, with the ids of its tasks."""

    state: CampaignState
    keys: list[str] = field(default_factory=list)

    def follow(self, event: Event) -> None:
        if event.kind == TASKS_ADDED:
            self.keys += [task[0] for task in event.data["tasks"]]
        self.state.apply(event)
        self.state.end()

    def size(self, table: Table) -> int:
        """Rows of a table, by number."""
        state = self.state
        return {classes: len(state.classes), tasks: len(self.keys), leases: state.leases.size,
                workers: len(state.workers), batches: 0}[table]  # fmt: skip

    def rows(self, table: Table, campaign: int, first: int, end: int) -> list[Values]:
        """Some rows of a table, by number; of batches all."""
        state = self.state
        if table is classes:
            return [(campaign, k, json.dumps(prior_table(state.classes[k]))) for k in range(first, end)]
        if table is tasks:
            return [(campaign, *task_columns(state, k, self.keys[k])) for k in range(first, end)]
        if table is leases:
            return lease_columns(campaign, state, range(first, end))
        if table is workers:
            return [worker_columns(campaign, state, k) for k in range(first, end)]
        return [(campaign, key, *batch) for key, batch in state.batches.items()]


def verify(store: SqlStore, id: str, repair: bool, progress: Callable[[float], None] | None = None) -> Verification:
    """Compare every row of a campaign with what its events say; with ``repair``, write what they say."""
    return _Verifier(store, id, repair, progress or (lambda fraction: None)).run()


class _Verifier:
    def __init__(self, store: SqlStore, id: str, repair: bool, progress: Callable[[float], None]) -> None:
        self._store, self._id, self._repair, self._progress = store, id, repair, progress
        row, (first,) = store.row(id), store.events(id, 0, 1)
        config = CampaignSettings.from_log(first.data["config"])
        self._replay = _Replay(new_campaign(id, config, row.created_at))
        self._differing: dict[str, int] = {}

    def run(self) -> Verification:
        total = max(self._store.row(self._id).seq, 1)
        while self._read_on():
            self._progress(min(REPLAYING * self._replay.state.row.seq / total, REPLAYING))
        for done, table in enumerate(KEYS):
            self._progress(REPLAYING + (1 - REPLAYING) * done / len(KEYS))
            first = 0
            while first >= 0:
                begun = time.monotonic()
                first = self._slice(table, first)
                time.sleep(time.monotonic() - begun)  # others have the lock for at least as long
        self._campaign()
        return Verification(self._replay.state.row.seq, self._differing, self._repair and bool(self._differing))

    def _read_on(self) -> bool:
        """Replay some more events; False if there are none."""
        with self._store.read() as connection:
            number = connection.execute(select(campaigns.c.number).where(campaigns.c.id == self._id)).scalar_one()
            return self._follow(connection, int(number))

    def _follow(self, connection: Connection, number: int) -> bool:
        joined = events.outerjoin(texts, and_(texts.c.campaign == events.c.campaign, texts.c.seq == events.c.seq))
        log = select(events.c.seq, events.c.at, events.c.kind, events.c.data, texts.c.data).select_from(joined)
        which = log.where(events.c.campaign == number, events.c.seq > self._replay.state.row.seq)
        rows = connection.execute(which.order_by(events.c.seq).limit(EVENTS)).all()
        for event, _ in read_events(connection, number, rows, with_payloads=False):
            self._replay.follow(event)
        return bool(rows)

    def _locked(self, connection: Connection) -> int:
        """Lock the campaign and bring the replay to its last event; returns the campaign's number."""
        found = connection.execute(
            select(campaigns.c.number).where(campaigns.c.id == self._id).with_for_update()
        ).scalar_one()
        while self._follow(connection, int(found)):
            pass
        return int(found)

    def _slice(self, table: Table, first: int) -> int:
        """Compare some rows; returns where the next slice begins, -1 after the last."""
        with self._store.write() as connection:
            number = self._locked(connection)
            size = self._replay.size(table)
            end = min(first + SLICE, size)
            right = {row[1]: row for row in self._replay.rows(table, number, first, end)}
            key = table.c[KEYS[table]]
            which: list[ColumnElement[bool]] = [table.c.campaign == number]
            if table is not batches:
                which += [key >= first, key < end] if end < size else [key >= first]
            stored = {row[1]: tuple(row) for row in connection.execute(select(table).where(*which))}
            wrong = [k for k in {*stored, *right} if _plain(table, stored.get(k)) != _plain(table, right.get(k))]
            if table is tasks:
                self._check_payloads(connection, number, first, end)
            if wrong:
                self._count(table.name, len(wrong))
                if self._repair:
                    self._write(connection, table, number, wrong, [right[k] for k in wrong if k in right])
                    self._record(connection, number, table.name, len(wrong))
        return end if end < size else -1

    def _check_payloads(self, connection: Connection, number: int, first: int, end: int) -> None:
        """Payloads follow from nothing: one that is missing cannot be repaired."""
        which = (payloads.c.campaign == number, payloads.c.number >= first, payloads.c.number < end)
        found = {k for (k,) in connection.execute(select(payloads.c.number).where(*which))}
        for task in range(first, end):
            if task not in found:
                payload_from(None, task)

    def _write(
        self, connection: Connection, table: Table, number: int, keys: Sequence[Any], rows: Sequence[Values]
    ) -> None:
        """Take the rows of these keys out, and whatever stands in the way of the right ones, and put those in."""
        names = [column.name for column in table.c]
        values = [dict(zip(names, row, strict=True)) for row in rows]
        taken: list[ColumnElement[bool]] = [table.c[KEYS[table]].in_(keys)]
        if table is tasks:
            taken.append(tasks.c.key.in_([row["key"] for row in values]))
        elif table is workers:
            taken.append(workers.c.worker.in_([row["worker"] for row in values]))
        elif table is leases:
            taken += [and_(leases.c.task == row["task"], leases.c.worker == row["worker"]) for row in values]
        connection.execute(delete(table).where(table.c.campaign == number, or_(*taken)))
        if values:
            connection.execute(insert(table), values)

    def _campaign(self) -> None:
        """The row of the campaign itself, which follows from all others."""
        with self._store.write() as connection, closing(Runner(connection)):
            number = self._locked(connection)
            found = connection.execute(select(campaigns).where(campaigns.c.number == number)).one()
            stored, right = campaign_from(tuple(found))[1], self._replay.state.row
            if stored == right:
                return
            self._count(campaigns.name, 1)
            if self._repair:
                values = dict(zip(CHANGING, changing_columns(right), strict=True))
                config = CampaignSettings.from_log(self._store.events(self._id, 0, 1)[0].data["config"])
                where = update(campaigns).where(campaigns.c.number == number)
                connection.execute(where.values(**values, config=config.to_json()))
                self._record(connection, number, campaigns.name, 1)

    def _record(self, connection: Connection, number: int, table: str, rows: int) -> None:
        """Say in the log that rows were written anew."""
        row, data = self._replay.state.row, {"table": table, "rows": rows}
        event = Event(row.seq + 1, row.last_at, "rebuilt", data)
        values = {"campaign": number, "seq": event.seq, "at": event.at, "kind": event.kind, "data": json.dumps(data)}
        connection.execute(insert(events).values(values))
        self._replay.follow(event)
        connection.execute(update(campaigns).where(campaigns.c.number == number).values(seq=event.seq))

    def _count(self, table: str, rows: int) -> None:
        self._differing[table] = 1 if table == campaigns.name else self._differing.get(table, 0) + rows


def _plain(table: Table, row: Sequence[Any] | None) -> Any:
    """A row as it compares: truths as numbers, priors as tables."""
    if row is None:
        return None
    if table is classes:
        return (*row[:2], json.loads(row[2]))
    return tuple(int(value) if isinstance(value, bool | np.integer) else value for value in row)
