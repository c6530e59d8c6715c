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
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from operator import attrgetter
from typing import Any, Final

import numpy as np
from pydantic import TypeAdapter
from sqlalchemy import Connection, bindparam, select

from nextlabel.campaign.events import Event
from nextlabel.campaign.rows import (
    BatchRow,
    CampaignRow,
    LeaseRow,
    Rules,
    TaskRow,
    WorkerRow,
    joined_lease_id,
)
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.campaign.state import NONE, STATUSES, CampaignState
from nextlabel.errors import ConflictError
from nextlabel.model.tables import prior_from, prior_table
from nextlabel.store.engine import BulkWrite, Row, Runner, Values, insert_rows, update_rows, upsert_rows
from nextlabel.store.tables import batches, campaigns, classes, events, leases, payloads, tasks, texts, workers

TASKS_ADDED: Final = "tasks_added"
#: Keys of events that are free text, and the kinds in which a reason is.
COMMENT, REASON = "comment", "reason"
#: The kind of event whose notices name workers, and where it has them.
NOTICED, NOTICES = "noticed", ("notices", "new")
REASONED: Final = frozenset({"worker_paused", "worker_blocked", "labels_dropped", "predictions_dropped"})
#: Events whose payloads are read at once.
CHUNK = 20
#: Columns of a campaign that never change.
FIXED: Final = ("number", "id", "config", "created_at")
_NAMES: Final = tuple(column.name for column in campaigns.c)
CHANGING: Final = tuple(name for name in _NAMES if name not in FIXED)
_RULES: Final = CHANGING.index("rules")
_changing = attrgetter(*CHANGING)
_RULE_TYPE: Final = TypeAdapter(Rules)

_payload = select(payloads.c.data).where(payloads.c.campaign == tasks.c.campaign, payloads.c.number == tasks.c.number)
TASK = (
    tasks.c.number, tasks.c.key, _payload.correlate(tasks).scalar_subquery().label("payload"), tasks.c.class_number,
    tasks.c.place, tasks.c.node, tasks.c.w, tasks.c.labels, tasks.c.closed_seq, tasks.c.gold,
)  # fmt: skip
LEASE = (
    leases.c.number, leases.c.secret, leases.c.task, workers.c.worker, leases.c.status, leases.c.leased_at,
    leases.c.expires_at, leases.c.seq, leases.c.ended_at, leases.c.label, leases.c.counted, leases.c.dropped,
    leases.c.free, leases.c.comment,
)  # fmt: skip
WORKER = tuple(column for column in workers.c if column.name not in ("campaign", "number"))
_worker = attrgetter(*(column.name for column in WORKER))

ADD_TASKS, ADD_PAYLOADS, ADD_EVENTS, ADD_TEXTS = map(insert_rows, (tasks, payloads, events, texts))
ADD_LEASES, ADD_CLASSES = insert_rows(leases), insert_rows(classes)
_MOVING = ("node", "w", "labels", "closed_seq", "gold")
MOVE_TASKS = update_rows(tasks, ("campaign", "number"), _MOVING)
_LEASE_CHANGING = ("status", "leased_at", "expires_at", "ended_at", "label", "counted", "dropped", "comment")
SAVE_LEASES = update_rows(leases, ("campaign", "number"), _LEASE_CHANGING)
SAVE_WORKERS, SAVE_BATCHES = upsert_rows(workers), upsert_rows(batches)
SAVE_CAMPAIGNS = update_rows(campaigns, ("number",), CHANGING)
#: The order in which they are written.
WRITES: Final = (
    ADD_CLASSES, ADD_TASKS, ADD_PAYLOADS, MOVE_TASKS, SAVE_WORKERS, ADD_LEASES, SAVE_LEASES, ADD_EVENTS, ADD_TEXTS,
    SAVE_BATCHES, SAVE_CAMPAIGNS,
)  # fmt: skip


