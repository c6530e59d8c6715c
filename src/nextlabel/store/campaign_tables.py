"""A campaign in the tables of a database: how its state is read from them, and how what has changed is written.

=========== ====================================================== ================================================
table       is                                                     written
=========== ====================================================== ================================================
events      the log, with numbers in the place of workers' names,  when an event is recorded
            without payloads and free text
payloads    payloads of tasks, a part of the log                   with the event that adds the task
texts       comments and reasons in events, a part of the log      with their event
others      read tables: the state after the last event            at the end of every transaction
=========== ====================================================== ================================================

Events in memory are complete: names, payloads and texts are put back when they are read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, islice
from operator import attrgetter
from typing import Any, Final

import numpy as np
from pydantic import TypeAdapter
from sqlalchemy import Connection, Executable, Table, bindparam, insert, select

from nextlabel.campaign.events import Event
from nextlabel.campaign.rows import BatchRow, CampaignRow, LeaseRow, TaskRow, WorkerRow
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.campaign.state import CampaignState, lease_from, task_from
from nextlabel.errors import ConflictError
from nextlabel.model.tables import prior_from, prior_table
from nextlabel.policies.allocation import Columns
from nextlabel.store.engine import Row, Runner, update_by_number, upsert
from nextlabel.store.tables import batches, campaigns, classes, events, leases, payloads, tasks, texts, workers

TASKS_ADDED: Final = "tasks_added"
#: Keys of events that are free text, and the kinds in which a reason is.
COMMENT, REASON = "comment", "reason"
#: The kind of event whose notices name workers, and where it has them.
NOTICED, NOTICES = "noticed", ("notices", "new")
REASONED: Final = frozenset({"worker_paused", "worker_blocked", "labels_dropped", "predictions_dropped"})
#: Events whose payloads are read at once, and rows that are fetched at once: few, which stay in the processor's cache.
CHUNK, FETCHED = 20, 1000
#: Fields of a campaign's row that have a column of their own.
APART: Final = ("id", "created_at", "seq", "spent", "reserved", "config")
_ROW: Final = TypeAdapter(CampaignRow)
WORKER: Final = tuple(column for column in workers.c if column.name not in ("campaign", "number"))
_worker = attrgetter(*(column.name for column in WORKER))

ADD_PAYLOADS, ADD_EVENTS, ADD_TEXTS = map(insert, (payloads, events, texts))
SAVE: Final = {table: upsert(table) for table in (classes, tasks, leases, workers, batches)}
SAVE_CAMPAIGNS = update_by_number(campaigns, "seq", "budget", "spent", "reserved", "data")
SAVE_SETTINGS = update_by_number(campaigns, "config")


# Rows -----------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1024)
def _config(text: str) -> CampaignSettings:
    return CampaignSettings.from_log(json.loads(text))


def campaign_from(row: Row) -> tuple[int, CampaignRow]:
    """A row of ``campaigns``: the campaign's number in the database, and the rest."""
    number, id, created_at, seq, _, spent, reserved, config, data = row
    apart = dict(zip(APART, (id, created_at, seq, spent, reserved, _config(config)), strict=True))
    return int(number), _ROW.validate_python(json.loads(data) | apart)


def campaign_values(row: CampaignRow) -> dict[str, Any]:
    """The inverse, without the number."""
    changing = dict(zip(("seq", "budget", "spent", "reserved", "data"), _changing(row), strict=True))
    return {"id": row.id, "created_at": row.created_at, "config": row.config.to_json(), **changing}


def _changing(row: CampaignRow) -> Row:
    return row.seq, row.budget, row.spent, row.reserved, _ROW.dump_json(row, exclude=set(APART)).decode()


def payload_from(text: str | None, number: int) -> Any:
    """The payload of task ``number`` as it is stored."""
    if text is None:
        raise ConflictError(
            f"the payload of task {number} is missing from the log of its campaign.",
            "Restore the database from a backup.",
        )
    return json.loads(text)


#: Tasks and leases as they are read without a campaign in memory.
TASKS: Final = select(tasks.c.number, payloads.c.key, payloads.c.data, *list(tasks.c)[2:]).outerjoin_from(
    tasks, payloads, (payloads.c.campaign == tasks.c.campaign) & (payloads.c.number == tasks.c.number)
)
LEASES: Final = select(leases.c.number, workers.c.worker.label("name"), leases.c.comment, *list(leases.c)[2:-1]).join(
    workers, (workers.c.campaign == leases.c.campaign) & (workers.c.number == leases.c.worker)
)


