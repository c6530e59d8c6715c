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

A script that accepts JSON gets the changing part of the page in the same reply: one round trip per item. The same page
in a platform's frame has addresses of its own (``frame``).
"""

from __future__ import annotations

from dataclasses import replace

from anyio import to_thread
from fastapi import APIRouter, FastAPI, Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from nextlabel.errors import TokenError
from nextlabel.integrations import mturk
from nextlabel.integrations.platforms import platform_of
from nextlabel.service.app_state import app_state
from nextlabel.service.auth import campaign_id
from nextlabel.service.limits import address_of
from nextlabel.service.links import INVALID_LINK, WorkerKey, is_participant
from nextlabel.service.middleware import request_context
from nextlabel.web.render import check_origin
from nextlabel.web.worker import audit, frame
from nextlabel.web.worker import session as sessions
from nextlabel.web.worker.page_view import error_page, page_or_panel, wants_json, with_error_pages
from nextlabel.web.worker.session import WorkerSession
from nextlabel.web.worker.steps import (
    BEGIN,
    answered_lease,
    checked_action,
    extend_lease,
    read_form,
    take_step,
    version_read,
)
from nextlabel.web.worker.texts import DEFAULT, worker_texts

router = APIRouter(include_in_schema=False)


def mount_worker(app: FastAPI) -> None:
    """Add the routes of the workers' page."""
    app.include_router(router)
    app.include_router(frame.router)
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
    if mturk.is_preview(request.query_params) and links.read_join(token) is not None:
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
    read = sessions.instructions_read(request)
    view = await take_step(request, session.key, None, sessions.last_lease(request), read)
    note = request.query_params.get("note", "")
    if f"notes.{note}" in worker_texts(DEFAULT):
        view = replace(view, note=note)
    return page_or_panel(request, session, view, read)


@router.post("/work/{campaign}")
@with_error_pages
async def act(campaign: str, request: Request) -> Response:
    """Carry out what a worker did."""
    check_origin(request)
    session = _session(request, campaign)
    form = await read_form(request)
    action = checked_action(request, session.key, form)
    before = sessions.instructions_read(request)
    read = version_read(form.get("read", "")) if action.move == BEGIN else before
    view = await take_step(request, session.key, action, sessions.last_lease(request), read)
    if wants_json(request):
        response = page_or_panel(request, session, view, before)
    else:
        response = RedirectResponse(session.address + (f"?note={view.note}" if view.note else ""), 303)
    answered = answered_lease(view, action)
    if answered:
        sessions.set_last_lease_cookie(request, response, session, answered)
    if action.move == BEGIN:
        sessions.set_read_cookie(request, response, session, read)
    return response


@router.post("/work/{campaign}/renew")
async def renew(campaign: str, request: Request) -> Response:
    """Extend the lease of the item that is shown."""
    check_origin(request)
    session = _session(request, campaign)
    lease = (await read_form(request)).get("lease", "")
    return JSONResponse({"left": await extend_lease(request, session.key, lease)})


async def _enter(request: Request, key: WorkerKey, joined: bool = False) -> Response:
    await to_thread.run_sync(app_state(request).campaign_service.store.row, key.campaign)  # or it was deleted
    before = await _begin_visit(request, key) if joined else 0
    session = sessions.session_from_link(request, key, joined, before)
    response = RedirectResponse(session.address, 303)
    sessions.set_session_cookie(request, response, session)
    return response


async def _begin_visit(request: Request, key: WorkerKey) -> int:
    """Record the visit by which a worker comes from a platform; returns what they had labelled before it."""
    platform = platform_of(key.worker)
    if platform is None or platform.framed:
        return 0
    submission, study = (request.query_params.get(name, "") for name in (platform.visit, platform.study))
    if not is_participant(submission):
        return 0
    begin, study = app_state(request).campaign_service.visits.begin, study if is_participant(study) else ""
    visit = await to_thread.run_sync(begin, key.campaign, key.worker, platform.name, submission, study)
    return visit.labels_before


def _session(request: Request, campaign: str) -> WorkerSession:
    session = sessions.session_from_cookie(request, campaign_id(campaign))
    request_context(request).worker = session.worker
    return session
