"""What events do to one lease and its task: shared by the projections of ``campaign.projection``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nextlabel.beliefs.simplex import simplex
from nextlabel.campaign.events import Event
from nextlabel.campaign.ledger import Ledger
from nextlabel.campaign.rows import LeaseRow, TaskRow
from nextlabel.campaign.transitions import LATE, LeaseStatus
from nextlabel.errors import NotFoundError
from nextlabel.problem.state import TaskState, assign, complete, take_back, withdraw

#: The score of a task in a state.
Rank = Callable[[Ledger, TaskRow, TaskState], float | None]
#: What makes the rows follow an event of one kind.
Projection = Callable[[Ledger, Event, Rank], None]


def unranked(ledger: Ledger, task: TaskRow, state: TaskState) -> None:
    """No score, for a replay."""


def get_lease(ledger: Ledger, id: str) -> LeaseRow:
    """A lease by id, or a NotFoundError."""
    lease = ledger.lease(id)
    if lease is None:
        raise NotFoundError("there is no such lease.", "Ask for a task and use the lease's id.")
    return lease


def end_lease(ledger: Ledger, event: Event, id: str, status: LeaseStatus) -> LeaseRow:
    """The lease, which has ended; the caller saves it."""
    lease = get_lease(ledger, id)
    lease.status, lease.ended_at = status, event.at
    return lease


def end_without_label(ledger: Ledger, event: Event, id: str, status: LeaseStatus, rank: Rank) -> LeaseRow:
    """A lease that ended without a label: its reservation is given back."""
    lease = end_lease(ledger, event, id, status)
    ledger.save_lease(lease)
    reserve(ledger, lease, -1)
    task = ledger.task(lease.task)
    move(ledger, task, withdraw(task.state), rank)
    return lease


def reserve(ledger: Ledger, lease: LeaseRow, change: int) -> None:
    """A label of the budget is reserved for the lease, or is no more; control questions may be outside of it."""
    if not lease.free:
        ledger.row.reserved += change


def add_label(ledger: Ledger, event: Event, lease: LeaseRow, label: int, last: bool, rank: Rank) -> None:
    """The task has one label more that counts, one in flight unless the lease was over; ``last``: it can have no more.

    Labels of a control question say nothing about its truth, which is known.
    """
    task, in_flight = ledger.task(lease.task), lease.status != LATE and not lease.dropped
    if task.gold is not None:
        if in_flight:
            move(ledger, task, withdraw(task.state), rank)
        return
    task.labels += 1
    task.last_seq = event.seq
    if last:
        task.closed_seq = event.seq
        ledger.row.full += 1
    state = task.state if in_flight else assign(task.state)
    move(ledger, task, complete(state, label, _children(ledger)), rank)


def take_label(ledger: Ledger, event: Event, lease: LeaseRow, label: int, again: bool, rank: Rank) -> None:
    """The task has one label less that counts; ``again``: it is in flight again."""
    task = ledger.task(lease.task)
    if task.gold is not None:
        if again:
            move(ledger, task, assign(task.state), rank)
        return
    if task.closed_seq is not None:
        ledger.row.full -= 1
    task.labels, task.closed_seq, task.last_seq = task.labels - 1, None, event.seq
    state = take_back(task.state, label, _counts(ledger))
    move(ledger, task, state if again else withdraw(state), rank)


def move(ledger: Ledger, task: TaskRow, state: TaskState, rank: Rank) -> None:
    """Put a task into another state."""
    ledger.move(task, state, rank(ledger, task, state))


def _children(ledger: Ledger) -> Any:
    """The node that follows each node with each answer."""
    return simplex(ledger.row.config.answers, ledger.row.config.most_labels)[1]


def _counts(ledger: Ledger) -> Any:
    """The labels of each answer at each node."""
    return simplex(ledger.row.config.answers, ledger.row.config.most_labels)[2]