def read_task(row: Sequence[Any]) -> TaskRow:
    """A task of ``TASKS``."""
    number, key, data, *values = row
    return task_from(number, key, payload_from(data, number), *values)


def read_lease(campaign: str, row: Sequence[Any]) -> LeaseRow:
    """A lease of ``LEASES``."""
    return lease_from(campaign, *row)


# Events ---------------------------------------------------------------------------------------------------------


def stored_event(state: CampaignState, event: Event) -> tuple[str, str | None]:
    """What is stored of an event: its data as JSON without names, payloads and free text, and the free text."""
    data, kind = event.data, event.kind
    if kind == TASKS_ADDED:
        return json.dumps({**data, "tasks": [[class_id] for _, _, class_id in data["tasks"]]}), None
    if kind == NOTICED:
        return json.dumps({**data, **_about(data, lambda name: state.numbers[name])}), None
    if "worker" not in data and COMMENT not in data:
        return json.dumps(data), None
    kept, apart = dict(data), {}
    if "worker" in kept:
        kept["worker"] = state.numbers[kept["worker"]]
    for name in (COMMENT, REASON) if kind in REASONED else (COMMENT,):
        if name in kept:
            apart[name] = kept.pop(name)
    return json.dumps(kept), json.dumps(apart) if apart else None


def read_events(
    connection: Connection, campaign: int, rows: Iterable[Sequence[Any]], with_payloads: bool = True, chunk: int = CHUNK
) -> Iterator[tuple[Event, int]]:
    """Events from their rows (number, time, kind, data, text), complete, and how many characters each has.

    Without payloads, tasks that were added are [class].
    """
    remaining = iter(rows)
    while some := list(islice(remaining, chunk)):
        read = json.loads(f"[{','.join(data for *_, data, _ in some)}]")  # one by one takes three times as long
        found = [
            (Event(seq, at, kind, data | json.loads(text) if text else data), len(stored) + len(text or ""))
            for (seq, at, kind, stored, text), data in zip(some, read, strict=True)
        ]
        every = [event for event, _ in found]
        _put_names_back(connection, campaign, every)
        added = [event for event in every if event.kind == TASKS_ADDED and event.data] if with_payloads else []
        texts = _stored_payloads(connection, campaign, added)
        for event, size in found:
            yield event, size + (_put_payloads_back(event, texts) if event in added else 0)


def _put_names_back(connection: Connection, campaign: int, some: Sequence[Event]) -> None:
    numbers = {event.data["worker"] for event in some if "worker" in event.data}
    noticed = [event for event in some if event.kind == NOTICED]
    numbers |= {one[1] for event in noticed for part in NOTICES for one in event.data[part] if one[1] is not None}
    if numbers:
        which = (workers.c.campaign == campaign, workers.c.number.in_(numbers))
        found = connection.execute(select(workers.c.number, workers.c.worker).where(*which))
        names = {number: name for number, name in found}
        if len(names) < len(numbers):
            raise ConflictError(
                f"the name of worker {min(numbers - names.keys())} is missing from the database.",
                "Restore the database from a backup.",
            )
        for event in some:
            if "worker" in event.data:
                event.data["worker"] = names[event.data["worker"]]
        for event in noticed:
            event.data.update(_about(event.data, names.__getitem__))


def _about(data: Mapping[str, Any], named: Callable[[Any], Any]) -> dict[str, Any]:
    """The notices of an event with the workers that they are about by other names."""
    return {
        part: [[kind, None if who is None else named(who), *rest] for kind, who, *rest in data[part]]
        for part in NOTICES
    }


_between = (
    select(payloads.c.number, payloads.c.key, payloads.c.data)
    .where(
        payloads.c.campaign == bindparam("campaign"),
        payloads.c.number >= bindparam("first"),
        payloads.c.number < bindparam("end"),
    )
    .order_by(payloads.c.number)
)


def _stored_payloads(connection: Connection, campaign: int, added: Sequence[Event]) -> dict[int, tuple[str, str]]:
    """The ids and payloads of the tasks that the events add, which follow one another."""
    if not added:
        return {}
    first, last = added[0].data, added[-1].data
    which = {"campaign": campaign, "first": first["first"], "end": last["first"] + len(last["tasks"])}
    return {number: (key, data) for number, key, data in connection.execute(_between, which)}