# Rows -----------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1024)
def _config(text: str, amended: str) -> CampaignSettings:
    return CampaignSettings.from_log(json.loads(text)).with_changes(json.loads(amended))


@lru_cache(maxsize=1024)
def _rules_from(text: str) -> Rules:
    return _RULE_TYPE.validate_json(text)


@lru_cache(maxsize=1024)
def _rules_json(rules: Rules) -> str:
    return _RULE_TYPE.dump_json(rules).decode()


def campaign_from(row: Row) -> tuple[int, CampaignRow]:
    """A row of ``campaigns``: the campaign's number in the database, and the rest."""
    values = dict(zip(_NAMES, row, strict=True))
    number = int(values.pop("number"))
    values["config"] = _config(values["config"], values["amended"])
    values["paused"] = bool(values["paused"])
    values["rules"] = _rules_from(values["rules"])
    return number, CampaignRow(**values)


def campaign_values(row: CampaignRow) -> dict[str, Any]:
    """The inverse, without the number."""
    changing = dict(zip(CHANGING, changing_columns(row), strict=True))
    return {"id": row.id, "config": row.config.to_json(), "created_at": row.created_at, **changing}


def changing_columns(row: CampaignRow) -> tuple[Any, ...]:
    """What may change in the life of a campaign, in the order of its columns."""
    values = _changing(row)
    return (*values[:_RULES], _rules_json(row.rules), *values[_RULES + 1 :])


def task_from(row: Sequence[Any]) -> TaskRow:
    """A task, columns as in ``TASK``."""
    number, key, payload, *rest = row
    return TaskRow(number, key, payload_from(payload, number), *rest)


def payload_from(text: str | None, number: int) -> Any:
    """The payload of task ``number`` as it is stored."""
    if text is None:
        raise ConflictError(
            f"the payload of task {number} is missing from the log of its campaign.",
            "Restore the database from a backup.",
        )
    return json.loads(text)


def lease_from(campaign: str, row: Sequence[Any]) -> LeaseRow:
    """A lease, columns as in ``LEASE``."""
    number, secret, *rest = row
    lease = LeaseRow(joined_lease_id(campaign, number, secret), *rest)
    lease.number = number
    return lease


# Events ---------------------------------------------------------------------------------------------------------


def stored_event(state: CampaignState, event: Event) -> tuple[str, str | None]:
    """What is stored of an event: its data as JSON without names, payloads and free text, and the free text."""
    data, kind = event.data, event.kind
    if kind == TASKS_ADDED:
        return json.dumps({**data, "tasks": [[key, class_id] for key, _, class_id in data["tasks"]]}), None
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

    Without payloads, tasks that were added are [id, class].
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
    select(payloads.c.number, payloads.c.data)
    .where(
        payloads.c.campaign == bindparam("campaign"),
        payloads.c.number >= bindparam("first"),
        payloads.c.number < bindparam("end"),
    )
    .order_by(payloads.c.number)
)


def _stored_payloads(connection: Connection, campaign: int, added: Sequence[Event]) -> dict[int, str]:
    """The payloads of the tasks that the events add, which follow one another."""
    if not added:
        return {}
    first, last = added[0].data, added[-1].data
    which = {"campaign": campaign, "first": first["first"], "end": last["first"] + len(last["tasks"])}
    return {number: data for number, data in connection.execute(_between, which)}


def _put_payloads_back(event: Event, stored: dict[int, str]) -> int:
    """Complete an event's tasks; returns by how many characters the event is longer than what is stored of it."""
    data, longer = event.data, 0
    complete = []
    for number, (key, class_id) in enumerate(data["tasks"], data["first"]):
        text = stored.get(number)
        complete.append([key, payload_from(text, number), class_id])
        longer += len(text or "") + len(", ")
    data["tasks"] = complete
    return longer


# What a transaction writes --------------------------------------------------------------------------------------


