"""Payloads of tasks: each is stored once, in a table of its own, which the log and the rows of the tasks refer to.

=============== =========================================== =================================================
where           is stored                                   is read as
=============== =========================================== =================================================
payloads        the payload of a task, as JSON; it is a
                part of the log and never changes
events          ``tasks_added`` with tasks [key, class]     tasks [key, payload, class], as they were recorded
tasks           nothing                                     the payload
=============== =========================================== =================================================
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from sqlalchemy import Connection, bindparam, select

from nextlabel.campaign.events import Event
from nextlabel.campaign.overview import LARGE as TASKS_ADDED
from nextlabel.errors import ConflictError
from nextlabel.store.tables import payloads, tasks

#: Events whose payloads are read at once.
CHUNK = 20

_stored = select(payloads.c.data).where(payloads.c.campaign == tasks.c.campaign, payloads.c.number == tasks.c.number)
#: The payload of a task as text, in questions that SQLAlchemy writes, and in those that are written out.
PAYLOAD = _stored.correlate(tasks).scalar_subquery().label("payload")
PAYLOAD_TEXT = "(SELECT y.data FROM payloads y WHERE y.campaign = t.campaign AND y.number = t.number) AS payload"
_between = (
    select(payloads.c.number, payloads.c.data)
    .where(
        payloads.c.campaign == bindparam("campaign"),
        payloads.c.number >= bindparam("first"),
        payloads.c.number < bindparam("end"),
    )
    .order_by(payloads.c.number)
)


def stored_data(event: Event) -> str:
    """What is stored of an event, as JSON, without the payloads of tasks."""
    if event.kind != TASKS_ADDED:
        return json.dumps(event.data)
    return json.dumps({**event.data, "tasks": [[key, klass] for key, _, klass in event.data["tasks"]]})


def payload_from(text: str | None, number: int) -> Any:
    """The payload of task ``number`` as it is stored."""
    if text is None:
        raise ConflictError(
            f"the payload of task {number} is missing from the log of its campaign.",
            "Restore the database from a backup.",
        )
    return json.loads(text)


def read_events(connection: Connection, campaign: int, rows: Iterable[Sequence[Any]]) -> Iterator[tuple[Event, int]]:
    """Events from their rows (number, time, kind, data), with their payloads, and how many characters each has."""
    remaining = iter(rows)
    while some := list(islice(remaining, CHUNK)):
        events = [(Event(seq, at, kind, json.loads(data)), len(data)) for seq, at, kind, data in some]
        stored = _stored_payloads(connection, campaign, [event for event, _ in events if event.kind == TASKS_ADDED])
        for event, size in events:
            yield event, size + (_put_back(event, stored) if event.kind == TASKS_ADDED else 0)


def _stored_payloads(connection: Connection, campaign: int, events: Sequence[Event]) -> dict[int, str]:
    """The payloads of the tasks that the events add, which follow one another."""
    if not events:
        return {}
    first, last = events[0].data, events[-1].data
    which = {"campaign": campaign, "first": first["first"], "end": last["first"] + len(last["tasks"])}
    return {number: data for number, data in connection.execute(_between, which)}


def _put_back(event: Event, stored: dict[int, str]) -> int:
    """Complete an event's tasks; returns by how many characters the event is longer than what is stored of it."""
    data, longer = event.data, 0
    complete = []
    for number, (key, klass) in enumerate(data["tasks"], data["first"]):
        text = stored.get(number)
        complete.append([key, payload_from(text, number), klass])
        longer += len(text or "") + len(", ")
    data["tasks"] = complete
    return longer
