"""The worker's addresses.

=============================== ======================================================================
address                         is
=============================== ======================================================================
GET  /w/{token}                 a worker's own link: sets the cookie and goes to the page
GET  /j/{token}?PROLIFIC_PID=   a platform's link, likewise; both take ``completion=https://...``
GET  /work/{campaign}           the page: an item, or why there is none
POST /work/{campaign}           ``move`` tell (with ``answer``), release or undo, and ``lease``: back to the page
POST /work/{campaign}/renew     ``lease``: more time, as JSON
=============================== ======================================================================

A script that wants JSON gets the page's changing part in the same reply: one round trip an item.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import wraps
from typing import Any
from urllib.parse import parse_qsl

from fastapi import APIRouter, FastAPI, Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from nextlabel.campaign.replies import Lease, NoTask
from nextlabel.errors import InputError, TokenError
from nextlabel.service.app_state import app_state
from nextlabel.service.auth import Principal
from nextlabel.service.links import WorkerKey
from nextlabel.service.middleware import request_context
from nextlabel.service.path_ids import campaign_id, campaign_id_of_lease
from nextlabel.service.problem_details import problem_type
from nextlabel.web.origin import check_origin
from nextlabel.web.render import page, rendered, replace_surrogates
from nextlabel.web.worker import session as sessions
from nextlabel.web.worker.actions import WorkerAction, WorkerView, renewed, step
from nextlabel.web.worker.payload_view import parts_of
from nextlabel.web.worker.session import Session
from nextlabel.web.worker.texts import NOTES, REASONS, SKIP_KEY, UNDO_KEY, choices, time_left

router = APIRouter(include_in_schema=False)
MOVES = ("tell", "release", "undo")
#: Seconds that a page waits for the tables of a campaign; after that it says so and tries again.
TABLES_S = 3.0
MOST_FIELDS = 10
#: What MTurk sends in place of an assignment while somebody only looks.
PREVIEW = "ASSIGNMENT_ID_NOT_AVAILABLE"

Handler = Callable[..., Awaitable[Response]]


def mount_worker(app: FastAPI) -> None:
    """Add the worker's routes."""
    app.include_router(router)


def _for_people(handler: Handler) -> Handler:
    """Have errors that are not the service's fault told on a page, or as problem details to the script."""

    @wraps(handler)
    async def told(*args: Any, **kwargs: Any) -> Response:
        request: Request = kwargs["request"]
        try:
            return await handler(*args, **kwargs)
        except Exception as error:
            status = problem_type(error).status
            if _wants_json(request) or status == 500:
                raise
            message, hint = getattr(error, "message", ""), getattr(error, "hint", "")
            if status == 503:
                message, hint = "the service cannot reach its database.", "Try again in a moment."
            headers = {"retry-after": "5"} if status == 503 else {}
            return page("worker/error.html", status, headers, message=_sentence(message), hint=hint)

    return told


@router.get("/w/{token}")
@_for_people
async def own_link(token: str, request: Request) -> Response:
    """A worker's own link."""
    key = app_state(request).links.read_worker(token)
    if key is None:
        raise TokenError(
            "this link is not one of this service.", "Open it again as it was sent to you, or ask for a new one."
        )
    return _enter(request, key)


@router.get("/j/{token}")
@_for_people
async def platform_link(token: str, request: Request) -> Response:
    """A platform's link, which says in its parameters who comes."""
    links = app_state(request).links
    if request.query_params.get("assignmentId") == PREVIEW and links.read_join(token) is not None:
        return page(
            "worker/error.html", message="This is a preview.", hint="Accept the assignment first, then open it again."
        )
    key = links.read_worker(links.joined(token, request.query_params))
    assert key is not None
    return _enter(request, key)


@router.get("/work/{campaign}")
@_for_people
async def work(campaign: str, request: Request) -> Response:
    """The page."""
    session = _session(request, campaign)
    view = await _stepped(request, session, None)
    note = request.query_params.get("note", "")
    if note in NOTES:
        view = replace(view, note=note)
    return _shown(request, session, view)


@router.post("/work/{campaign}")
@_for_people
async def act(campaign: str, request: Request) -> Response:
    """Something that a worker did."""
    check_origin(request)
    session = _session(request, campaign)
    deed = _deed(await _form(request))
    campaign_id_of_lease(deed.lease, Principal(session.campaign, session.worker))
    view = await _stepped(request, session, deed)
    if _wants_json(request):
        response = _shown(request, session, view)
    else:
        response = RedirectResponse(session.address + (f"?note={view.note}" if view.note else ""), 303)
    if view.told is not None and deed.move == "tell":
        app_state(request).metrics.count_tell(view.told.status)
        sessions.remember_last(request, response, session, view.told.lease)
    return response


