"""What an event changes: the one place where a campaign's rows are written, live and when it is rebuilt from its log.

``apply_event(ledger, event)`` has the rows follow one event that is already in the log. It decides nothing: whatever
depends on the policy, the clock or chance is in the event.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nextlabel.beliefs.simplex import simplex
from nextlabel.campaign import scoring
from nextlabel.campaign.chance import PLACES, chance
from nextlabel.campaign.events import Event
from nextlabel.campaign.ledger import Ledger
from nextlabel.campaign.rates import note_arrival, note_end
from nextlabel.campaign.rows import LeaseRow, TaskRow
from nextlabel.campaign.transitions import EXPIRED, LABELLED, LATE, LEASED, RELEASED, LeaseStatus
from nextlabel.errors import NotFoundError
from nextlabel.problem.state import TaskState, assign, complete, take_back, withdraw
from nextlabel.problem.tables import prior_from


def apply_event(ledger: Ledger, event: Event) -> None:
    """Rows after the event."""
    _PROJECTIONS[event.kind](ledger, event, event.data)


def found(ledger: Ledger, id: str) -> LeaseRow:
    """A lease that must be there."""
    lease = ledger.lease(id)
    if lease is None:
        raise NotFoundError("there is no such lease.", "Ask for a task and use the lease's id.")
    return lease


def _nothing(ledger: Ledger, event: Event, data: dict[str, Any]) -> None:
    """The campaign's row was made from the event's config when the campaign was created."""


def _tasks_added(ledger: Ledger, event: Event, data: dict[str, Any]) -> None:
    row, config = ledger.row, ledger.row.config
    few = row.classes <= scoring.FEW_CLASSES
    ledger.add_classes([prior_from(prior) for prior in data["classes"]])
    row.classes += len(data["classes"])
    tasks = [
        TaskRow(number, name, payload, klass, chance(config.seed, PLACES, number))
        for number, (name, payload, klass) in enumerate(data["tasks"], start=data["first"])
    ]
    many = row.classes > scoring.FEW_CLASSES
    if many:
        for task, score in zip(tasks, scoring.scores(config, ledger.classes(), tasks), strict=True):
            task.score = score
    if many and few and row.tasks:
        ledger.rescore(lambda some: scoring.scores(config, ledger.classes(), some))
    ledger.add_tasks(tasks)
    row.tasks += len(tasks)
    if data.get("batch"):
        ledger.add_batch(data["batch"], (ledger.batch(data["batch"]) or 0) + len(tasks))


def _leased(ledger: Ledger, event: Event, data: dict[str, Any]) -> None:
    row = ledger.row
    row.given += 1
    row.reserved += 1
    note_arrival(row, event.at)
    task = ledger.task(data["task"])
    ledger.add_lease(
        LeaseRow(data["lease"], task.number, data["worker"], LEASED, event.at, data["expires_at"], event.seq)
    )
    _move(ledger, task, assign(task.state))
    tally = ledger.worker(data["worker"])
    tally.given += 1
    tally.last_at = event.at


def _labelled(ledger: Ledger, event: Event, data: dict[str, Any]) -> None:
    lease = _ended(ledger, event, LABELLED)
    lease.label, lease.counted = data["label"], data["counted"]
    ledger.save_lease(lease)
    row, task = ledger.row, ledger.task(lease.task)
    row.reserved -= 1
    row.kept += 1
    note_end(row, event.at - lease.leased_at, True)
    tally = ledger.worker(lease.worker)
    tally.labels += 1
    tally.seconds += event.at - lease.leased_at
    if lease.counted:
        _count(ledger, event, task, complete(task.state, data["label"], _child(ledger)))
    else:
        _move(ledger, task, withdraw(task.state))


def _late(ledger: Ledger, event: Event, data: dict[str, Any]) -> None:
    lease = _ended(ledger, event, LATE)
    lease.label, lease.counted = data["label"], data["counted"]
    ledger.save_lease(lease)
    ledger.row.kept += 1
    ledger.row.late += 1
    tally = ledger.worker(lease.worker)
    tally.labels += 1
    tally.late += 1
    if lease.counted:
        task = ledger.task(lease.task)
        _count(ledger, event, task, complete(assign(task.state), data["label"], _child(ledger)))


def _expired(ledger: Ledger, event: Event, data: dict[str, Any]) -> None:
    lease = _gone(ledger, event, EXPIRED)
    ledger.row.expired += 1
    ledger.worker(lease.worker).expired += 1
    note_end(ledger.row, min(lease.expires_at, event.at) - lease.leased_at, False)


def _released(ledger: Ledger, event: Event, data: dict[str, Any]) -> None:
    lease = _gone(ledger, event, RELEASED)
    ledger.row.released += 1
    ledger.worker(lease.worker).released += 1
    note_end(ledger.row, event.at - lease.leased_at, False)


def _renewed(ledger: Ledger, event: Event, data: dict[str, Any]) -> None:
    lease = found(ledger, data["lease"])
    lease.expires_at = data["expires_at"]
    ledger.save_lease(lease)


def _undone(ledger: Ledger, event: Event, data: dict[str, Any]) -> None:
    lease, row = found(ledger, data["lease"]), ledger.row
    task = ledger.task(lease.task)
    tally = ledger.worker(lease.worker)
    tally.labels -= 1
    tally.seconds -= (lease.ended_at or event.at) - lease.leased_at
    row.kept -= 1
    row.reserved += 1
    if lease.counted:
        row.spent -= 1
        if task.closed_seq is not None:
            row.full -= 1
        task.labels, task.closed_seq, task.last_seq = task.labels - 1, None, event.seq
        _move(ledger, task, take_back(task.state, data["label"], _counts(ledger)))
    else:
        _move(ledger, task, assign(task.state))
    lease.status, lease.ended_at, lease.label, lease.counted = LEASED, None, None, None
    ledger.save_lease(lease)


def _paused(ledger: Ledger, event: Event, data: dict[str, Any]) -> None:
    ledger.row.paused = True


def _resumed(ledger: Ledger, event: Event, data: dict[str, Any]) -> None:
    ledger.row.paused = False
    if ledger.row.last_arrival is not None:
        ledger.row.last_arrival = event.at  # nobody could arrive during the pause


def _changed(ledger: Ledger, event: Event, data: dict[str, Any]) -> None:
    for name in ("budget", "deadline", "lease_seconds"):
        if name in data:
            setattr(ledger.row, name, data[name])


def _tuned(ledger: Ledger, event: Event, data: dict[str, Any]) -> None:
    ledger.row.rho = data["rho"]


def _closed(ledger: Ledger, event: Event, data: dict[str, Any]) -> None:
    ledger.row.closed_seq, ledger.row.closed_reason = event.seq, data["reason"]


def _reopened(ledger: Ledger, event: Event, data: dict[str, Any]) -> None:
    ledger.row.closed_seq = ledger.row.closed_reason = None


def _ended(ledger: Ledger, event: Event, status: LeaseStatus) -> LeaseRow:
    lease = found(ledger, event.data["lease"])
    lease.status, lease.ended_at = status, event.at
    return lease


def _gone(ledger: Ledger, event: Event, status: LeaseStatus) -> LeaseRow:
    """A lease that ended without a label: its reservation is given back."""
    lease = _ended(ledger, event, status)
    ledger.save_lease(lease)
    ledger.row.reserved -= 1
    task = ledger.task(lease.task)
    _move(ledger, task, withdraw(task.state))
    return lease


def _count(ledger: Ledger, event: Event, task: TaskRow, state: TaskState) -> None:
    """A label that counts: it is spent, and the task's last one if it can have no more."""
    row = ledger.row
    row.spent += 1
    task.labels += 1
    task.last_seq = event.seq
    if task.labels >= scoring.limits(row.config, row.classes)[0]:
        task.closed_seq = event.seq
        row.full += 1
    _move(ledger, task, state)


def _move(ledger: Ledger, task: TaskRow, state: TaskState) -> None:
    score = None
    if ledger.row.classes > scoring.FEW_CLASSES:
        score = scoring.score(ledger.row.config, ledger.classes()[task.klass], task.labels, state)
    ledger.move(task, state, score)


def _child(ledger: Ledger) -> Any:
    return simplex(ledger.row.config.answers, ledger.row.config.most_labels)[1]


def _counts(ledger: Ledger) -> Any:
    return simplex(ledger.row.config.answers, ledger.row.config.most_labels)[2]


_PROJECTIONS: dict[str, Callable[[Ledger, Event, dict[str, Any]], None]] = {
    "created": _nothing,
    "tasks_added": _tasks_added,
    "leased": _leased,
    "labelled": _labelled,
    "late": _late,
    "expired": _expired,
    "released": _released,
    "renewed": _renewed,
    "undone": _undone,
    "paused": _paused,
    "resumed": _resumed,
    "changed": _changed,
    "tuned": _tuned,
    "closed": _closed,
    "reopened": _reopened,
}
