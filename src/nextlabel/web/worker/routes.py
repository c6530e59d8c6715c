"""The addresses of the workers' page.

=============================== ======================================================================
address                         does
=============================== ======================================================================
GET  /w/{token}                 a personal link: sets the cookie and redirects to the page
GET  /j/{token}?PROLIFIC_PID=   a platform's link, likewise; both accept ``completion=https://...``
                                to a site of the setting ``completion_hosts``
GET  /work/{campaign}           the page: an item, or the reason why there is none
POST /work/{campaign}           ``move`` (tell with ``answer``, release, undo) on ``lease``, with a
                                ``comment`` if there is one, then the page; or
                                ``begin`` after the instructions of version ``read``
POST /work/{campaign}/renew     extends ``lease``; replies with JSON
=============================== ======================================================================

A script that accepts JSON gets the changing part of the page in the same reply: one round trip per item.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from urllib.parse import parse_qsl

from anyio import to_thread
from fastapi import APIRouter, FastAPI, Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from nextlabel.campaign.needs import Need
from nextlabel.campaign.replies import Lease
from nextlabel.errors import InputError, TokenError
from nextlabel.service.app_state import app_state
from nextlabel.service.auth import Principal, campaign_id, campaign_id_of_lease
from nextlabel.service.limits import address_of
from nextlabel.service.links import INVALID_LINK, WorkerKey
from nextlabel.service.middleware import request_context
from nextlabel.web.origin import check_origin
from nextlabel.web.worker import audit
from nextlabel.web.worker import session as sessions
from nextlabel.web.worker.actions import WorkerAction, WorkerView, act_and_ask, renewal
from nextlabel.web.worker.error_pages import error_page, with_error_pages
from nextlabel.web.worker.page_view import page_or_panel, wants_json
from nextlabel.web.worker.session import WorkerSession
from nextlabel.web.worker.texts import DEFAULT, worker_texts

router = APIRouter(include_in_schema=False)
BEGIN = "begin"
MOVES = ("tell", "release", "undo", BEGIN)
#: Seconds that a page waits for a campaign's tables; after that it says so and tries again.
TABLES_WAIT_S = 3.0
MAX_FIELDS = 10
#: What MTurk sends instead of an assignment's id during a preview.
PREVIEW = "ASSIGNMENT_ID_NOT_AVAILABLE"


def mount_worker(app: FastAPI) -> None:
    """Add the routes of the workers' page."""
    app.include_router(router)
    app.include_router(audit.router)


@router.get("/w/{token}")
@with_error_pages
async def own_link(token: str, request: Request) -> Response:
    """Enter by a personal link."""
    key = app_state(request).links.read_worker(token)
    if key is None:
        raise TokenError(*INVALID_LINK)
    return await _enter(request, key)


@router.get("/j/{token}")
@with_error_pages
async def platform_link(token: str, request: Request) -> Response:
    """Enter by a platform's link, whose parameters say who the worker is."""
    links = app_state(request).links
    if request.query_params.get("assignmentId") == PREVIEW and links.read_join(token) is not None:
        return error_page(request, "preview")
    key = links.read_worker(links.joined(token, request.query_params))
    assert key is not None
    app_state(request).limits.check_join(address_of(request.scope), *key)
    return await _enter(request, key, joined=True)


@router.get("/work/{campaign}")
@with_error_pages
async def work(campaign: str, request: Request) -> Response:
    """Show the page."""
    session = _session(request, campaign)
    view = await _run_action(request, session, None, sessions.instructions_read(request))
    note = request.query_params.get("note", "")
    if f"notes.{note}" in worker_texts(DEFAULT):
        view = replace(view, note=note)
    return page_or_panel(request, session, view)


