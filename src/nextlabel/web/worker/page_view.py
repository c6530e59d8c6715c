"""The workers' page and the part of it that changes, as HTML or JSON, and the ways back to a platform.

How a worker who has no item goes back to the platform that sent them.

=========== ==========================================================================================================
way         for whom
=========== ==========================================================================================================
link        those whose link had ``completion=``; participants of Prolific with the campaign's completion code
code        everybody with the campaign's completion code, to copy it where the link does not work
assignment  those in a frame of Mechanical Turk: a form that hands the assignment back
nothing     those whom a platform pays by code or assignment, and who have not labelled anything on this visit
=========== ==========================================================================================================

A code and an assignment are worth money, so they are there for work alone: at least one label since the visit began.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import wraps
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from nextlabel.campaign.declaration import LONGEST_COMMENT
from nextlabel.campaign.replies import Lease, NoTask
from nextlabel.campaign.rows import CampaignRow
from nextlabel.campaign.settings import shown_payload
from nextlabel.errors import NextlabelError
from nextlabel.integrations import mturk
from nextlabel.integrations.platforms import platform_of
from nextlabel.service.app_state import app_state
from nextlabel.service.links import INVALID_LINK
from nextlabel.service.middleware import request_context
from nextlabel.service.prefix import prefixed
from nextlabel.service.problem_details import problem_type
from nextlabel.web.markdown import safe_html
from nextlabel.web.render import page, render, replace_surrogates
from nextlabel.web.worker.session import WorkerSession, completion_of
from nextlabel.web.worker.steps import WorkerView, version_of
from nextlabel.web.worker.task_view import INSTRUCTIONS_KEY, SKIP_KEY, UNDO_KEY, choices, payload_parts
from nextlabel.web.worker.texts import FINAL_REASONS, WorkerTexts, texts_for

#: The section of the texts' errors for a status; all others are refusals.
ERRORS = {401: "no_token", 403: "other_site", 404: "not_found", 410: "deleted", 429: "too_many", 503: "unavailable"}
Handler = Callable[..., Awaitable[Response]]


def wants_json(request: Request) -> bool:
    """Whether the page's script asks."""
    return request.headers.get("accept", "").startswith("application/json")


def accepted_languages(request: Request) -> str:
    """What the browser would like to read."""
    return request.headers.get("accept-language", "")


def page_or_panel(request: Request, session: WorkerSession, view: WorkerView, read: str) -> Response:
    """The page, or its changing part with what the script needs to know about it.

    ``read`` is the version of the instructions that the worker had read before.
    """
    retry = view.reply.retry_after if isinstance(view.reply, NoTask) else None
    headers = {} if retry is None else {"retry-after": str(int(retry))}
    texts = texts_for(view.language, accepted_languages(request))
    context = _context(texts, session, view, read)
    if wants_json(request):
        lease = view.reply.id if isinstance(view.reply, Lease) else None
        body = {
            "panel": prefixed(render("worker/panel.html", **context)),
            "title": replace_surrogates(context["title"]),
            "lease": lease,
            "language": texts.tag,
            "address": session.address,
        }
        return JSONResponse(body, headers=headers)
    policy = framed_policy(request) if session.assignment is not None else None
    return page("worker/page.html", headers=headers, media=True, own_policy=policy, **context)


def _context(texts: WorkerTexts, session: WorkerSession, view: WorkerView, read: str) -> dict[str, Any]:
    """The context of the templates."""
    reply = view.reply
    common: dict[str, Any] = {
        "texts": texts, "view": view, "session": session, "note": texts(f"notes.{view.note}") if view.note else "",
        "undo_key": UNDO_KEY, "mine": Markup('<strong id="mine">{}</strong>').format(view.labels_given),
        "last_answer": Markup('<strong dir="auto">{}</strong>').format(view.undoable.label if view.undoable else ""),
        "percent": min(100, int(100 * view.spent / view.budget)),
        "instructions": safe_html(view.instructions), "instructions_key": INSTRUCTIONS_KEY, "retry": None,
        "code": Markup('<strong class="code" dir="ltr">{}</strong>').format(view.completion_code),
    }  # fmt: skip
    if reply is None:
        heading = texts("instructions.changed" if read else "instructions.heading")
        begin = texts("instructions.go_on" if read else "instructions.begin")
        return {
            **common, "title": f"{heading} · {view.name}", "lease": None, "reading": True, "heading": heading,
            "begin": begin, "version": version_of(view.instructions),
        }  # fmt: skip
    if isinstance(reply, NoTask):
        heading, final = texts(f"reasons.{reply.reason}.heading"), reply.reason in FINAL_REASONS
        return {
            **common, "title": f"{heading} · {view.name}", "lease": None, "reading": False, "heading": heading,
            "final": final,
            "text": texts(f"reasons.{reply.reason}.text"), "way": way_out(session, view, final),
            "retry": reply.retry_after and int(reply.retry_after),
        }  # fmt: skip
    return {
        **common, "title": f"{view.question or texts('page.question')} · {view.name}"[:150], "lease": reply,
        "parts": payload_parts(reply.payload), "choices": view.choices, "answers": view.answers, "skip_key": SKIP_KEY,
        "longest_comment": LONGEST_COMMENT,
        "left": max(view.seconds_left, 0.0), "left_text": texts.time_left(view.seconds_left),
    }  # fmt: skip


