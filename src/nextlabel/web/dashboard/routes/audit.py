"""The audit of a campaign: a requester draws items, an expert answers them one by one, without seeing the results."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from nextlabel.campaign.settings import shown_payload
from nextlabel.errors import InputError, NextlabelError, NotAllowedError, NotFoundError
from nextlabel.service.app_state import link_base, link_warning
from nextlabel.service.auth import CampaignId
from nextlabel.service.links import link_url, revoke_links
from nextlabel.web.dashboard.access import Form, GuardedRoute, campaign_page, rights_of
from nextlabel.web.dashboard.formatting import sentence
from nextlabel.web.dashboard.routes.campaign import fields_of
from nextlabel.web.dashboard.setting_form import read_whole
from nextlabel.web.dashboard.state import dashboard_state

router = APIRouter(route_class=GuardedRoute, include_in_schema=False)


@router.get("/campaigns/{campaign}/audit")
def audit_page(campaign: CampaignId, request: Request) -> Response:
    """How far the audit has got, and the next item."""
    return _page(request, campaign)


@router.post("/campaigns/{campaign}/audit")
def change_audit(campaign: CampaignId, request: Request, form: Form) -> Response:
    """Draw items, or take an answer."""
    id, service = campaign, dashboard_state(request).app.campaign_service
    asked = service.guarantees if service.store.row(id).rules.guarantee else service.audits
    try:
        if ("items" in form or "revoke" in form) and not rights_of(request).changes:
            raise NotAllowedError("only a requester draws items.", "Sign in with the token of a requester.")
        if "items" in form:
            service.audits.draw(id, read_whole(str(form["items"]), "the number of items"))
        elif "revoke" in form:
            revoke_links(service.store, id, [], join=False, audit=True)
            dashboard_state(request).app.access.read()
        elif "task" in form:
            asked.answer(id, {str(form["task"]): str(form.get("label", ""))})
        else:
            raise InputError("the form does not say what to do.", "Use one of its buttons.")
    except (NotFoundError, NotAllowedError):
        raise
    except NextlabelError as error:
        return _page(request, id, f"{sentence(error.message)} {error.hint}")
    return RedirectResponse(f"/campaigns/{id}/audit", 303)


def _page(request: Request, id: str, problem: str = "") -> Response:
    dashboard = dashboard_state(request)
    row, service = dashboard.store.row(id), dashboard.app.campaign_service
    promised = bool(row.rules.guarantee)
    items = (service.guarantees if promised else service.audits).items(id)
    rights, base = rights_of(request), link_base(request)
    token = dashboard.app.links.audit_token(id, 0 if promised else len(items)) if rights.changes and items else ""
    following = next((one for one in items if one.label is None), None)
    return campaign_page(
        "audit", request, row, problem=problem,
        standing=service.guarantees.status(id) if promised else None,
        link=link_url(base, token) if token else "", warning=link_warning(base),
        drawn=len(items), answered=sum(one.label is not None for one in items), item=following,
        fields=[] if following is None else fields_of(shown_payload(row.config.show, following.payload)),
    )  # fmt: skip