@router.post("/work/{campaign}")
@with_error_pages
async def act(campaign: str, request: Request) -> Response:
    """Carry out what a worker did."""
    check_origin(request)
    session = _session(request, campaign)
    form = await _form(request)
    action = _read_action(form)
    if action.move != BEGIN:
        campaign_id_of_lease(action.lease, Principal(session.campaign, session.worker))
    if action.move != "tell":
        app_state(request).limits.check_move(session.campaign, session.worker)
    read = _version(form) if action.move == BEGIN else sessions.instructions_read(request)
    view = await _run_action(request, session, action, read)
    if wants_json(request):
        response = page_or_panel(request, session, view)
    else:
        response = RedirectResponse(session.address + (f"?note={view.note}" if view.note else ""), 303)
    if view.told is not None and action.move == "tell":
        app_state(request).metrics.count_tell(view.told.status)
        sessions.set_last_lease_cookie(request, response, session, view.told.lease)
    if action.move == BEGIN:
        sessions.set_read_cookie(request, response, session, read)
    return response


@router.post("/work/{campaign}/renew")
async def renew(campaign: str, request: Request) -> Response:
    """Extend the lease of the item that is shown."""
    check_origin(request)
    session = _session(request, campaign)
    lease = (await _form(request)).get("lease", "")
    campaign_id_of_lease(lease, Principal(session.campaign, session.worker))
    app_state(request).limits.check_move(session.campaign, session.worker)
    left = await app_state(request).command_queue.run(
        campaign, renewal(session.worker, lease), Need(session.worker, lease)
    )
    return JSONResponse({"left": left})


async def _enter(request: Request, key: WorkerKey, joined: bool = False) -> Response:
    await to_thread.run_sync(app_state(request).campaign_service.store.row, key.campaign)  # or it was deleted
    session = sessions.session_from_link(request, key, joined)
    response = RedirectResponse(session.address, 303)
    sessions.set_session_cookie(request, response, session)
    return response


def _session(request: Request, campaign: str) -> WorkerSession:
    session = sessions.session_from_cookie(request, campaign_id(campaign))
    request_context(request).worker = session.worker
    return session


async def _form(request: Request) -> dict[str, str]:
    try:
        return dict(parse_qsl((await request.body()).decode(), keep_blank_values=True, max_num_fields=MAX_FIELDS))
    except ValueError:
        raise InputError("the form cannot be read.", "Go back to the page and try again.") from None


def _read_action(form: dict[str, str]) -> WorkerAction:
    answer, move = form.get("answer", ""), form.get("move", "tell")
    if move not in MOVES:
        raise InputError("the form does not say what to do.", "Go back to the page and use its buttons.")
    number = int(answer) if answer.isdecimal() and len(answer) < 4 else -1
    return WorkerAction(move, form.get("lease", ""), number, form.get("comment", ""))


def _version(form: dict[str, str]) -> str:
    """The version of the instructions that were shown."""
    version = form.get("read", "")
    return version if version.isascii() and version.isalnum() and len(version) <= 64 else ""


async def _run_action(request: Request, session: WorkerSession, action: WorkerAction | None, read: str) -> WorkerView:
    """Run the command; while tables are computed, only this worker waits, and not for long."""
    state = app_state(request)
    last = sessions.last_lease(request)
    need = Need(session.worker, (action.lease or None) if action is not None else None, asks=True)
    view = await state.command_queue.run(session.campaign, act_and_ask(session.worker, action, last, read), need)
    if view.pending is not None:
        done, _ = await asyncio.wait([asyncio.wrap_future(view.pending)], timeout=TABLES_WAIT_S)
        if done and done.pop().exception() is None:
            if view.told is not None and action is not None and action.move == "tell":
                last = view.told.lease
            told, note = view.told, view.note
            need = Need(session.worker, asks=True)
            view = await state.command_queue.run(session.campaign, act_and_ask(session.worker, None, last, read), need)
            view = replace(view, told=told, note=note)
    if view.reply is not None:
        state.metrics.count_ask("leased" if isinstance(view.reply, Lease) else view.reply.reason)
    return view