def item_page(template: str, request: Request, row: CampaignRow, item: Any, **more: Any) -> Response:
    """An item that nobody holds, as workers are shown it, with the answers that there are."""
    config = row.config
    return page(
        f"worker/{template}.html", media=True, texts=texts_for(config.language, accepted_languages(request)), item=item,
        name=config.name or row.id, question=config.question, choices=choices(config), answers=config.answer_type,
        parts=[] if item is None else payload_parts(shown_payload(config.show, item.payload)), **more,
    )  # fmt: skip


class WayOut(NamedTuple):
    """What a worker without an item is shown; ``nothing`` if they may not finish because there is no work of theirs."""

    link: str = ""
    site: str = ""
    code: str = ""
    assignment: mturk.Assignment | None = None
    nothing: bool = False

    def __bool__(self) -> bool:
        return bool(self.link or self.code or self.assignment)


def way_out(session: WorkerSession, view: WorkerView, final: bool) -> WayOut:
    """The way of a worker; ``final`` if no waiting changes that there is no item."""
    given = view.labels_given or 0
    earned = given > session.before
    if session.assignment is not None:
        return WayOut(assignment=session.assignment) if earned else WayOut(nothing=final)
    if session.completion:
        known = final or given > 0
        return WayOut(session.completion, urlsplit(session.completion).hostname or "") if known else WayOut()
    if not view.completion_code or session.joined is None:
        return WayOut()
    if not earned:
        return WayOut(nothing=final)
    platform = platform_of(session.worker)
    address = "" if platform is None else platform.completion_address(view.completion_code)
    return WayOut(address, urlsplit(address).hostname or "", view.completion_code)


def with_error_pages(handler: Handler) -> Handler:
    """Show errors other than internal ones as a page, or as problem details to a script."""

    @wraps(handler)
    async def handle(*args: Any, **kwargs: Any) -> Response:
        request: Request = kwargs["request"]
        try:
            return await handler(*args, **kwargs)
        except Exception as error:
            status = problem_type(error).status
            if wants_json(request) or status == 500:
                raise
            request_context(request).cause = error
            retry = getattr(error, "retry_after", 5 if status == 503 else None)
            headers = {} if retry is None else {"retry-after": str(retry)}
            return error_page(request, _error_key(error, status), status, headers, error)

    return handle


def framed_policy(request: Request) -> dict[str, str]:
    """What a page in a frame may do that others may not: be framed by these sites, and send a form to them."""
    settings = app_state(request).settings
    framing = " ".join(settings.frame_origins) or "'none'"
    # Browsers hold redirects after a form to the same rule, and the sites of a platform redirect to one another.
    sites = dict.fromkeys(("'self'", *settings.submit_origins, *settings.frame_origins))
    return {"frame-ancestors": framing, "form-action": " ".join(sites)}


def _error_key(error: Exception, status: int) -> str:
    """The section of the texts' errors that says what happened."""
    if getattr(error, "message", "") == INVALID_LINK[0]:
        return "bad_link"
    return ERRORS.get(status, "refused")


def error_page(
    request: Request,
    key: str,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    error: Exception | None = None,
) -> Response:
    """A page in the browser's language; what a form or link has wrong is said in English as well."""
    texts = texts_for(None, accepted_languages(request))
    detail = str(error) if key == "refused" and isinstance(error, NextlabelError) else ""
    policy = framed_policy(request) if request_context(request).framed else None
    return page(
        "worker/error.html", status, headers, own_policy=policy, texts=texts, heading=texts(f"errors.{key}.heading"),
        text=texts(f"errors.{key}.text"), detail=detail[:1].upper() + detail[1:],
        completion=completion_of(request) if key == "deleted" else None,
    )  # fmt: skip
