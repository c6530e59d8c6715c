"""One step of a worker, an answer and the next task committed together, and what the worker sees after it."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from starlette.requests import Request

from nextlabel.campaign.commands import Commands
from nextlabel.campaign.replies import Lease, NoTask, Receipt
from nextlabel.campaign.transitions import LABELLED, LATE
from nextlabel.crowd.answers import Answer
from nextlabel.errors import ConflictError, InputError, NotFoundError, TablesPendingError
from nextlabel.service.app_state import app_state
from nextlabel.service.auth import Principal, campaign_id_of_lease
from nextlabel.service.links import WorkerKey
from nextlabel.web.worker.task_view import Choice, choices

BEGIN = "begin"
MOVES = ("tell", "release", "undo", BEGIN)

#: Seconds that a page waits for a campaign's tables; after that it says so and tries again.
TABLES_WAIT_S = 3.0
MAX_FIELDS = 100

#: Seconds after which a page looks again while tables are computed.
RETRY_AFTER_S = 2.0


async def read_form(request: Request) -> dict[str, str]:
    """The fields of a form; all that are called ``answer``, or ``answer-`` and a question, as one with commas."""
    try:
        pairs = parse_qsl((await request.body()).decode(), keep_blank_values=True, max_num_fields=MAX_FIELDS)
    except ValueError:
        raise InputError("the form cannot be read.", "Go back to the page and try again.") from None
    return {**dict(pairs), "answer": ",".join(value for name, value in pairs if name.partition("-")[0] == "answer")}


def checked_action(request: Request, key: WorkerKey, form: dict[str, str]) -> WorkerAction:
    """What a worker does, if the lease can be theirs and they are not too quick."""
    answer, move = form.get("answer", ""), form.get("move", "tell")
    if move not in MOVES:
        raise InputError("the form does not say what to do.", "Go back to the page and use its buttons.")
    action = WorkerAction(move, form.get("lease", ""), answer, form.get("comment", ""))
    if move != BEGIN:
        campaign_id_of_lease(action.lease, Principal(key.campaign, key.worker))
    if move != "tell":
        app_state(request).limits.check_move(key.campaign, key.worker)
    return action


def version_read(text: str) -> str:
    """The version of the instructions that were shown, as a browser says."""
    return text if text.isascii() and text.isalnum() and len(text) <= 64 else ""


async def take_step(request: Request, key: WorkerKey, action: WorkerAction | None, last: str, read: str) -> WorkerView:
    """Run the command; while tables are computed, only this worker waits, and not for long.

    ``last`` is the lease that was answered last, ``read`` the version of the instructions that was read.
    """
    state = app_state(request)
    view = await state.command_queue.run(key.campaign, act_and_ask(key.worker, action, last, read))
    if view.pending is not None:
        done, _ = await asyncio.wait([asyncio.wrap_future(view.pending)], timeout=TABLES_WAIT_S)
        if done and done.pop().exception() is None:
            told, note = view.told, view.note
            last = answered_lease(view, action) or last
            view = await state.command_queue.run(key.campaign, act_and_ask(key.worker, None, last, read))
            view = replace(view, told=told, note=note)
    if view.reply is not None:
        state.metrics.count_ask("leased" if isinstance(view.reply, Lease) else view.reply.reason)
    if view.told is not None and answered_lease(view, action):
        state.metrics.count_tell(view.told.status)
    return view


def answered_lease(view: WorkerView, action: WorkerAction | None) -> str:
    """The lease that a step has answered, or empty."""
    return view.told.lease if view.told is not None and action is not None and action.move == "tell" else ""


async def extend_lease(request: Request, key: WorkerKey, lease: str) -> float:
    """Extend the lease of the item that is shown; returns the seconds left."""
    campaign_id_of_lease(lease, Principal(key.campaign, key.worker))
    app_state(request).limits.check_move(key.campaign, key.worker)
    return await app_state(request).command_queue.run(key.campaign, renewal(key.worker, lease))


class WorkerAction(NamedTuple):
    """What a worker does with a lease: ``move`` is tell, release or undo; ``answer`` is what the form sent.

    A ``comment`` goes with an answer or a release.
    ``begin`` is a move without a lease: the worker has read the instructions.
    """

    move: str
    lease: str
    answer: str = ""
    comment: str = ""


class UndoableAnswer(NamedTuple):
    """An answer that can still be undone."""

    lease: str
    label: str


@dataclass(frozen=True, slots=True)
class WorkerView:
    """What a worker sees; ``labels_given`` is None if unknown, ``pending`` is done when the tables are ready.

    Without a ``reply`` the worker reads the ``instructions`` first, which may be empty otherwise.
    """

    name: str
    question: str
    language: str | None
    choices: list[Choice]
    answers: Answer
    instructions: str
    spent: int
    budget: int
    reply: Lease | NoTask | None
    comment: str
    seconds_left: float
    labels_given: int | None
    completion_code: str
    undoable: UndoableAnswer | None
    told: Receipt | None
    note: str | None
    pending: Future[Any] | None


def act_and_ask(
    worker: str, action: WorkerAction | None, last: str, read: str = ""
) -> Callable[[Commands], WorkerView]:
    """The command: act if there is an action, then ask for a task.

    ``last`` is the lease that was answered last, ``read`` the version of the instructions that the worker has read:
    others come before the next task, and nobody holds one while reading.
    """

    def command(commands: Commands) -> WorkerView:
        acts = action is not None and action.move != "begin"
        told, note = _act(commands, worker, action) if acts and action is not None else (None, None)
        pending: Future[Any] | None = None
        reply: Lease | NoTask | None
        try:
            reply = commands.refusal(worker) if _reads_first(commands, worker, read) else commands.ask(worker)
        except TablesPendingError as error:
            reply, pending = NoTask(commands.state.row.id, "preparing", RETRY_AFTER_S), error.future
        answered = told.lease if told is not None and action is not None and action.move == "tell" else last
        undoable = _undoable(commands, worker, answered)
        row, tally = commands.state.row, commands.state.find_worker(worker)
        return WorkerView(
            row.config.name or row.id, row.config.question, row.config.language, choices(row.config),
            row.config.answer_type,
            row.config.instructions, row.spent, row.budget, reply, _comment(commands, reply),
            reply.expires_at - commands.now if isinstance(reply, Lease) else 0.0,
            None if tally is None else tally.labels, row.config.completion_code,
            undoable, told, note, pending,
        )  # fmt: skip

    return command


def version_of(instructions: str) -> str:
    """A short text that changes with the instructions; empty if there are none."""
    return hashlib.sha256(instructions.encode("utf-8", "replace")).hexdigest()[:16] if instructions else ""


def _comment(commands: Commands, reply: Lease | NoTask | None) -> str:
    """What the worker said about the item before they undid their answer."""
    held = commands.state.lease(reply.id) if isinstance(reply, Lease) else None
    return (held.comment if held is not None else None) or ""


def _reads_first(commands: Commands, worker: str, read: str) -> bool:
    """Whether there are instructions that the worker has not read, and no item that waits for an answer."""
    version = version_of(commands.state.row.config.instructions)
    if version in ("", read):
        return False
    commands.expire()
    return not commands.state.open_leases(worker)


def renewal(worker: str, lease: str) -> Callable[[Commands], float]:
    """The command that extends a lease; returns the seconds left."""

    def command(commands: Commands) -> float:
        return (commands.renew(lease, worker).expires_at or commands.now) - commands.now

    return command


def _act(commands: Commands, worker: str, action: WorkerAction) -> tuple[Receipt | None, str | None]:
    """The result of an action, and a key of ``notes`` in the texts if something unusual, not an error, happened."""
    answers = commands.state.row.config.answer_type
    said = answers.name_of(answers.sent(action.answer)) if action.move == "tell" else ""
    before = commands.state.lease(action.lease)
    repeated = before is not None and before.label is not None  # read now: the row changes below
    try:
        if action.move == "release":
            return commands.release(action.lease, worker, action.comment), None
        if action.move == "undo":
            return commands.undo(action.lease, worker), None
        told = commands.tell(action.lease, said, worker, action.comment)
    except NotFoundError:
        return None, "not_yours"
    except ConflictError:
        return None, "too_late" if action.move == "undo" else "answered"
    if repeated:
        return told, "again"
    if told.status == LATE:
        note = "taken_back" if commands.is_blocked(worker) else "not_needed"
        return told, "late" if told.counted else note
    return told, None


def _undoable(commands: Commands, worker: str, lease: str) -> UndoableAnswer | None:
    """The last answer, if it was this worker's and can still be undone."""
    found = commands.state.lease(lease) if lease else None
    if found is None or found.worker != worker:
        return None
    over = found.status != LABELLED or commands.now >= found.expires_at
    if over or found.label is None or found.dropped or commands.is_blocked(worker):
        return None
    return UndoableAnswer(lease, commands.state.row.config.shown(found.label))