@router.post("/work/{campaign}/renew")
async def renew(campaign: str, request: Request) -> Response:
    """More time for the item that is shown."""
    check_origin(request)
    session = _session(request, campaign)
    lease = (await _form(request)).get("lease", "")
    campaign_id_of_lease(lease, Principal(session.campaign, session.worker))
    left = await app_state(request).command_queue.run(campaign, renewed(session.worker, lease))
    return JSONResponse({"left": left})


def _enter(request: Request, key: WorkerKey) -> Response:
    session = sessions.opened(key, request.query_params)
    response = RedirectResponse(session.address, 303)
    sessions.remember(request, response, session)
    return response


def _session(request: Request, campaign: str) -> Session:
    session = sessions.session_of(request, campaign_id(campaign))
    request_context(request).worker = session.worker
    return session


async def _form(request: Request) -> dict[str, str]:
    try:
        return dict(parse_qsl((await request.body()).decode(), keep_blank_values=True, max_num_fields=MOST_FIELDS))
    except ValueError:
        raise InputError("the form cannot be read.", "Go back to the page and try again.") from None


def _deed(form: dict[str, str]) -> WorkerAction:
    answer, move = form.get("answer", ""), form.get("move", "tell")
    if move not in MOVES:
        raise InputError("the form does not say what to do.", "Go back to the page and use its buttons.")
    return WorkerAction(move, form.get("lease", ""), int(answer) if answer.isdecimal() and len(answer) < 4 else -1)


async def _stepped(request: Request, session: Session, deed: WorkerAction | None) -> WorkerView:
    """The command; while tables are worked out only this worker waits, and not for long."""
    services = app_state(request)
    last = sessions.last_of(request)
    view = await services.command_queue.run(session.campaign, step(session.worker, deed, last))
    if view.pending is not None:
        done, _ = await asyncio.wait([asyncio.wrap_future(view.pending)], timeout=TABLES_S)
        if done and done.pop().exception() is None:
            if view.told is not None and deed is not None and deed.move == "tell":
                last = view.told.lease
            told, note = view.told, view.note
            view = await services.command_queue.run(session.campaign, step(session.worker, None, last))
            view = replace(view, told=told, note=note)
    services.metrics.count_ask("leased" if isinstance(view.reply, Lease) else view.reply.reason)
    return view


def _shown(request: Request, session: Session, view: WorkerView) -> Response:
    retry = view.reply.retry_after if isinstance(view.reply, NoTask) else None
    headers = {} if retry is None else {"retry-after": str(int(retry))}
    context = _context(session, view)
    if _wants_json(request):
        lease = view.reply.id if isinstance(view.reply, Lease) else None
        body = {
            "panel": rendered("worker/panel.html", **context),
            "title": replace_surrogates(context["title"]),
            "lease": lease,
        }
        return JSONResponse(body, headers=headers)
    return page("worker/page.html", headers=headers, media=True, **context)


def _context(session: Session, view: WorkerView) -> dict[str, Any]:
    """What the templates need."""
    reply = view.reply
    common: dict[str, Any] = {
        "view": view, "session": session, "note": NOTES.get(view.note or ""), "undo_key": UNDO_KEY,
        "percent": min(100, int(100 * view.spent / view.budget)),
    }  # fmt: skip
    if isinstance(reply, NoTask):
        reason = REASONS[reply.reason]
        leave = bool(session.completion) and (reason.final or bool(view.labels_given))
        return {
            **common, "title": f"{reason.heading} · {view.name}", "lease": None, "reason": reason,
            "retry": reply.retry_after and int(reply.retry_after), "leave": leave,
        }  # fmt: skip
    return {
        **common, "title": f"{view.question or 'Which label fits?'} · {view.name}"[:150], "lease": reply,
        "parts": parts_of(reply.payload), "choices": choices(view.labels), "skip_key": SKIP_KEY,
        "left": max(view.seconds_left, 0.0), "left_words": time_left(view.seconds_left), "retry": None,
    }  # fmt: skip


def _wants_json(request: Request) -> bool:
    return request.headers.get("accept", "").startswith("application/json")


def _sentence(message: str) -> str:
    return message[:1].upper() + message[1:]
