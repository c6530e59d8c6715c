"""The page of an expert who answers the items of an audit, by a signed link and without a token.

============================= ========================================================================
address                       does
============================= ========================================================================
GET  /a/{token}               the link: sets a cookie and redirects to the page
GET  /audit/{campaign}        the next item of the draw, ``?item=`` one that was answered before
POST /audit/{campaign}        ``answer`` of the item ``task``, then the page
============================= ========================================================================

The link is for the items drawn when it was made, and shows what workers are shown of them: neither labels nor what the
campaign believes. It ends when it is revoked, and answers of other items are refused.
"""

from __future__ import annotations

from urllib.parse import quote

from anyio import to_thread
from fastapi import APIRouter, Request
from markupsafe import Markup
from starlette.responses import RedirectResponse, Response

from nextlabel.campaign.replies import AuditItem
from nextlabel.errors import NotFoundError, TokenError
from nextlabel.service.app_state import app_state
from nextlabel.service.auth import campaign_id
from nextlabel.service.links import INVALID_LINK, AuditKey
from nextlabel.web.render import check_origin
from nextlabel.web.worker.page_view import item_page, with_error_pages
from nextlabel.web.worker.session import MAX_AGE_S
from nextlabel.web.worker.steps import read_form

router = APIRouter(include_in_schema=False)
COOKIE = "nl_audit"


@router.get("/a/{token}")
@with_error_pages
async def audit_link(token: str, request: Request) -> Response:
    """Enter by an expert's link."""
    key = app_state(request).links.read_audit(token)
    if key is None:
        raise TokenError(*INVALID_LINK)
    response = RedirectResponse(_address(key.campaign), 303)
    secure = bool(app_state(request).settings.cookie_secure)
    response.set_cookie(
        COOKIE, token, max_age=MAX_AGE_S, path=_address(key.campaign), secure=secure, httponly=True, samesite="lax"
    )
    return response


@router.get("/audit/{campaign}")
@with_error_pages
async def audit_page(campaign: str, request: Request) -> Response:
    """Show the next item, or one that was answered."""
    key = _key(request, campaign_id(campaign))
    asked, last = request.query_params.get("item"), request.query_params.get("last")
    return await to_thread.run_sync(_page, request, key, asked, last)


@router.post("/audit/{campaign}")
@with_error_pages
async def answer_item(campaign: str, request: Request) -> Response:
    """Take an answer."""
    check_origin(request)
    key = _key(request, campaign_id(campaign))
    form = await read_form(request)
    await to_thread.run_sync(_answer, request, key, form.get("task", ""), form.get("answer", ""))
    return RedirectResponse(f"{_address(key.campaign)}?last={quote(form['task'], safe='')}", 303)


def _address(campaign: str) -> str:
    return f"/audit/{campaign}"


def _key(request: Request, campaign: str) -> AuditKey:
    key = app_state(request).links.read_audit(request.cookies.get(COOKIE, ""))
    if key is None or key.campaign != campaign:
        raise TokenError(*INVALID_LINK)
    return key


def _items(request: Request, key: AuditKey) -> list[AuditItem]:
    """The items of the link."""
    service = app_state(request).campaign_service
    return service.audits.items(key.campaign)[: key.end] if key.end else service.guarantees.items(key.campaign)


def _answer(request: Request, key: AuditKey, task: str, answer: str) -> None:
    service = app_state(request).campaign_service
    answers = service.store.row(key.campaign).config.answer_type
    label = answers.name_of(answers.sent(answer))
    if task not in {one.task for one in _items(request, key)}:
        raise NotFoundError("this item is not one of the link's.", "Open the link that you were sent again.")
    asked = service.audits if key.end else service.guarantees
    asked.answer(key.campaign, {task: label})


def _page(request: Request, key: AuditKey, asked: str | None, last: str | None) -> Response:
    row, items = app_state(request).campaign_service.store.row(key.campaign), _items(request, key)
    named = {one.task: one for one in items}
    item = named.get(asked or "") or next((one for one in items if one.label is None), None)
    before, more = named.get(last or ""), {"before": ""}
    if before is not None and before.label is not None and asked is None:
        said = row.config.shown(row.config.answer_type.number_of(before.label))
        shown = Markup('<strong dir="auto">{}</strong>').format(said)
        more = {"before": quote(before.task, safe=""), "last_answer": shown}
    return item_page(
        "audit", request, row, item, answered=sum(one.label is not None for one in items), drawn=len(items),
        number=0 if item is None else items.index(item) + 1, address=_address(key.campaign), **more,
    )  # fmt: skip
