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

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from nextlabel.campaign.declaration import LONGEST_COMMENT
from nextlabel.campaign.replies import NoTask
from nextlabel.campaign.rows import CampaignRow
from nextlabel.campaign.settings import CampaignSettings, shown_payload
from nextlabel.errors import InputError, NextlabelError
from nextlabel.integrations import mturk
from nextlabel.integrations.platforms import platform_of
from nextlabel.service.app_state import app_state
from nextlabel.service.links import INVALID_LINK
from nextlabel.service.middleware import prefixed, request_context
from nextlabel.web.markdown import safe_html
from nextlabel.web.render import PageRoute, page, render, replace_surrogates, wants_json
from nextlabel.web.worker.session import COMPLETION, COOKIE_KIND, SESSION_COOKIE, WorkerSession, checked_completion
from nextlabel.web.worker.steps import WorkerView, version_of
from nextlabel.web.worker.task_view import INSTRUCTIONS_KEY, SKIP_KEY, UNDO_KEY, choices, payload_parts
from nextlabel.web.worker.texts import FINAL_REASONS, WorkerTexts, texts_for

#: The section of the texts' errors for a status; all others are refusals.
ERRORS = {401: "no_token", 403: "other_site", 404: "not_found", 410: "deleted", 429: "too_many", 503: "unavailable"}


class WorkerRoute(PageRoute):
    """A route whose errors are pages in the reader's language."""

    async def error_page(self, request: Request, error: Exception, status: int, headers: dict[str, str]) -> Response:
        """The section of the texts' errors that says what happened."""
        bad_link = getattr(error, "message", "") == INVALID_LINK[0]
        return error_page(request, "bad_link" if bad_link else ERRORS.get(status, "refused"), status, headers, error)


def texts_of(request: Request, setting: str | None = None) -> WorkerTexts:
    """The texts in the campaign's language, or in the browser's."""
    return texts_for(setting, request.headers.get("accept-language", ""))


def page_or_panel(request: Request, session: WorkerSession, view: WorkerView, read: str) -> Response:
    """The page, or its changing part with what the script needs to know about it.

    ``read`` is the version of the instructions that the worker had read before.
    """
    texts, retry = texts_of(request, view.config.language), getattr(view.reply, "retry_after", None)
    headers = {} if retry is None else {"retry-after": str(int(retry))}
    context = _context(texts, session, view, read)
    if not wants_json(request):
        policy = framed_policy(request) if session.assignment is not None else None
        return page("worker/page.html", headers=headers, media=True, own_policy=policy, **context)
    body = {
        "panel": prefixed(render("worker/panel.html", **context)),
        "title": replace_surrogates(context["title"]),
        "lease": None if context["lease"] is None else context["lease"].id,
        "language": texts.tag,
        "address": session.address,
    }
    return JSONResponse(body, headers=headers)


def _asked(config: CampaignSettings, id: str, payload: Any) -> dict[str, Any]:
    """The question, the item and the answers that there are."""
    return {
        "name": config.name or id, "question": config.question, "answers": config.answer_type,
        "choices": choices(config), "parts": [] if payload is None else payload_parts(payload),
    }  # fmt: skip


def _context(texts: WorkerTexts, session: WorkerSession, view: WorkerView, read: str) -> dict[str, Any]:
    """The context of the templates."""
    config, reply = view.config, view.reply
    name = config.name or view.id
    shown: dict[str, Any] = {
        "texts": texts, "view": view, "session": session, "note": texts(f"notes.{view.note}") if view.note else "",
        "name": name, "undo_key": UNDO_KEY, "mine": Markup('<strong id="mine">{}</strong>').format(view.labels_given),
        "last_answer": Markup('<strong dir="auto">{}</strong>').format(view.undoable[1] if view.undoable else ""),
        "percent": min(100, int(100 * view.spent / view.budget)), "lease": None, "reading": reply is None,
        "instructions": safe_html(config.instructions), "instructions_key": INSTRUCTIONS_KEY, "retry": None,
        "code": Markup('<strong class="code" dir="ltr">{}</strong>').format(config.completion_code),
    }  # fmt: skip
    if reply is None:
        shown |= {
            "heading": texts("instructions.changed" if read else "instructions.heading"),
            "begin": texts("instructions.go_on" if read else "instructions.begin"),
            "version": version_of(config.instructions),
        }
    elif isinstance(reply, NoTask):
        final = reply.reason in FINAL_REASONS
        shown |= {
            "heading": texts(f"reasons.{reply.reason}.heading"), "text": texts(f"reasons.{reply.reason}.text"),
            "final": final, "way": way_out(session, view, final), "retry": reply.retry_after and int(reply.retry_after),
        }  # fmt: skip
    else:
        shown |= _asked(config, view.id, reply.payload) | {
            "lease": reply, "skip_key": SKIP_KEY, "longest_comment": LONGEST_COMMENT,
            "share": f"{config.pass_mark:.0%}", "left": max(view.seconds_left, 0.0),
            "left_text": texts.time_left(view.seconds_left),
        }  # fmt: skip
        return shown | {"title": f"{config.question or texts('page.question')} · {name}"[:150]}
    return shown | {"title": f"{shown['heading']} · {name}"}


def item_page(template: str, request: Request, row: CampaignRow, item: Any, **more: Any) -> Response:
    """An item that nobody holds, as workers are shown it, with the answers that there are."""
    payload = None if item is None else shown_payload(row.config.show, item.payload)
    texts, asked = texts_of(request, row.config.language), _asked(row.config, row.id, payload)
    return page(f"worker/{template}.html", media=True, texts=texts, item=item, **asked, **more)


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
    code, platform = view.config.completion_code, platform_of(session.worker)
    if not code or session.joined is None:
        return WayOut()
    if not earned:
        return WayOut(nothing=final)
    address = "" if platform is None else platform.completion_address(code)
    return WayOut(address, urlsplit(address).hostname or "", code)


def _completion_of(request: Request) -> WayOut:
    """Where somebody whose campaign was deleted finishes on their platform, by their session or by their link."""
    state, cookie = app_state(request), request.cookies.get(SESSION_COOKIE, "")
    session = WorkerSession.of(state.links, COOKIE_KIND, cookie)
    address = "" if session is None else session.completion
    with suppress(InputError):
        address = checked_completion(request.query_params.get(COMPLETION, ""), state.settings) or address
    return WayOut(address, urlsplit(address).hostname or "")


def framed_policy(request: Request) -> dict[str, str]:
    """What a page in a frame may do that others may not: be framed by these sites, and send a form to them."""
    settings = app_state(request).settings
    framing = " ".join(settings.frame_origins) or "'none'"
    # Browsers hold redirects after a form to the same rule, and the sites of a platform redirect to one another.
    sites = dict.fromkeys(("'self'", *settings.submit_origins, *settings.frame_origins))
    return {"frame-ancestors": framing, "form-action": " ".join(sites)}


def error_page(
    request: Request,
    key: str,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    error: Exception | None = None,
) -> Response:
    """A page in the browser's language; what a form or link has wrong is said in English as well."""
    texts, detail = texts_of(request), str(error) if key == "refused" and isinstance(error, NextlabelError) else ""
    policy = framed_policy(request) if request_context(request).framed else None
    return page(
        "worker/error.html", status, headers, own_policy=policy, texts=texts, heading=texts(f"errors.{key}.heading"),
        text=texts(f"errors.{key}.text"), detail=detail[:1].upper() + detail[1:],
        completion=_completion_of(request) if key == "deleted" else None,
    )  # fmt: skip
