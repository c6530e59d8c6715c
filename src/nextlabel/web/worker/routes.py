"""The addresses of the workers' page.

=============================== ======================================================================
address                         does
=============================== ======================================================================
GET  /w/{token}                 a personal link: sets the cookie and redirects to the page
GET  /j/{token}?PROLIFIC_PID=   a platform's link, likewise; both accept ``completion=https://...``
                                to a site of the setting ``completion_hosts``
GET  /f/{token}?assignmentId=   the platforms' link for a frame: redirects to the page there, or shows a
                                preview, which takes no item, until the worker has accepted
GET  /work/{campaign}           the page: an item, or the reason why there is none
POST /work/{campaign}           ``move`` (tell with ``answer``, release, undo) on ``lease``, with a
                                ``comment`` if there is one, then the page; or
                                ``begin`` after the instructions of version ``read``
POST /work/{campaign}/renew     extends ``lease``; replies with JSON
=============================== ======================================================================

``/frame/{token}`` is the same page in a frame (``session``). A script that accepts JSON gets the changing part of the
page in the same reply: one round trip per item.
"""

from __future__ import annotations

from dataclasses import replace

from anyio import to_thread
from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from nextlabel.errors import TokenError
from nextlabel.integrations import mturk
from nextlabel.integrations.platforms import platform_of
from nextlabel.service.app_state import app_state
from nextlabel.service.limits import address_of
from nextlabel.service.links import INVALID_LINK, WorkerKey, is_participant
from nextlabel.web.markdown import safe_html
from nextlabel.web.render import wants_json
from nextlabel.web.worker.page_view import WorkerRoute, error_page, framed_policy, item_page, page_or_panel
from nextlabel.web.worker.session import (
    COOKIE_KIND,
    LAST_LEASE_COOKIE,
    READ_COOKIE,
    SESSION_COOKIE,
    allow_framing,
    keep_cookie,
    session_from_link,
    session_of,
)
from nextlabel.web.worker.steps import BEGIN, checked_action, extend_lease, read_form, take_step, version_read
from nextlabel.web.worker.texts import DEFAULT, worker_texts

router = APIRouter(route_class=WorkerRoute, include_in_schema=False)
TURK = mturk.MechanicalTurk()
#: Tasks that are looked through for one to show in a preview: control questions are not shown.
LOOKED_AT = 50


@router.get("/w/{token}")
async def own_link(token: str, request: Request) -> Response:
    """Enter by a personal link."""
    key = app_state(request).links.read_worker(token)
    if key is None:
        raise TokenError(*INVALID_LINK)
    return await _enter(request, key)


@router.get("/j/{token}")
async def platform_link(token: str, request: Request) -> Response:
    """Enter by a platform's link, whose parameters say who the worker is."""
    links = app_state(request).links
    if mturk.is_preview(request.query_params) and links.read_join(token) is not None:
        return error_page(request, "preview")
    key = links.read_worker(links.joined(token, request.query_params))
    assert key is not None
    app_state(request).limits.check_join(address_of(request.scope), *key)
    return await _enter(request, key, joined=True)


@router.get("/f/{token}")
async def frame_link(token: str, request: Request) -> Response:
    """Enter an accepted assignment, or show a preview."""
    allow_framing(request)
    state = app_state(request)
    campaign = state.links.read_join(token)
    if campaign is None:
        raise TokenError(*INVALID_LINK)
    if mturk.is_preview(request.query_params):
        return await to_thread.run_sync(_preview, request, campaign)
    assignment = mturk.read_assignment(request.query_params, state.settings.submit_origins)
    key = WorkerKey(campaign, TURK.prefix + assignment.worker)
    state.limits.check_join(address_of(request.scope), *key)
    visits = state.campaign_service.visits
    visit = await to_thread.run_sync(visits.begin, *key, TURK.name, assignment.id, assignment.hit)
    session = session_from_link(request, key, True, visit.labels_before, assignment)
    return RedirectResponse(session.address, 303)


@router.get("/work/{place}")
@router.get("/frame/{place}")
async def work(place: str, request: Request) -> Response:
    """Show the page."""
    session = session_of(request, place)
    view = await take_step(request, session.key, None, session.last, session.read)
    note = request.query_params.get("note", "")
    if f"notes.{note}" in worker_texts(DEFAULT):
        view = replace(view, note=note)
    return page_or_panel(request, session, view, session.read)


@router.post("/work/{place}")
@router.post("/frame/{place}")
async def act(place: str, request: Request) -> Response:
    """Carry out what a worker did."""
    session = session_of(request, place)
    form = await read_form(request)
    action = checked_action(request, session.key, form)
    begins, before = action.move == BEGIN, session.read
    read = version_read(form.get("read", "")) if begins else before
    view = await take_step(request, session.key, action, session.last, read)
    session = replace(session, read=read, last=session.last if view.told is None else view.told.lease)
    if wants_json(request):
        response = page_or_panel(request, session, view, before)
    else:
        response = RedirectResponse(session.noted(view.note), 303)
    if view.told is not None and not session.token:
        keep_cookie(request, response, session, LAST_LEASE_COOKIE, session.last)
    if begins and not session.token:
        keep_cookie(request, response, session, READ_COOKIE, read)
    return response


@router.post("/work/{place}/renew")
@router.post("/frame/{place}/renew")
async def renew(place: str, request: Request) -> Response:
    """Extend the lease of the item that is shown."""
    session = session_of(request, place)
    lease = (await read_form(request)).get("lease", "")
    return JSONResponse({"left": await extend_lease(request, session.key, lease)})


async def _enter(request: Request, key: WorkerKey, joined: bool = False) -> Response:
    await to_thread.run_sync(app_state(request).campaign_service.store.row, key.campaign)  # or it was deleted
    before = await _begin_visit(request, key) if joined else 0
    session = session_from_link(request, key, joined, before)
    response = RedirectResponse(session.address, 303)
    keep_cookie(request, response, session, SESSION_COOKIE, session.signed(app_state(request).links, COOKIE_KIND))
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
    return (await to_thread.run_sync(begin, *key, platform.name, submission, study)).labels_before


def _preview(request: Request, campaign: str) -> Response:
    """The page with an item that nobody holds, and buttons that do nothing."""
    store = app_state(request).campaign_service.store
    row = store.row(campaign)
    item = next((task for task in store.tasks(campaign, limit=LOOKED_AT) if task.gold is None), None)
    instructions, policy = safe_html(row.config.instructions), framed_policy(request)
    return item_page("preview", request, row, item, instructions=instructions, own_policy=policy)
