"""The addresses of the workers' page.

=============================== ======================================================================
address                         does
=============================== ======================================================================
GET  /w/{token}                 a personal link: sets the cookie and redirects to the page
GET  /j/{token}?PROLIFIC_PID=   a platform's link, likewise; both accept ``completion=https://...``
                                to a site of the setting ``completion_hosts``
GET  /work/{campaign}           the page: an item, or the reason why there is none
POST /work/{campaign}           ``move`` (tell with ``answer``, release, undo) on ``lease``, then the page
POST /work/{campaign}/renew     extends ``lease``; replies with JSON
=============================== ======================================================================

A script that accepts JSON gets the changing part of the page in the same reply: one round trip per item.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import wraps
from typing import Any
from urllib.parse import parse_qsl

from fastapi import APIRouter, FastAPI, Request
from markupsafe import Markup
from starlette.responses import JSONResponse, RedirectResponse, Response

from nextlabel.campaign.needs import Need
from nextlabel.campaign.replies import Lease, NoTask
from nextlabel.errors import InputError, NextlabelError, TokenError
from nextlabel.service.app_state import app_state
from nextlabel.service.auth import Principal, campaign_id, campaign_id_of_lease
from nextlabel.service.limits import address_of
from nextlabel.service.links import INVALID_LINK, WorkerKey
from nextlabel.service.middleware import request_context
from nextlabel.service.problem_details import problem_type
from nextlabel.web.origin import check_origin
from nextlabel.web.render import page, render, replace_surrogates
from nextlabel.web.worker import session as sessions
from nextlabel.web.worker.actions import WorkerAction, WorkerView, act_and_ask, renewal
from nextlabel.web.worker.choices import SKIP_KEY, UNDO_KEY, choices
from nextlabel.web.worker.payload_view import payload_parts
from nextlabel.web.worker.session import WorkerSession
from nextlabel.web.worker.texts import DEFAULT, FINAL_REASONS, WorkerTexts, texts_for, worker_texts

router = APIRouter(include_in_schema=False)
MOVES = ("tell", "release", "undo")
#: Seconds that a page waits for a campaign's tables; after that it says so and tries again.
TABLES_WAIT_S = 3.0
MAX_FIELDS = 10
#: What MTurk sends instead of an assignment's id during a preview.
PREVIEW = "ASSIGNMENT_ID_NOT_AVAILABLE"

#: The section of the texts' errors for a status; all others are refusals.
ERRORS = {401: "no_token", 403: "other_site", 404: "not_found", 429: "too_many", 503: "unavailable"}

Handler = Callable[..., Awaitable[Response]]


def mount_worker(app: FastAPI) -> None:
    """Add the routes of the workers' page."""
    app.include_router(router)


def _with_error_pages(handler: Handler) -> Handler:
    """Show errors other than internal ones as a page, or as problem details to a script."""

    @wraps(handler)
    async def handle(*args: Any, **kwargs: Any) -> Response:
        request: Request = kwargs["request"]
        try:
            return await handler(*args, **kwargs)
        except Exception as error:
            status = problem_type(error).status
            if _wants_json(request) or status == 500:
                raise
            request_context(request).cause = error
            retry = getattr(error, "retry_after", 5 if status == 503 else None)
            headers = {} if retry is None else {"retry-after": str(retry)}
            return _error_page(request, _error_key(error, status), status, headers, error)

    return handle


@router.get("/w/{token}")
@_with_error_pages
async def own_link(token: str, request: Request) -> Response:
    """Enter by a personal link."""
    key = app_state(request).links.read_worker(token)
    if key is None:
        raise TokenError(*INVALID_LINK)
    return _enter(request, key)


@router.get("/j/{token}")
@_with_error_pages
async def platform_link(token: str, request: Request) -> Response:
    """Enter by a platform's link, whose parameters say who the worker is."""
    links = app_state(request).links
    if request.query_params.get("assignmentId") == PREVIEW and links.read_join(token) is not None:
        return _error_page(request, "preview")
    key = links.read_worker(links.joined(token, request.query_params))
    assert key is not None
    app_state(request).limits.check_join(address_of(request.scope), *key)
    return _enter(request, key, joined=True)


@router.get("/work/{campaign}")
@_with_error_pages
async def work(campaign: str, request: Request) -> Response:
    """Show the page."""
    session = _session(request, campaign)
    view = await _run_action(request, session, None)
    note = request.query_params.get("note", "")
    if f"notes.{note}" in worker_texts(DEFAULT):
        view = replace(view, note=note)
    return _page_or_panel(request, session, view)