def _put_payloads_back(event: Event, stored: dict[int, tuple[str, str]]) -> int:
    """Complete an event's tasks; returns by how many characters the event is longer than what is stored of it."""
    data, longer = event.data, 0
    for number, task in enumerate(data["tasks"], data["first"]):
        key, text = stored.get(number, ("", None))
        task[:0] = key, payload_from(text, number)
        longer += len(key) + len(text or "") + len(', "", ')
    return longer


# What a transaction writes --------------------------------------------------------------------------------------


#: The rows of read tables as they follow from a campaign: of its number in the database, the state, and some keys.
ROWS: Final[dict[Table, Callable[[int, CampaignState, Iterable[Any]], list[Row]]]] = {
    classes: lambda number, state, which: [(number, k, json.dumps(prior_table(state.classes[k]))) for k in which],
    tasks: lambda number, state, which: [(number, task, *state.pool.tasks.row(task)) for task in which],
    leases: lambda number, state, which: [
        (number, lease, *state.leases.row(lease), state.comments.get(lease)) for lease in which
    ],
    workers: lambda number, state, which: [(number, who, *_worker(state.workers[who])) for who in which],
    batches: lambda number, state, which: [(number, key, *state.batches[key]) for key in which],
}


def changed_rows(number: int, state: CampaignState) -> dict[Executable, list[Row]]:
    """All that a transaction has changed, as rows of the tables; ``number`` is the campaign's in the database."""
    changes, row = state.changes, state.row
    stored = [(event, *stored_event(state, event)) for event in changes.events]
    keys: dict[Table, Iterable[Any]] = {
        classes: range(changes.first_class, len(state.classes)), tasks: state.pool.tasks.changed,
        leases: state.leases.changed, workers: changes.workers, batches: changes.batches,
    }  # fmt: skip
    changed = any(event.kind == "changed" for event in changes.events)
    return {
        **{SAVE[table]: ROWS[table](number, state, which) for table, which in keys.items()},
        ADD_PAYLOADS: [(number, task, key, json.dumps(data)) for task, (key, data) in changes.texts.items()],
        ADD_EVENTS: [(number, event.seq, event.at, event.kind, data) for event, data, _ in stored],
        ADD_TEXTS: [(number, event.seq, text) for event, _, text in stored if text is not None],
        SAVE_CAMPAIGNS: [(*_changing(row), number)] if changes.events else [],
        SAVE_SETTINGS: [(row.config.to_json(), number)] if changed else [],
    }


def together(pending: Sequence[Mapping[Executable, Sequence[Row]]]) -> Mapping[Executable, Sequence[Row]]:
    """What several campaigns have to write, table by table."""
    if len(pending) == 1:
        return pending[0]
    return {write: [row for one in pending for row in one[write]] for write in (pending or [{}])[0]}


# Reading the state ----------------------------------------------------------------------------------------------


def load_state(runner: Runner, number: int, row: CampaignRow) -> CampaignState:
    """The campaign as its read tables have it: some 2 us a task and 3 us a lease."""
    state = CampaignState(row)
    which = {"campaign": number}
    state.classes.extend(prior_from(json.loads(prior)) for (prior,) in runner.all(_stored(classes, 2), which))
    state.batches = {key: BatchRow(*rest) for key, *rest in runner.all(_stored(batches, 1), which)}
    state.workers = [WorkerRow(*one) for one in runner.all(_stored(workers, 2), which)]
    _fill(state.pool.tasks, runner.chunks(_stored(tasks, 2), which, FETCHED))
    _fill(state.leases, runner.chunks(_stored(leases, 2, -1), which, FETCHED))
    state.comments = dict(runner.all(_comments, which))
    state.loaded()
    return state


def _fill(columns: Columns, chunks: Iterable[Sequence[Row]]) -> None:
    """Append rows of numbers, none of which needs more than the 53 bits of a float."""
    names = columns.arrays()
    for rows in chunks:
        table = np.fromiter(chain.from_iterable(rows), np.float64, len(rows) * len(names)).reshape(len(rows), -1)
        columns.extend(len(rows), **dict(zip(names, table.T, strict=True)))


@lru_cache
def _stored(table: Table, first: int, end: int | None = None) -> Executable:
    """The rows of a campaign in their order, from one column to another."""
    columns = list(table.c)
    return select(*columns[first:end]).where(columns[0] == bindparam("campaign")).order_by(columns[1])


_comments = select(leases.c.number, leases.c.comment).where(
    leases.c.campaign == bindparam("campaign"), leases.c.comment.is_not(None)
)
