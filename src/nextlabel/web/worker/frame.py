"""The workers' page in a frame of Mechanical Turk.

============================== =============================================================================
address                        does
============================== =============================================================================
GET  /f/{token}?assignmentId=  the platforms' link for a frame: redirects to the page, or shows a preview,
                               which takes no item, until the worker has accepted
GET  /frame/{session}          the page, as at ``/work`` (``routes``)
POST /frame/{session}          what the worker did
POST /frame/{session}/renew    extends ``lease``; replies with JSON
============================== =============================================================================

**Who may frame it.** These addresses alone may be framed, by the sites of the setting ``frame_hosts``; all others are
forbidden to be. **Who is working.** Browsers keep cookies from pages in frames of other sites, so there are none: the
session is a signed token in the address (``LinkSigner.sign``), with the worker, the assignment and the site to which it
is handed back, and ends like a cookie's when the link is revoked. What cookies hold otherwise, the instructions read
and the lease answered last, is in the address too. No other site learns it: referrers stay here.

**The way back** is a form to ``/mturk/externalSubmit`` of the site that MTurk named, if that is one of the setting
``submit_hosts``: nothing else can be made to receive it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple
from urllib.parse import urlencode

from anyio import to_thread
from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from nextlabel.campaign.records import JOIN_LINK
from nextlabel.campaign.settings import shown_payload
from nextlabel.errors import TokenError
from nextlabel.integrations import mturk
from nextlabel.service.app_state import app_state
from nextlabel.service.limits import address_of
from nextlabel.service.links import INVALID_LINK, WorkerKey
from nextlabel.service.middleware import request_context
from nextlabel.web.markdown import safe_html
from nextlabel.web.render import check_origin, page
from nextlabel.web.worker.page_view import allow_framing, framed_policy, page_or_panel, wants_json, with_error_pages
from nextlabel.web.worker.steps import (
    BEGIN,
    answered_lease,
    checked_action,
    extend_lease,
    read_form,
    take_step,
    version_read,
)
from nextlabel.web.worker.task_view import choices, payload_parts
from nextlabel.web.worker.texts import DEFAULT, texts_for, worker_texts

router = APIRouter(include_in_schema=False)
KIND = "f1"
TURK = mturk.MechanicalTurk()
#: Tasks that are looked through for one to show in a preview: control questions are not shown.
LOOKED_AT = 50


class FrameKey(NamedTuple):
    """What the token in the address says: who works on which assignment, and what they had labelled before it."""

    campaign: str
    worker: str
    version: int
    joined: int
    assignment: str
    hit: str
    site: str
    before: int


@dataclass(frozen=True, slots=True)
class FrameSession:
    """One worker on one assignment: the token, what it says, and what the address says beside it."""

    token: str
    frame: FrameKey
    read: str = ""
    last: str = ""
    completion: str = ""
    completion_site: str = ""

    @property
    def key(self) -> WorkerKey:
        """Who works on what."""
        return WorkerKey(self.frame.campaign, self.frame.worker)

    @property
    def before(self) -> int:
        """What the worker had labelled before this assignment."""
        return self.frame.before

    @property
    def address(self) -> str:
        """The address of the page."""
        state = {name: value for name, value in (("read", self.read), ("last", self.last)) if value}
        return f"/frame/{self.token}" + (f"?{urlencode(state)}" if state else "")

    @property
    def renew_address(self) -> str:
        """The address that extends a lease."""
        return f"/frame/{self.token}/renew"

    @property
    def assignment(self) -> mturk.Assignment:
        """What is handed back at the end."""
        return mturk.Assignment(self.frame.assignment, self.frame.hit, self.frame.worker, self.frame.site)


@router.get("/f/{token}")
@with_error_pages
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
    worker = TURK.prefix + assignment.worker
    state.limits.check_join(address_of(request.scope), campaign, worker)
    visits = state.campaign_service.visits
    visit = await to_thread.run_sync(visits.begin, campaign, worker, TURK.name, assignment.id, assignment.hit)
    versions = (state.links.version(campaign, worker), state.links.version(campaign, JOIN_LINK))
    key = FrameKey(campaign, worker, *versions, assignment.id, assignment.hit, assignment.site, visit.labels_before)
    return RedirectResponse(FrameSession(state.links.sign(KIND, list(key)), key).address, 303)


@router.get("/frame/{token}")
@with_error_pages
async def frame_page(token: str, request: Request) -> Response:
    """Show the page."""
    session = _session(request, token)
    view = await take_step(request, session.key, None, session.last, session.read)
    note = request.query_params.get("note", "")
    if f"notes.{note}" in worker_texts(DEFAULT):
        view = replace(view, note=note)
    return page_or_panel(request, session, view, session.read, framed_policy(request))


@router.post("/frame/{token}")
@with_error_pages
async def act_in_frame(token: str, request: Request) -> Response:
    """Carry out what a worker did."""
    session = _session(request, token)
    check_origin(request)
    form = await read_form(request)
    action = checked_action(request, session.key, form)
    before = session.read
    read = version_read(form.get("read", "")) if action.move == BEGIN else before
    view = await take_step(request, session.key, action, session.last, read)
    session = replace(session, read=read, last=answered_lease(view, action) or session.last)
    if wants_json(request):
        return page_or_panel(request, session, view, before, framed_policy(request))
    joined = "&" if "?" in session.address else "?"
    return RedirectResponse(session.address + (f"{joined}note={view.note}" if view.note else ""), 303)


@router.post("/frame/{token}/renew")
async def renew_in_frame(token: str, request: Request) -> Response:
    """Extend the lease of the item that is shown."""
    session = _session(request, token)
    check_origin(request)
    lease = (await read_form(request)).get("lease", "")
    return JSONResponse({"left": await extend_lease(request, session.key, lease)})


def _session(request: Request, token: str) -> FrameSession:
    """The session of an address; raises TokenError if its link has been revoked."""
    allow_framing(request)
    links = app_state(request).links
    payload = links.read(KIND, token)
    key = None if payload is None else FrameKey(*payload)
    if (
        key is None
        or key.version != links.version(key.campaign, key.worker)
        or key.joined != links.version(key.campaign, JOIN_LINK)
    ):
        raise TokenError(*INVALID_LINK)
    request_context(request).worker = key.worker
    given = request.query_params
    return FrameSession(token, key, version_read(given.get("read", "")), given.get("last", "")[:200])


def _preview(request: Request, campaign: str) -> Response:
    """The page with an item that nobody holds, and buttons that do nothing."""
    store = app_state(request).campaign_service.store
    config = store.row(campaign).config
    item = next((task for task in store.tasks(campaign, limit=LOOKED_AT) if task.gold is None), None)
    texts = texts_for(config.language, request.headers.get("accept-language", ""))
    context: dict[str, Any] = {
        "texts": texts, "name": config.name or campaign, "question": config.question, "item": item,
        "instructions": safe_html(config.instructions),
        "parts": [] if item is None else payload_parts(shown_payload(config.show, item.payload)),
        "choices": choices(config.shown_labels),
    }  # fmt: skip
    return page("worker/preview.html", media=True, own_policy=framed_policy(request), **context)