def changed_rows(number: int, state: CampaignState) -> dict[BulkWrite, list[Values]]:
    """All that a transaction has changed, as rows of the tables; ``number`` is the campaign's in the database."""
    changes = state.changes
    if not changes.events:
        return {}
    stored = [(event, *stored_event(state, event)) for event in changes.events]
    first = changes.first_task
    return {
        ADD_CLASSES: [
            (number, k, json.dumps(prior_table(prior)))
            for k, prior in enumerate(state.classes[changes.first_class :], changes.first_class)
        ],
        **_new_tasks(number, state),
        MOVE_TASKS: [(*moving_columns(state, task), number, task) for task in changes.tasks if task < first],
        SAVE_WORKERS: [worker_columns(number, state, state.numbers[name]) for name in changes.workers],
        ADD_LEASES: lease_columns(number, state, range(changes.first_lease, state.leases.size)),
        SAVE_LEASES: [_changed_lease(number, state, lease) for lease in {*changes.leases, *changes.comments}
                      if lease < changes.first_lease],
        ADD_EVENTS: [(number, event.seq, event.at, event.kind, data) for event, data, _ in stored],
        ADD_TEXTS: [(number, event.seq, text) for event, _, text in stored if text is not None],
        SAVE_BATCHES: [(number, key, *state.batches[key]) for key in changes.batches],
        SAVE_CAMPAIGNS: [(*changing_columns(state.row), number)],
    }  # fmt: skip


def _new_tasks(number: int, state: CampaignState) -> dict[BulkWrite, list[Values]]:
    rows: list[Values] = []
    data: list[Values] = []
    for event in state.changes.events:
        if event.kind == TASKS_ADDED:
            for task, (key, payload, _) in enumerate(event.data["tasks"], event.data["first"]):
                rows.append((number, *task_columns(state, task, key)))
                data.append((number, task, json.dumps(payload)))
    return {ADD_TASKS: rows, ADD_PAYLOADS: data}


def moving_columns(state: CampaignState, task: int) -> Values:
    """What changes of a task."""
    own, closed = state.pool.tasks, state.closed_seq.row(task)[0]
    gold = int(own.gold[task])
    return (
        int(own.node[task]), int(own.w[task]), int(own.labels[task]), None if closed == NONE else closed,
        None if gold < 0 else gold,
    )  # fmt: skip


def task_columns(state: CampaignState, task: int, key: str) -> Values:
    """A row of ``tasks`` without the campaign."""
    own = state.pool.tasks
    return (task, key, int(own.class_id[task]), float(own.place[task]), *moving_columns(state, task))


def worker_columns(number: int, state: CampaignState, worker: int) -> Values:
    """A row of ``workers``."""
    return (number, worker, *_worker(state.workers[worker]))


def lease_columns(number: int, state: CampaignState, which: Iterable[int]) -> list[Values]:
    """Rows of ``leases``."""
    entries, rows = state.pool.entries, []
    for lease in which:
        status, leased_at, expires_at, seq, ended_at, label, counted, dropped, free, secret = state.leases.row(lease)
        rows.append((
            number, lease, int(entries.task[lease]), int(entries.worker[lease]), STATUSES[status], leased_at,
            expires_at, seq, None if ended_at != ended_at else ended_at, None if label == NONE else label,
            None if counted == NONE else bool(counted), dropped, free, state.comments.get(lease), secret,
        ))  # fmt: skip
    return rows


_CHANGED = tuple(ADD_LEASES.columns.index(name) for name in (*_LEASE_CHANGING, "campaign", "number"))


def _changed_lease(number: int, state: CampaignState, lease: int) -> Values:
    (row,) = lease_columns(number, state, (lease,))
    return tuple(row[k] for k in _CHANGED)


def together(pending: Sequence[Mapping[BulkWrite, Sequence[Values]]]) -> Mapping[BulkWrite, Sequence[Values]]:
    """What several campaigns have to write, table by table."""
    if len(pending) == 1:
        return pending[0]
    return {write: [row for one in pending for row in one.get(write, ())] for write in WRITES}


