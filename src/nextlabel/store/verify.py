"""Compare the read tables of a campaign with its log, and repair them, while the campaign goes on.

Verification replays the log in memory and compares every row with the replay, all as of one moment and without a lock.
Repair writes the rows that differ from the replay, some at a time with the campaign locked, and verifies again until
nothing differs: a process that had loaded wrong rows may have written more of them meanwhile. Each step of a repair
records an event, so that no process goes on with what it has in memory.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from sqlalchemy import ColumnElement, Connection, Table, and_, delete, insert, or_, select, update

from nextlabel.campaign.events import Event
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.campaign.state import new_campaign
from nextlabel.problem.tables import prior_table
from nextlabel.store.campaign_tables import (
    TASKS_ADDED,
    campaign_from,
    campaign_values,
    lease_columns,
    payload_from,
    read_events,
    task_columns,
    worker_columns,
)
from nextlabel.store.sql import SqlStore, events_after
from nextlabel.store.statements import Values
from nextlabel.store.tables import batches, campaigns, classes, events, leases, payloads, tasks, workers

#: Events that are read at once, and rows that are compared or written at once.
EVENTS, SLICE = 500, 1000
#: The share of the work that replaying is, for the progress that is shown.
REPLAYING = 0.8
#: Tables by number, and the column that has it.
NUMBERED: Final = (classes, tasks, leases, workers)


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


def verify(store: SqlStore, id: str, repair: bool, progress: Callable[[float], None] | None = None) -> Verification:
    """Compare every row of a campaign with what its events say; with ``repair``, write what they say."""
    verifier = _Verifier(store, id, progress or (lambda fraction: None))
    differing: dict[str, int] = {}
    while wrong := verifier.compare():
        differing = {table.name: len(keys) for table, keys in wrong.items()} | differing
        if not repair:
            break
        verifier.repair(wrong)
    return Verification(verifier.state.row.seq, differing, repair and bool(differing))


class _Verifier:
    """A campaign that has followed its log, with the ids of its tasks, beside the one in the database."""

    def __init__(self, store: SqlStore, id: str, progress: Callable[[float], None]) -> None:
        self._store, self._id, self._progress = store, id, progress
        row, (first,) = store.row(id), store.events(id, 0, 1)
        config = CampaignSettings.from_log(first.data["config"])
        self.state, self._config = new_campaign(id, config, row.created_at), config.to_json()
        self._keys: list[str] = []
        with store.read() as connection:
            which = select(campaigns.c.number).where(campaigns.c.id == id)
            self._number = int(connection.execute(which).scalar_one())

    def compare(self) -> dict[Table, list[Any]]:
        """The keys of the rows that do not follow from the events, table by table."""
        total, more = max(self._store.row(self._id).seq, 1), True
        while more:
            with self._store.read() as connection:
                more = self._follow(connection)
            self._progress(min(REPLAYING * self.state.row.seq / total, REPLAYING))
        wrong: dict[Table, list[Any]] = {}
        with self._store.read(repeatable=True) as connection:
            self._follow_all(connection)
            for table in NUMBERED:
                wrong[table] = self._differing(connection, table)
            wrong[batches] = self._unequal(connection, batches, list(self.state.batches), [])
            stored = connection.execute(select(campaigns).where(campaigns.c.number == self._number)).one()
            wrong[campaigns] = [] if campaign_from(tuple(stored))[1] == self.state.row else [self._number]
        self._progress(1.0)
        return {table: keys for table, keys in wrong.items() if keys}

    def repair(self, wrong: dict[Table, list[Any]]) -> None:
        """Write rows anew, a slice at a time."""
        for table, keys in wrong.items():
            for first in range(0, len(keys), SLICE):
                begun = time.monotonic()
                with self._store.write() as connection:
                    connection.execute(
                        select(campaigns.c.seq).where(campaigns.c.number == self._number).with_for_update()
                    )
                    self._follow_all(connection)
                    self._write(connection, table, keys[first : first + SLICE])
                time.sleep(time.monotonic() - begun)  # others have the lock for at least as long

    def _follow(self, connection: Connection) -> bool:
        """Replay some more events; False if there are none."""
        which = {"campaign": self._number, "after": self.state.row.seq, "many": EVENTS}
        rows = connection.execute(events_after, which).all()
        for event, _ in read_events(connection, self._number, rows, with_payloads=False):
            self._apply(event)
        return bool(rows)

    def _follow_all(self, connection: Connection) -> None:
        while self._follow(connection):
            pass

    def _apply(self, event: Event) -> None:
        if event.kind == TASKS_ADDED:
            self._keys += [task[0] for task in event.data["tasks"]]
        self.state.apply(event)
        self.state.end()

    def _differing(self, connection: Connection, table: Table) -> list[int]:
        """The numbers of the rows of a table that differ from the replay."""
        state, wrong = self.state, list[int]()
        size = {classes: len(state.classes), tasks: len(self._keys), leases: state.leases.size,
                workers: len(state.workers)}[table]  # fmt: skip
        for first in range(0, max(size, 1), SLICE):
            end = min(first + SLICE, size)
            which = [table.c.number >= first, *([table.c.number < end] if end < size else [])]
            wrong += self._unequal(connection, table, range(first, end), which)
            if table is tasks:
                self._check_payloads(connection, first, end)
        return wrong

    def _unequal(
        self, connection: Connection, table: Table, keys: Sequence[Any], which: list[ColumnElement[bool]]
    ) -> list[Any]:
        """Of some rows, the keys of those that differ or that only one side has."""
        right = {key: self._row(table, key) for key in keys}
        found = connection.execute(select(table).where(table.c.campaign == self._number, *which))
        stored = {row[1]: tuple(row) for row in found}
        return [k for k in {*stored, *right} if _plain(table, stored.get(k)) != _plain(table, right.get(k))]

    def _check_payloads(self, connection: Connection, first: int, end: int) -> None:
        """Payloads follow from nothing: one that is missing cannot be repaired."""
        which = (payloads.c.campaign == self._number, payloads.c.number >= first, payloads.c.number < end)
        there = set(connection.execute(select(payloads.c.number).where(*which)).scalars())
        for task in range(first, end):
            if task not in there:
                payload_from(None, task)

    def _row(self, table: Table, key: Any) -> Values | None:
        """A row as it follows from the log, None if there is none."""
        state, number = self.state, self._number
        if table is batches:
            return (number, key, *state.batches[key]) if key in state.batches else None
        if table is classes:
            return (number, key, json.dumps(prior_table(state.classes[key]))) if key < len(state.classes) else None
        if table is tasks:
            return (number, *task_columns(state, key, self._keys[key])) if key < len(self._keys) else None
        if table is leases:
            return lease_columns(number, state, (key,))[0] if key < state.leases.size else None
        return worker_columns(number, state, key) if key < len(state.workers) else None

    def _write(self, connection: Connection, table: Table, keys: Sequence[Any]) -> None:
        """Take rows out, and whatever stands in the way of the right ones, and put those in; say so in the log."""
        if table is not campaigns:
            names = [column.name for column in table.c]
            rows = [row for row in (self._row(table, key) for key in keys) if row is not None]
            values = [dict(zip(names, row, strict=True)) for row in rows]
            taken: list[ColumnElement[bool]] = [table.c[names[1]].in_(keys)]
            if table is tasks:
                taken.append(tasks.c.key.in_([row["key"] for row in values]))
            elif table is workers:
                taken.append(workers.c.worker.in_([row["worker"] for row in values]))
            elif table is leases:
                taken += [and_(leases.c.task == row["task"], leases.c.worker == row["worker"]) for row in values]
            connection.execute(delete(table).where(table.c.campaign == self._number, or_(*taken)))
            if values:
                connection.execute(insert(table), values)
        row, data = self.state.row, {"table": table.name, "rows": len(keys)}
        event = Event(row.seq + 1, row.last_at, "rebuilt", data)
        new = {"campaign": self._number, "seq": event.seq, "at": event.at, "kind": event.kind, "data": json.dumps(data)}
        connection.execute(insert(events).values(new))
        self._apply(event)
        changed = {**campaign_values(row), "config": self._config} if table is campaigns else {"seq": row.seq}
        connection.execute(update(campaigns).where(campaigns.c.number == self._number).values(changed))


def _plain(table: Table, row: Sequence[Any] | None) -> Any:
    """A row as it compares: truths as numbers, priors as tables."""
    if row is None:
        return None
    if table is classes:
        return (*row[:2], json.loads(row[2]))
    return tuple(int(value) if isinstance(value, bool | np.integer) else value for value in row)
