"""What an event changes: the one place where a campaign's rows are written, live and when it is rebuilt from its log.

``apply_event(ledger, event)`` makes the rows follow one event that is already in the log. It decides nothing: whatever
depends on the policy, the clock, chance or limits is in the event.
Scores of ranked tasks are not part of the state that a log means: ``rank`` computes them in a live campaign, and a
replay leaves them out until its end.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from nextlabel.campaign.amendments import amend, amended_with
from nextlabel.campaign.audit_projection import AUDIT_PROJECTIONS
from nextlabel.campaign.events import Event
from nextlabel.campaign.ids import prediction_id
from nextlabel.campaign.ledger import Ledger
from nextlabel.campaign.rates import observe_arrival, observe_end
from nextlabel.campaign.rows import BatchRow, LeaseRow, TaskRow
from nextlabel.campaign.rules import Limits, Rules
from nextlabel.campaign.task_moves import (
    Projection,
    Rank,
    add_label,
    end_lease,
    end_without_label,
    get_lease,
    move,
    reserve,
    take_label,
    unranked,
)
from nextlabel.campaign.transitions import EXPIRED, LABELLED, LATE, LEASED, RELEASED
from nextlabel.campaign.worker_projection import WORKER_PROJECTIONS
from nextlabel.problem.state import assign, withdraw
from nextlabel.problem.tables import prior_from


def apply_event(ledger: Ledger, event: Event, rank: Rank = unranked) -> None:
    """Bring the rows to the state after the event."""
    _PROJECTIONS[event.kind](ledger, event, rank)


def _created(ledger: Ledger, event: Event, rank: Rank) -> None:
    """The campaign's row was made from the event's config when the campaign was created."""
    ledger.row.rules = Rules(event.data["rate_memory"], core=event.data["core"])


def _tasks_added(ledger: Ledger, event: Event, rank: Rank) -> None:
    row, data = ledger.row, event.data
    if data.get("hidden"):
        ledger.add_hidden_tasks(_new_rows(data))
        row.rules = replace(row.rules, hidden=row.rules.hidden + len(data["tasks"]))
        return
    ledger.add_classes([prior_from(prior) for prior in data["classes"]])
    row.classes += len(data["classes"])
    before = row.rules.ranked
    limits = Limits(data["first"], data["most_labels"], data["most_in_flight"])
    row.rules = row.rules.with_tasks(limits, data["ranked"])
    tasks = _new_rows(data)
    for task in tasks:
        task.score = rank(ledger, task, task.state)
    if rank is not unranked and row.tasks and row.rules.ranked and not before:
        ledger.rescore(lambda some: [rank(ledger, task, task.state) for task in some])
    ledger.add_tasks(tasks)
    row.tasks += len(tasks)
    if data.get("batch"):
        _extend_batch(ledger, data["batch"], len(tasks), data["digest"])


def _new_rows(data: dict[str, Any]) -> list[TaskRow]:
    numbered = enumerate(zip(data["tasks"], data["places"], strict=True), data["first"])
    return [TaskRow(number, key, payload, klass, place) for number, ((key, payload, klass), place) in numbered]


def _tasks_published(ledger: Ledger, event: Event, rank: Rank) -> None:
    """The hidden tasks are there, all at once; their scores follow in ``tasks_ranked``."""
    row, data = ledger.row, event.data
    ledger.add_classes([prior_from(prior) for prior in data["classes"]])
    row.classes += len(data["classes"])
    limits = Limits(data["first"], data["most_labels"], data["most_in_flight"])
    row.rules = row.rules.with_published(limits, data["ranked"])
    ledger.publish_hidden_tasks({(klass, 0, 0): tasks for klass, tasks in data["counts"]})
    row.tasks += data["tasks"]
    if data["batch"]:
        _extend_batch(ledger, data["batch"], data["tasks"], data["digest"])


def _tasks_ranked(ledger: Ledger, event: Event, rank: Rank) -> None:
    row, until = ledger.row, event.data["until"]
    start = row.rules.unranked_from or 0
    row.rules = replace(row.rules, unranked_from=until if until < row.tasks else None)
    if rank is not unranked:
        ledger.rescore(lambda some: [rank(ledger, task, task.state) for task in some], start, until)


def _batch_ended(ledger: Ledger, event: Event, rank: Rank) -> None:
    _extend_batch(ledger, event.data["batch"], 0, event.data["digest"])


def _extend_batch(ledger: Ledger, key: str, tasks: int, digest: str | None) -> None:
    before = ledger.batch(key)
    ledger.save_batch(key, BatchRow(tasks + (0 if before is None else before.tasks), digest))


def _leased(ledger: Ledger, event: Event, rank: Rank) -> None:
    row, data = ledger.row, event.data
    row.given += 1
    observe_arrival(row, event.at)
    task = ledger.task(data["task"])
    worker, free = data["worker"], data.get("free", False)
    lease = LeaseRow(
        data["lease"], task.number, worker, LEASED, event.at, data["expires_at"], event.seq, free=free
    )  # fmt: skip
    reserve(ledger, lease, 1)
    ledger.add_lease(lease)
    move(ledger, task, assign(task.state), rank)
    tally = ledger.worker(worker)
    tally.given += 1
    tally.tested += data.get("control", False)
    tally.last_at = event.at


def _labelled(ledger: Ledger, event: Event, rank: Rank) -> None:
    lease = end_lease(ledger, event, event.data["lease"], LABELLED)
    lease.label, lease.counted = event.data["label"], event.data["counted"]
    lease.comment = event.data.get("comment")
    ledger.save_lease(lease)
    row = ledger.row
    reserve(ledger, lease, -1)
    row.kept += 1
    observe_end(row, event.at - lease.leased_at, True)
    tally = ledger.worker(lease.worker)
    tally.labels += 1
    tally.seconds += event.at - lease.leased_at
    if lease.counted:
        _count_label(ledger, event, lease, rank)
    else:
        task = ledger.task(lease.task)
        move(ledger, task, withdraw(task.state), rank)


def _late(ledger: Ledger, event: Event, rank: Rank) -> None:
    lease = end_lease(ledger, event, event.data["lease"], LATE)
    lease.label, lease.counted = event.data["label"], event.data["counted"]
    lease.comment = event.data.get("comment")
    ledger.save_lease(lease)
    ledger.row.kept += 1
    ledger.row.late += 1
    tally = ledger.worker(lease.worker)
    tally.labels += 1
    tally.late += 1
    if lease.counted:
        _count_label(ledger, event, lease, rank)


def _predicted(ledger: Ledger, event: Event, rank: Rank) -> None:
    """A model's labels are not bought, and count for no task's limit (``campaign.predictions``)."""
    row, data = ledger.row, event.data
    worker, at, many = data["worker"], event.at, len(data["tasks"])
    for number, (task, label) in enumerate(zip(data["tasks"], data["labels"], strict=True), data["first"]):
        id = prediction_id(row.id, number)
        ledger.add_lease(LeaseRow(id, task, worker, LABELLED, at, at, event.seq, at, label, False))
    row.given += many
    row.kept += many
    row.spent += data["charged"]
    row.rules = replace(row.rules, predicted=row.rules.predicted + many)
    tally = ledger.worker(worker)
    tally.given += many
    tally.labels += many
    tally.last_at = at


def _expired(ledger: Ledger, event: Event, rank: Rank) -> None:
    lease = end_without_label(ledger, event, event.data["lease"], EXPIRED, rank)
    ledger.row.expired += 1
    ledger.worker(lease.worker).expired += 1
    observe_end(ledger.row, min(lease.expires_at, event.at) - lease.leased_at, False)


def _released(ledger: Ledger, event: Event, rank: Rank) -> None:
    lease = end_without_label(ledger, event, event.data["lease"], RELEASED, rank)
    if event.data.get("comment") != lease.comment:
        lease.comment = event.data.get("comment")
        ledger.save_lease(lease)
    ledger.row.released += 1
    ledger.worker(lease.worker).released += 1
    observe_end(ledger.row, event.at - lease.leased_at, False)


def _renewed(ledger: Ledger, event: Event, rank: Rank) -> None:
    lease = get_lease(ledger, event.data["lease"])
    lease.expires_at = event.data["expires_at"]
    ledger.save_lease(lease)


def _undone(ledger: Ledger, event: Event, rank: Rank) -> None:
    lease, row = get_lease(ledger, event.data["lease"]), ledger.row
    tally = ledger.worker(lease.worker)
    tally.labels -= 1
    tally.seconds -= (lease.ended_at or event.at) - lease.leased_at
    row.kept -= 1
    reserve(ledger, lease, 1)
    if lease.counted:
        _buy(ledger, lease, -1)
        take_label(ledger, event, lease, event.data["label"], True, rank)
    else:
        task = ledger.task(lease.task)
        move(ledger, task, assign(task.state), rank)
    lease.status, lease.ended_at, lease.label, lease.counted = LEASED, None, None, None
    ledger.save_lease(lease)


def _unasked(ledger: Ledger, event: Event, rank: Rank) -> None:
    """Nothing was reserved and nothing is in flight: the lease is over as it begins."""
    data, at = event.data, event.at
    ledger.row.given += 1
    ledger.add_lease(LeaseRow(data["lease"], data["task"], data["worker"], RELEASED, at, at, event.seq, at))
    tally = ledger.worker(data["worker"])
    tally.given += 1
    tally.last_at = at


def _withdrawn(ledger: Ledger, event: Event, rank: Rank) -> None:
    lease, row = get_lease(ledger, event.data["lease"]), ledger.row
    tally = ledger.worker(lease.worker)
    row.kept -= 1
    tally.labels -= 1
    if lease.status == LATE:
        row.late -= 1
        tally.late -= 1
    else:
        tally.seconds -= (lease.ended_at or event.at) - lease.leased_at
    if lease.counted:
        _buy(ledger, lease, -1)
        take_label(ledger, event, lease, event.data["label"], False, rank)
    lease.status, lease.ended_at, lease.label, lease.counted = RELEASED, event.at, None, None
    ledger.save_lease(lease)


def _paused(ledger: Ledger, event: Event, rank: Rank) -> None:
    ledger.row.paused = True


def _resumed(ledger: Ledger, event: Event, rank: Rank) -> None:
    ledger.row.paused = False
    if ledger.row.last_arrival is not None:
        ledger.row.last_arrival = event.at  # nobody could arrive during the pause


def _changed(ledger: Ledger, event: Event, rank: Rank) -> None:
    row = ledger.row
    for name in ("budget", "deadline", "lease_seconds"):
        if name in event.data:
            setattr(row, name, event.data[name])
    row.amended = amended_with(row.amended, event.data)
    row.config = amend(row.config, row.amended)


def _tuned(ledger: Ledger, event: Event, rank: Rank) -> None:
    ledger.row.rho = event.data["rho"]


def _refitted(ledger: Ledger, event: Event, rank: Rank) -> None:
    """What was learnt follows from the log itself (``campaign.crowd_model``): no row changes."""


def _closed(ledger: Ledger, event: Event, rank: Rank) -> None:
    ledger.row.closed_seq, ledger.row.closed_reason = event.seq, event.data["reason"]


def _reopened(ledger: Ledger, event: Event, rank: Rank) -> None:
    ledger.row.closed_seq = ledger.row.closed_reason = None


def _clock_accepted(ledger: Ledger, event: Event, rank: Rank) -> None:
    """The log goes on at another time; if at an earlier one, what was dated later is brought back to it."""
    row = ledger.row
    if row.last_arrival is not None:
        row.last_arrival = event.at
    if "expires_at" in event.data:
        ledger.shorten_leases(event.at, event.data["expires_at"])
        row.arrivals = row.arrival_s = 0.0  # they counted the time that the clock was ahead


def _rebuilt(ledger: Ledger, event: Event, rank: Rank) -> None:
    """The rows are again what the events before this one say."""


def _count_label(ledger: Ledger, event: Event, lease: LeaseRow, rank: Rank) -> None:
    """A label that counts: it is spent, and the event says whether it is the last that the task can have."""
    _buy(ledger, lease, 1)
    add_label(ledger, event, lease, event.data["label"], event.data["last"], rank)


def _buy(ledger: Ledger, lease: LeaseRow, change: int) -> None:
    """A label is bought, or its price is given back; those of control questions may be outside of the budget."""
    tally = ledger.worker(lease.worker)
    if lease.free:
        tally.free += change
    else:
        tally.bought += change
        ledger.row.spent += change


_PROJECTIONS: dict[str, Projection] = {
    **WORKER_PROJECTIONS,
    **AUDIT_PROJECTIONS,
    "created": _created,
    "tasks_added": _tasks_added,
    "tasks_published": _tasks_published,
    "tasks_ranked": _tasks_ranked,
    "batch_ended": _batch_ended,
    "leased": _leased,
    "labelled": _labelled,
    "late": _late,
    "predicted": _predicted,
    "expired": _expired,
    "released": _released,
    "renewed": _renewed,
    "undone": _undone,
    "unasked": _unasked,
    "withdrawn": _withdrawn,
    "paused": _paused,
    "resumed": _resumed,
    "changed": _changed,
    "tuned": _tuned,
    "refitting": _refitted,
    "refitted": _refitted,
    "closed": _closed,
    "reopened": _reopened,
    "clock_accepted": _clock_accepted,
    "rebuilt": _rebuilt,
}
