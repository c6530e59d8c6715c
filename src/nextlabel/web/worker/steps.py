"""One step of a worker: what a form says, as a command, and what the worker sees after it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from urllib.parse import parse_qsl

from starlette.requests import Request

from nextlabel.campaign.needs import Need
from nextlabel.campaign.replies import Lease
from nextlabel.errors import InputError
from nextlabel.service.app_state import app_state
from nextlabel.service.auth import Principal, campaign_id_of_lease
from nextlabel.service.links import WorkerKey
from nextlabel.web.worker.actions import WorkerAction, WorkerView, act_and_ask, renewal

BEGIN = "begin"
MOVES = ("tell", "release", "undo", BEGIN)
#: Seconds that a page waits for a campaign's tables; after that it says so and tries again.
TABLES_WAIT_S = 3.0
MAX_FIELDS = 10


async def read_form(request: Request) -> dict[str, str]:
    """The fields of a form."""
    try:
        return dict(parse_qsl((await request.body()).decode(), keep_blank_values=True, max_num_fields=MAX_FIELDS))
    except ValueError:
        raise InputError("the form cannot be read.", "Go back to the page and try again.") from None


def checked_action(request: Request, key: WorkerKey, form: dict[str, str]) -> WorkerAction:
    """What a worker does, if the lease can be theirs and they are not too quick."""
    answer, move = form.get("answer", ""), form.get("move", "tell")
    if move not in MOVES:
        raise InputError("the form does not say what to do.", "Go back to the page and use its buttons.")
    number = int(answer) if answer.isdecimal() and len(answer) < 4 else -1
    action = WorkerAction(move, form.get("lease", ""), number, form.get("comment", ""))
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
    need = Need(key.worker, (action.lease or None) if action is not None else None, asks=True)
    view = await state.command_queue.run(key.campaign, act_and_ask(key.worker, action, last, read), need)
    if view.pending is not None:
        done, _ = await asyncio.wait([asyncio.wrap_future(view.pending)], timeout=TABLES_WAIT_S)
        if done and done.pop().exception() is None:
            told, note = view.told, view.note
            last = answered_lease(view, action) or last
            need = Need(key.worker, asks=True)
            view = await state.command_queue.run(key.campaign, act_and_ask(key.worker, None, last, read), need)
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
    return await app_state(request).command_queue.run(key.campaign, renewal(key.worker, lease), Need(key.worker, lease))
