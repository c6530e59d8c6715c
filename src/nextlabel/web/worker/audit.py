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

from typing import Annotated
from urllib.parse import quote

from anyio import to_thread
from fastapi import APIRouter, Depends, Request
from markupsafe import Markup
from starlette.responses import RedirectResponse, Response

from nextlabel.campaign.replies import AuditItem
from nextlabel.errors import NotFoundError, TokenError
from nextlabel.service.app_state import Service, app_state
from nextlabel.service.auth import campaign_id
from nextlabel.service.links import INVALID_LINK, AuditKey
from nextlabel.web.worker.page_view import WorkerRoute, item_page
from nextlabel.web.worker.session import MAX_AGE_S
from nextlabel.web.worker.steps import read_form

router = APIRouter(route_class=WorkerRoute, include_in_schema=False)
COOKIE = "nl_audit"


@router.get("/a/{token}")
def audit_link(token: str, request: Request) -> Response:
    """Enter by an expert's link."""
    key, secure = app_state(request).links.read_audit(token), bool(app_state(request).settings.cookie_secure)
    if key is None:
        raise TokenError(*INVALID_LINK)
    address = f"/audit/{key.campaign}"
    response = RedirectResponse(address, 303)
    response.set_cookie(COOKIE, token, max_age=MAX_AGE_S, path=address, secure=secure, httponly=True, samesite="lax")
    return response


def _opened(campaign: str, request: Request) -> AuditKey:
    """What the expert who sent a request may answer."""
    key = app_state(request).links.read_audit(request.cookies.get(COOKIE, ""))
    if key is None or key.campaign != campaign_id(campaign):
        raise TokenError(*INVALID_LINK)
    return key


Opened = Annotated[AuditKey, Depends(_opened)]


def _items(service: Service, key: AuditKey) -> list[AuditItem]:
    """The items of the link."""
    return service[key.campaign].audit_items()[: key.end] if key.end else service[key.campaign].guarantee_items()


@router.get("/audit/{campaign}")
def audit_page(key: Opened, request: Request, service: Service, item: str = "", last: str = "") -> Response:
    """Show the next item, or one that was answered."""
    row, items = service.store.row(key.campaign), _items(service, key)
    named = {one.task: one for one in items}
    shown = named.get(item) or next((one for one in items if one.label is None), None)
    before, more = named.get(last), {"before": ""}
    if before is not None and before.label is not None and not item:
        said = row.config.shown(row.config.answer_type.number_of(before.label))
        answer = Markup('<strong dir="auto">{}</strong>').format(said)
        more = {"before": quote(before.task, safe=""), "last_answer": answer}
    return item_page(
        "audit", request, row, shown, answered=sum(one.label is not None for one in items), drawn=len(items),
        number=0 if shown is None else items.index(shown) + 1, address=f"/audit/{key.campaign}", **more,
    )  # fmt: skip


@router.post("/audit/{campaign}")
async def answer_item(key: Opened, request: Request, service: Service) -> Response:
    """Take an answer."""
    form = await read_form(request)
    task = form.get("task", "")

    def answer() -> None:
        answers = service.store.row(key.campaign).config.answer_type
        label = answers.name_of(answers.sent(form["answer"]))
        if task not in {one.task for one in _items(service, key)}:
            raise NotFoundError("this item is not one of the link's.", "Open the link that you were sent again.")
        campaign = service[key.campaign]
        (campaign.answer_audit if key.end else campaign.answer_guarantee)({task: label})

    await to_thread.run_sync(answer)
    return RedirectResponse(f"/audit/{key.campaign}?last={quote(task, safe='')}", 303)
