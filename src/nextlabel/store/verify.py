"""Compare the read tables of a campaign with its log, and repair them, while the campaign goes on.

Verification replays the log in memory and compares every row with the replay, all as of one moment and without a lock.
Repair writes the rows that differ from the replay, some at a time with the campaign locked, and verifies again until
nothing differs: a process that had loaded wrong rows may have written more of them meanwhile. Each step of a repair
records an event, so that no process goes on with what it has in memory.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Sequence, Sized
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Table,
    UniqueConstraint,
    delete,
    insert,
    or_,
    select,
    tuple_,
    update,
)

from nextlabel.campaign.events import Event
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.campaign.state import new_campaign
from nextlabel.store.campaign_tables import ROWS, campaign_from, campaign_values, payload_from, read_events
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
    verifier, differing = _Verifier(store, id), dict[str, int]()
    while wrong := verifier.compare(progress or (lambda fraction: None)):
        differing = {table.name: len(keys) for table, keys in wrong.items()} | differing
        if not repair:
            break
        for table, keys in wrong.items():
            for first in range(0, len(keys), SLICE):
                begun = time.monotonic()
                verifier.write(table, keys[first : first + SLICE])
                time.sleep(time.monotonic() - begun)  # others have the lock for at least as long
    return Verification(verifier.state.row.seq, differing, repair and bool(differing))


class _Verifier:
    """A campaign that has followed its log, beside the one in the database."""

    def __init__(self, store: SqlStore, id: str) -> None:
        row, (first,) = store.row(id), store.events(id, 0, 1)
        self.state = new_campaign(id, CampaignSettings.from_log(first.data["config"]), row.created_at)
        self._store = store
        with store.read() as connection:
            which = select(campaigns.c.number).where(campaigns.c.id == id)
            self._number = int(connection.execute(which).scalar_one())

    def compare(self, progress: Callable[[float], None]) -> dict[Table, list[Any]]:
        """The keys of the rows that do not follow from the events, table by table."""
        total, more = max(self._store.row(self.state.row.id).seq, 1), True
        while more:
            with self._store.read() as connection:
                more = self._follow(connection)
            progress(min(REPLAYING * self.state.row.seq / total, REPLAYING))
        with self._store.read(repeatable=True) as connection:
            self._follow_all(connection)
            wrong = {table: self._differing(connection, table) for table in ROWS}
            stored = connection.execute(select(campaigns).where(campaigns.c.number == self._number)).one()
        same = campaign_from(tuple(stored))[1] == self.state.row and stored.budget == self.state.row.budget
        wrong[campaigns] = [] if same else [self._number]
        progress(1.0)
        return {table: keys for table, keys in wrong.items() if keys}

    def _follow(self, connection: Connection) -> bool:
        """Replay some more events; False if there are none."""
        which = {"campaign": self._number, "after": self.state.row.seq, "many": EVENTS}
        rows = connection.execute(events_after, which).all()
        for event, _ in read_events(connection, self._number, rows, with_payloads=False):
            self.state.apply(event)
            self.state.end()
        return bool(rows)

    def _follow_all(self, connection: Connection) -> None:
        while self._follow(connection):
            pass

    def _keys(self, table: Table) -> Collection[Any]:
        """The keys that a table should have."""
        state = self.state
        kept: dict[Table, Sized] = {
            classes: state.classes, workers: state.workers, tasks: state.pool.tasks, leases: state.leases,
        }  # fmt: skip
        return state.batches if table is batches else range(len(kept[table]))

    def _differing(self, connection: Connection, table: Table) -> list[Any]:
        """The keys of the rows of a table that differ from the replay, or that only one side has."""
        keys, wrong = self._keys(table), list[Any]()
        own, key = list(table.c)[:2]
        for first in range(0, max(len(keys), 1), SLICE):
            some, which = keys, [own == self._number]
            if isinstance(keys, range):
                some = keys[first : first + SLICE]
                which += [key >= first, *([key < some.stop] if some.stop < len(keys) else [])]
            stored = {row[1]: tuple(row) for row in connection.execute(select(table).where(*which))}
            right = {row[1]: row for row in ROWS[table](self._number, self.state, some)}
            wrong += [one for one in {**stored, **right} if stored.get(one) != right.get(one)]
            if table is tasks:
                self._check_payloads(connection, some)
        return wrong

    def _check_payloads(self, connection: Connection, some: Collection[int]) -> None:
        """Payloads follow from nothing: one that is missing cannot be repaired."""
        which = (payloads.c.campaign == self._number, payloads.c.number.in_(some))
        for task in set(some).difference(connection.execute(select(payloads.c.number).where(*which)).scalars()):
            payload_from(None, task)

    def write(self, table: Table, keys: Sequence[Any]) -> None:
        """Take rows out, and whatever stands in the way of the right ones, and put those in; say so in the log."""
        with self._store.write() as connection:
            connection.execute(select(campaigns.c.seq).where(campaigns.c.number == self._number).with_for_update())
            self._follow_all(connection)
            if table is not campaigns:
                there, names = self._keys(table), table.c.keys()
                right = ROWS[table](self._number, self.state, [key for key in keys if key in there])
                values = [dict(zip(names, row, strict=True)) for row in right]
                taken: list[ColumnElement[bool]] = [table.c[names[1]].in_(keys)]
                for unique in (one for one in table.constraints if isinstance(one, UniqueConstraint)):
                    taken.append(tuple_(*unique.columns).in_([[row[c.name] for c in unique.columns] for row in values]))
                connection.execute(delete(table).where(table.c.campaign == self._number, or_(*taken)))
                if values:
                    connection.execute(insert(table), values)
            row, data = self.state.row, {"table": table.name, "rows": len(keys)}
            event = Event(row.seq + 1, row.last_at, "rebuilt", data)
            new = {"campaign": self._number, "seq": event.seq, "at": event.at, "kind": event.kind}
            connection.execute(insert(events).values(**new, data=json.dumps(data)))
            self.state.apply(event)
            changed = campaign_values(row) if table is campaigns else {"seq": row.seq}
            connection.execute(update(campaigns).where(campaigns.c.number == self._number).values(changed))
