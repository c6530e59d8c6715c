"""What a worker does and what they see next, in one command: an answer and the next item are one commit."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, NamedTuple

from nextlabel.campaign.commands import Commands
from nextlabel.campaign.replies import Lease, NoTask, Told
from nextlabel.campaign.transitions import LABELLED, LATE
from nextlabel.errors import ConflictError, InputError, NotFoundError, TablesPendingError

PREPARING_S = 2.0


class WorkerAction(NamedTuple):
    """Something done to a lease: ``move`` is tell, release or undo; ``answer`` the number of the label told."""

    move: str
    lease: str
    answer: int = -1


class UndoableAnswer(NamedTuple):
    """An answer that can be taken back."""

    lease: str
    label: str


@dataclass(frozen=True, slots=True)
class WorkerView:
    """What a worker sees; ``labels_given`` is None where it is not known, ``pending`` are tables to wait for."""

    name: str
    question: str
    labels: tuple[str, ...]
    spent: int
    budget: int
    reply: Lease | NoTask
    seconds_left: float
    labels_given: int | None
    undoable: UndoableAnswer | None
    told: Told | None
    note: str | None
    pending: Future[Any] | None


def step(worker: str, deed: WorkerAction | None, last: str) -> Callable[[Commands], WorkerView]:
    """The command: do it, ask for the next task, look round. ``last`` is the lease that was answered last."""

    def command(commands: Commands) -> WorkerView:
        told, note = (None, None) if deed is None else _done(commands, worker, deed)
        pending: Future[Any] | None = None
        reply: Lease | NoTask
        try:
            reply = commands.ask(worker)
        except TablesPendingError as error:
            reply, pending = NoTask(commands.ledger.row.id, "preparing", PREPARING_S), error.future
        answered = told.lease if told is not None and deed is not None and deed.move == "tell" else last
        undoable, known = _last(commands, worker, answered)
        row = commands.ledger.row
        # A tally that is looked at is written, so only those of workers who had a lease are.
        known = known or told is not None or isinstance(reply, Lease)
        return WorkerView(
            row.config.name or row.id, row.config.question, row.config.labels, row.spent, row.budget, reply,
            reply.expires_at - commands.now if isinstance(reply, Lease) else 0.0,
            commands.ledger.worker(worker).labels if known else None,
            undoable, told, note, pending,
        )  # fmt: skip

    return command


def renewed(worker: str, lease: str) -> Callable[[Commands], float]:
    """The command that gives a lease more time; seconds that it is out."""

    def command(commands: Commands) -> float:
        return (commands.renew(lease, worker).expires_at or commands.now) - commands.now

    return command


def _done(commands: Commands, worker: str, deed: WorkerAction) -> tuple[Told | None, str | None]:
    """What became of a deed, and a key of ``words.NOTES`` if it did not go the usual way; nothing is an error."""
    labels = commands.ledger.row.config.labels
    if deed.move == "tell" and not 0 <= deed.answer < len(labels):
        raise InputError("there is no such answer.", "Choose one of the buttons.")
    before = commands.ledger.lease(deed.lease)
    repeated = before is not None and before.label is not None  # the row itself changes below
    try:
        if deed.move == "release":
            return commands.release(deed.lease, worker), None
        if deed.move == "undo":
            return commands.undo(deed.lease, worker), None
        told = commands.tell(deed.lease, labels[deed.answer], worker)
    except NotFoundError:
        return None, "not_yours"
    except ConflictError:
        return None, "too_late" if deed.move == "undo" else "answered"
    if repeated:
        return told, "again"
    if told.status == LATE:
        return told, "late" if told.counted else "not_needed"
    return told, None


def _last(commands: Commands, worker: str, lease: str) -> tuple[UndoableAnswer | None, bool]:
    """The last answer if it can be taken back, and whether it was this worker's."""
    found = commands.ledger.lease(lease) if lease else None
    if found is None or found.worker != worker:
        return None, False
    if found.status != LABELLED or commands.now >= found.expires_at or found.label is None:
        return None, True
    return UndoableAnswer(lease, commands.ledger.row.config.labels[found.label]), True