@router.post("/work/{campaign}")
@_with_error_pages
async def act(campaign: str, request: Request) -> Response:
    """Carry out what a worker did."""
    check_origin(request)
    session = _session(request, campaign)
    action = _read_action(await _form(request))
    campaign_id_of_lease(action.lease, Principal(session.campaign, session.worker))
    if action.move != "tell":
        app_state(request).limits.check_move(session.campaign, session.worker)
    view = await _run_action(request, session, action)
    if _wants_json(request):
        response = _page_or_panel(request, session, view)
    else:
        response = RedirectResponse(session.address + (f"?note={view.note}" if view.note else ""), 303)
    if view.told is not None and action.move == "tell":
        app_state(request).metrics.count_tell(view.told.status)
        sessions.set_last_lease_cookie(request, response, session, view.told.lease)
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


def _enter(request: Request, key: WorkerKey, joined: bool = False) -> Response:
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
    return WorkerAction(move, form.get("lease", ""), int(answer) if answer.isdecimal() and len(answer) < 4 else -1)


async def _run_action(request: Request, session: WorkerSession, action: WorkerAction | None) -> WorkerView:
    """Run the command; while tables are computed, only this worker waits, and not for long."""
    state = app_state(request)
    last = sessions.last_lease(request)
    need = Need(session.worker, None if action is None else action.lease, asks=True)
    view = await state.command_queue.run(session.campaign, act_and_ask(session.worker, action, last), need)
    if view.pending is not None:
        done, _ = await asyncio.wait([asyncio.wrap_future(view.pending)], timeout=TABLES_WAIT_S)
        if done and done.pop().exception() is None:
            if view.told is not None and action is not None and action.move == "tell":
                last = view.told.lease
            told, note = view.told, view.note
            need = Need(session.worker, asks=True)
            view = await state.command_queue.run(session.campaign, act_and_ask(session.worker, None, last), need)
            view = replace(view, told=told, note=note)
    state.metrics.count_ask("leased" if isinstance(view.reply, Lease) else view.reply.reason)
    return view


def _page_or_panel(request: Request, session: WorkerSession, view: WorkerView) -> Response:
    retry = view.reply.retry_after if isinstance(view.reply, NoTask) else None
    headers = {} if retry is None else {"retry-after": str(int(retry))}
    context = _context(texts_for(view.language, _accepted(request)), session, view)
    if _wants_json(request):
        lease = view.reply.id if isinstance(view.reply, Lease) else None
        body = {
            "panel": render("worker/panel.html", **context),
            "title": replace_surrogates(context["title"]),
            "lease": lease,
        }
        return JSONResponse(body, headers=headers)
    return page("worker/page.html", headers=headers, media=True, **context)


def _context(texts: WorkerTexts, session: WorkerSession, view: WorkerView) -> dict[str, Any]:
    """The context of the templates."""
    reply = view.reply
    common: dict[str, Any] = {
        "texts": texts, "view": view, "session": session, "note": texts(f"notes.{view.note}") if view.note else "",
        "undo_key": UNDO_KEY, "mine": Markup('<strong id="mine">{}</strong>').format(view.labels_given),
        "last_answer": Markup('<strong dir="auto">{}</strong>').format(view.undoable.label if view.undoable else ""),
        "percent": min(100, int(100 * view.spent / view.budget)),
    }  # fmt: skip
    if isinstance(reply, NoTask):
        heading, final = texts(f"reasons.{reply.reason}.heading"), reply.reason in FINAL_REASONS
        leave = bool(session.completion) and (final or bool(view.labels_given))
        return {
            **common, "title": f"{heading} · {view.name}", "lease": None, "heading": heading, "final": final,
            "text": texts(f"reasons.{reply.reason}.text"), "leave": leave,
            "retry": reply.retry_after and int(reply.retry_after),
        }  # fmt: skip
    return {
        **common, "title": f"{view.question or texts('page.question')} · {view.name}"[:150], "lease": reply,
        "parts": payload_parts(reply.payload), "choices": choices(view.labels), "skip_key": SKIP_KEY,
        "left": max(view.seconds_left, 0.0), "left_text": texts.time_left(view.seconds_left), "retry": None,
    }  # fmt: skip


def _wants_json(request: Request) -> bool:
    return request.headers.get("accept", "").startswith("application/json")


def _accepted(request: Request) -> str:
    return request.headers.get("accept-language", "")


def _error_key(error: Exception, status: int) -> str:
    """The section of the texts' errors that says what happened."""
    if getattr(error, "message", "") == INVALID_LINK[0]:
        return "bad_link"
    return ERRORS.get(status, "refused")


def _error_page(
    request: Request,
    key: str,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    error: Exception | None = None,
) -> Response:
    """A page in the browser's language; what a form or link has wrong is said in English as well."""
    texts = texts_for(None, _accepted(request))
    detail = str(error) if key == "refused" and isinstance(error, NextlabelError) else ""
    return page(
        "worker/error.html", status, headers, texts=texts, heading=texts(f"errors.{key}.heading"),
        text=texts(f"errors.{key}.text"), detail=detail[:1].upper() + detail[1:],
    )  # fmt: skip
