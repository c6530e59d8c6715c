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
from typing import Any

import numpy as np
from sqlalchemy import ColumnElement, Connection, Table, and_, delete, insert, or_, select, update

from nextlabel.campaign.events import Event
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.campaign.state import new_campaign
from nextlabel.model.tables import prior_table
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
from nextlabel.store.engine import Values
from nextlabel.store.sql import SqlStore, events_after
from nextlabel.store.tables import batches, campaigns, classes, events, leases, payloads, tasks, workers

#: Events that are read at once, and rows that are compared or written at once.
EVENTS, SLICE = 500, 1000
#: The share of the work that replaying is, for the progress that is shown.
REPLAYING = 0.8


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
            for table in (classes, tasks, leases, workers, batches):
                wrong[table] = self._differing(connection, table)
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

    def _rows(self, table: Table) -> tuple[Sequence[Any], Callable[[Any], Values]]:
        """The keys of a table's rows as they follow from the log, and the row of a key."""
        state, number, names = self.state, self._number, self._keys
        if table is batches:
            return list(state.batches), lambda key: (number, key, *state.batches[key])
        if table is classes:
            found = state.classes
            return range(len(found)), lambda key: (number, key, json.dumps(prior_table(found[key])))
        if table is tasks:
            return range(len(names)), lambda key: (number, *task_columns(state, key, names[key]))
        if table is leases:
            return range(state.leases.size), lambda key: lease_columns(number, state, (key,))[0]
        return range(len(state.workers)), lambda key: worker_columns(number, state, key)

    def _differing(self, connection: Connection, table: Table) -> list[Any]:
        """The keys of the rows of a table that differ from the replay, or that only one side has."""
        (keys, row), wrong = self._rows(table), list[Any]()
        step, (own, column) = SLICE if isinstance(keys, range) else len(keys) + 1, list(table.c)[:2]
        for first in range(0, max(len(keys), 1), step):
            end = first + step
            which = [column >= first, *([column < end] if end < len(keys) else [])] if isinstance(keys, range) else []
            found = connection.execute(select(table).where(own == self._number, *which))
            stored, right = {one[1]: tuple(one) for one in found}, {key: row(key) for key in keys[first:end]}
            either = {*stored, *right}
            wrong += [k for k in either if _plain(table, stored.get(k)) != _plain(table, right.get(k))]
            if table is tasks:
                self._check_payloads(connection, first, min(end, len(keys)))
        return wrong

    def _check_payloads(self, connection: Connection, first: int, end: int) -> None:
        """Payloads follow from nothing: one that is missing cannot be repaired."""
        which = (payloads.c.campaign == self._number, payloads.c.number >= first, payloads.c.number < end)
        there = set(connection.execute(select(payloads.c.number).where(*which)).scalars())
        for task in range(first, end):
            if task not in there:
                payload_from(None, task)

    def _write(self, connection: Connection, table: Table, keys: Sequence[Any]) -> None:
        """Take rows out, and whatever stands in the way of the right ones, and put those in; say so in the log."""
        if table is not campaigns:
            names, (right, made) = [column.name for column in table.c], self._rows(table)
            values = [dict(zip(names, made(key), strict=True)) for key in keys if key in right]
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
