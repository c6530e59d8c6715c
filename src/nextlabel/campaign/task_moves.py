"""What events do to one lease and its task: shared by the projections of ``campaign.projection``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nextlabel.beliefs.simplex import simplex
from nextlabel.campaign.events import Event
from nextlabel.campaign.ledger import Ledger
from nextlabel.campaign.rows import LeaseRow, TaskRow
from nextlabel.campaign.transitions import LeaseStatus
from nextlabel.errors import NotFoundError
from nextlabel.problem.state import TaskState, withdraw

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
    ledger.row.reserved -= 1
    task = ledger.task(lease.task)
    move(ledger, task, withdraw(task.state), rank)
    return lease


def add_to_task(ledger: Ledger, event: Event, task: TaskRow, state: TaskState, last: bool, rank: Rank) -> None:
    """One more label that counts for the task; ``last`` if it can have no further one."""
    task.labels += 1
    task.last_seq = event.seq
    if last:
        task.closed_seq = event.seq
        ledger.row.full += 1
    move(ledger, task, state, rank)


def take_from_task(ledger: Ledger, event: Event, task: TaskRow, state: TaskState, rank: Rank) -> None:
    """One label less that counts for the task, which may have others again."""
    if task.closed_seq is not None:
        ledger.row.full -= 1
    task.labels, task.closed_seq, task.last_seq = task.labels - 1, None, event.seq
    move(ledger, task, state, rank)


def move(ledger: Ledger, task: TaskRow, state: TaskState, rank: Rank) -> None:
    """Put a task into another state."""
    ledger.move(task, state, rank(ledger, task, state))


def children(ledger: Ledger) -> Any:
    """The node that follows each node with each answer."""
    return simplex(ledger.row.config.answers, ledger.row.config.most_labels)[1]


def counts(ledger: Ledger) -> Any:
    """The labels of each answer at each node."""
    return simplex(ledger.row.config.answers, ledger.row.config.most_labels)[2]
