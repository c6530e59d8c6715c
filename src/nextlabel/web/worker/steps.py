"""One step of a worker, an answer and the next task committed together, and what the worker sees after it."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from starlette.requests import Request

from nextlabel.campaign.commands import Commands
from nextlabel.campaign.replies import Lease, NoTask, Receipt
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.campaign.transitions import LABELLED, LATE
from nextlabel.errors import ConflictError, InputError, NotFoundError, TablesPendingError
from nextlabel.service.app_state import app_state
from nextlabel.service.auth import Principal, campaign_id_of_lease
from nextlabel.service.links import WorkerKey

BEGIN = "begin"
MOVES = ("tell", "release", "undo", BEGIN)

#: Seconds that a page waits for a campaign's tables; after that it says so and tries again.
TABLES_WAIT_S = 3.0
MAX_FIELDS = 100

#: Seconds after which a page looks again while tables are computed.
RETRY_AFTER_S = 2.0


async def read_form(request: Request) -> dict[str, str]:
    """The fields of a form, its answer as one of them (``answer_text``)."""
    try:
        pairs = parse_qsl((await request.body()).decode(), keep_blank_values=True, max_num_fields=MAX_FIELDS)
    except ValueError:
        raise InputError("the form cannot be read.", "Go back to the page and try again.") from None
    return {**dict(pairs), "answer": answer_text(pairs)}


def answer_text(pairs: Iterable[tuple[str, Any]]) -> str:
    """The fields called ``answer``, or ``answer-`` and a question, with commas; with ``number-`` and the place of a
    question, these as well.
    """
    found = list[str]()
    for name, value in pairs:
        what, _, question = name.partition("-")
        if what == "answer":
            found.append(value)
        elif what == "number":  # a comma would begin another answer; a number with a blank is refused
            found.append(f"{question}={str(value).replace(',', ' ')}")
    return ",".join(found)


class WorkerAction(NamedTuple):
    """What a worker does with a lease: ``move`` is tell, release or undo; ``answer`` is what the form sent.

    A ``comment`` goes with an answer or a release.
    ``begin`` is a move without a lease: the worker has read the instructions.
    """

    move: str
    lease: str
    answer: str = ""
    comment: str = ""


def checked_action(request: Request, key: WorkerKey, form: dict[str, str]) -> WorkerAction:
    """What a worker does, if the lease can be theirs and they are not too quick."""
    move = form.get("move", "tell")
    if move not in MOVES:
        raise InputError("the form does not say what to do.", "Go back to the page and use its buttons.")
    action = WorkerAction(move, form.get("lease", ""), form["answer"], form.get("comment", ""))
    if move != BEGIN:
        campaign_id_of_lease(action.lease, Principal(key.campaign, key.worker))
    if move != "tell":
        app_state(request).limits.check_move(key.campaign, key.worker)
    return action


def version_read(text: str) -> str:
    """The version of the instructions that were shown, as a browser says."""
    return text if text.isascii() and text.isalnum() and len(text) <= 64 else ""


def version_of(instructions: str) -> str:
    """A short text that changes with the instructions; empty if there are none."""
    return hashlib.sha256(instructions.encode("utf-8", "replace")).hexdigest()[:16] if instructions else ""


@dataclass(frozen=True, slots=True)
class WorkerView:
    """What a worker sees of a campaign; ``pending`` is done when its tables are ready.

    Without a ``reply`` the worker reads the instructions first. ``labels_given`` is None if unknown, ``comment`` what
    they said of the item before they undid their answer; ``tested`` says that the item is one of the qualification;
    ``told`` is the receipt of the answer that they have just given, and ``undoable`` the lease and the label of the
    last one if it can be taken back.
    """

    id: str
    config: CampaignSettings
    spent: int
    budget: int
    reply: Lease | NoTask | None
    comment: str
    seconds_left: float
    labels_given: int | None
    tested: bool
    undoable: tuple[str, str] | None
    told: Receipt | None
    note: str | None
    pending: Future[Any] | None


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
            again = act_and_ask(key.worker, None, told.lease if told is not None else last, read)
            view = replace(await state.command_queue.run(key.campaign, again), told=told, note=note)
    if view.reply is not None:
        state.metrics.asks.labels("leased" if isinstance(view.reply, Lease) else view.reply.reason).inc()
    if view.told is not None:
        state.metrics.tells.labels(view.told.status).inc()
    return view


async def extend_lease(request: Request, key: WorkerKey, lease: str) -> float:
    """Extend the lease of the item that is shown; returns the seconds left."""
    campaign_id_of_lease(lease, Principal(key.campaign, key.worker))
    app_state(request).limits.check_move(key.campaign, key.worker)

    def renew(commands: Commands) -> float:
        return (commands.renew(lease, key.worker).expires_at or commands.now) - commands.now

    return await app_state(request).command_queue.run(key.campaign, renew)


def act_and_ask(
    worker: str, action: WorkerAction | None, last: str, read: str = ""
) -> Callable[[Commands], WorkerView]:
    """The command: act if there is an action, then ask for a task.

    ``last`` is the lease that was answered last, ``read`` the version of the instructions that the worker has read:
    others come before the next task, and nobody holds one while reading.
    """

    def command(commands: Commands) -> WorkerView:
        told, note = (None, None) if action is None or action.move == BEGIN else _act(commands, worker, action)
        pending: Future[Any] | None = None
        try:
            reads = _reads_first(commands, worker, read)
            reply: Lease | NoTask | None = commands.refusal(worker) if reads else commands.ask(worker)
        except TablesPendingError as error:
            reply, pending = NoTask(commands.state.row.id, "preparing", RETRY_AFTER_S), error.future
        undoable = _undoable(commands, worker, last if told is None else told.lease)
        row, tally = commands.state.row, commands.state.find_worker(worker)
        held = commands.state.lease(reply.id) if isinstance(reply, Lease) else None
        return WorkerView(
            row.id, row.config, row.spent, row.budget, reply, (held.comment if held is not None else None) or "",
            reply.expires_at - commands.now if isinstance(reply, Lease) else 0.0,
            None if tally is None else tally.labels, held is not None and not commands.qualifies(worker),
            undoable, told, note, pending,
        )  # fmt: skip

    return command


def _reads_first(commands: Commands, worker: str, read: str) -> bool:
    """Whether there are instructions that the worker has not read, and no item that waits for an answer."""
    if version_of(commands.state.row.config.instructions) in ("", read):
        return False
    commands.expire()
    return not commands.state.open_leases(worker)


def _act(commands: Commands, worker: str, action: WorkerAction) -> tuple[Receipt | None, str | None]:
    """The receipt of an answer, and a key of ``notes`` in the texts if something unusual, not an error, happened."""
    answers = commands.state.row.config.answer_type
    said = answers.name_of(answers.sent(action.answer)) if action.move == "tell" else ""
    before = commands.state.lease(action.lease)
    repeated = before is not None and before.label is not None  # read now: the row changes below
    try:
        if action.move == "tell":
            told = commands.tell(action.lease, said, worker, action.comment)
        elif action.move == "release":
            commands.release(action.lease, worker, action.comment)
            return None, None
        else:
            commands.undo(action.lease, worker)
            return None, None
    except NotFoundError:
        return None, "not_yours"
    except ConflictError:
        return None, "too_late" if action.move == "undo" else "answered"
    if repeated or told.status != LATE:
        return told, "again" if repeated else None
    return told, "late" if told.counted else "taken_back" if commands.is_blocked(worker) else "not_needed"


def _undoable(commands: Commands, worker: str, lease: str) -> tuple[str, str] | None:
    """The last answer with its lease, if it was this worker's and can still be undone."""
    found = commands.state.lease(lease) if lease else None
    if found is None or found.worker != worker or found.label is None or found.dropped:
        return None
    if found.status != LABELLED or commands.now >= found.expires_at or commands.is_blocked(worker):
        return None
    return lease, commands.state.row.config.shown(found.label)