# Reading the state ----------------------------------------------------------------------------------------------


def load_state(runner: Runner, number: int, row: CampaignRow) -> CampaignState:
    """The campaign as its read tables have it: some 2 us a task and 3 us a lease."""
    state = CampaignState(row)
    which = {"campaign": number}
    state.classes.extend(prior_from(json.loads(prior)) for (prior,) in runner.all(_classes, which))
    state.batches = {key: BatchRow(int(many), digest) for key, many, digest in runner.all(_batches, which)}
    state.workers = [WorkerRow(*one) for one in runner.all(_workers, which)]
    state.numbers = {tally.worker: k for k, tally in enumerate(state.workers)}
    own, entries, held = state.pool.tasks, state.pool.entries, state.leases
    for class_id, place, node, w, labels, closed, gold in _columns(runner, _tasks, which):
        many = len(place)
        own.extend(many, class_id=class_id, place=place, node=node, w=w, labels=labels, gold=_numbers(gold, NONE))
        state.closed_seq.extend(many, seq=_numbers(closed, NONE))
    code = {status: k for k, status in enumerate(STATUSES)}
    for task, who, status, leased_at, until, seq, ended, label, counted, dropped, free, secret in _columns(
        runner, _leases, which
    ):
        answer = np.where(
            np.array(status) == STATUSES[0], -1, np.where(_counts(counted, dropped), _numbers(label, NONE), -2)
        )
        entries.extend(len(task), task=task, worker=who, answer=answer)
        held.extend(
            len(task), status=[code[one] for one in status], leased_at=leased_at, expires_at=until, seq=seq,
            ended_at=_numbers(ended, math.nan), label=_numbers(label, NONE), counted=_numbers(counted, NONE),
            dropped=np.array(dropped, dtype=bool), free=np.array(free, dtype=bool), secret=secret,
        )  # fmt: skip
    state.comments = dict(runner.all(_comments, which))
    state.loaded()
    return state


def _counts(counted: Sequence[Any], dropped: Sequence[Any]) -> Any:
    return (np.array([bool(one) for one in counted])) & ~np.array(dropped, dtype=bool)


def _numbers(column: Sequence[Any], none: float) -> list[Any]:
    return [none if value is None else value for value in column]


#: Rows that are fetched at once.
FETCHED: Final = 50_000


def _columns(runner: Runner, statement: Any, which: dict[str, Any]) -> Iterator[tuple[Sequence[Any], ...]]:
    """The columns of an answer, many rows at a time."""
    for rows in runner.chunks(statement, which, FETCHED):
        yield tuple(zip(*rows, strict=True))


_CAMPAIGN: Any = bindparam("campaign")
_classes = select(classes.c.prior).where(classes.c.campaign == _CAMPAIGN).order_by(classes.c.number)
_batches = select(batches.c.key, batches.c.tasks, batches.c.digest).where(batches.c.campaign == _CAMPAIGN)
_workers = select(*WORKER).where(workers.c.campaign == _CAMPAIGN).order_by(workers.c.number)
_comments = select(leases.c.number, leases.c.comment).where(
    leases.c.campaign == _CAMPAIGN, leases.c.comment.is_not(None)
)
_tasks = (
    select(*(tasks.c[name] for name in ("class_number", "place", "node", "w", "labels", "closed_seq", "gold")))
    .where(tasks.c.campaign == _CAMPAIGN)
    .order_by(tasks.c.number)
)
_leases = (
    select(*(leases.c[name] for name in (
        "task", "worker", "status", "leased_at", "expires_at", "seq", "ended_at", "label", "counted", "dropped", "free",
        "secret",
    )))
    .where(leases.c.campaign == _CAMPAIGN)
    .order_by(leases.c.number)
)  # fmt: skip
