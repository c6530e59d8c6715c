"""The audit of a campaign: a requester draws items, an expert answers them one by one, without seeing the results."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from nextlabel.campaign.settings import shown_payload
from nextlabel.errors import InputError, NotAllowedError
from nextlabel.service.app_state import Service, app_state, link_base, link_warning
from nextlabel.service.auth import CampaignId
from nextlabel.service.links import link_url, revoke_links
from nextlabel.web.dashboard.access import Form, GuardedRoute, Told, campaign_page, rights_of
from nextlabel.web.dashboard.routes.campaign import NO_ACTION, fields_of
from nextlabel.web.dashboard.setting_form import read_whole

router = APIRouter(route_class=GuardedRoute, include_in_schema=False)


@router.get("/campaigns/{campaign}/audit")
def audit_page(campaign: CampaignId, request: Request, problem: Told = "") -> Response:
    """How far the audit has got, and the next item."""
    state, rights, base = app_state(request), rights_of(request), link_base(request)
    service = state.campaign_service
    row = service.store.row(campaign)
    promised = bool(row.rules.guarantee)
    items = (service.guarantees if promised else service.audits).items(campaign)
    token = state.links.audit_token(campaign, 0 if promised else len(items)) if rights.changes and items else ""
    following = next((one for one in items if one.label is None), None)
    return campaign_page(
        "audit", request, row, problem=problem,
        standing=service.guarantees.status(campaign) if promised else None,
        link=link_url(base, token) if token else "", warning=link_warning(base),
        drawn=len(items), answered=sum(one.label is not None for one in items), item=following,
        fields=[] if following is None else fields_of(shown_payload(row.config.show, following.payload)),
    )  # fmt: skip


@router.post("/campaigns/{campaign}/audit")
def change_audit(campaign: CampaignId, request: Request, form: Form, service: Service) -> Response:
    """Draw items, or take an answer."""
    request.state.again = lambda problem: audit_page(campaign, request, problem)
    if ("items" in form or "revoke" in form) and not rights_of(request).changes:
        raise NotAllowedError("only a requester draws items.", "Sign in with the token of a requester.")
    if "items" in form:
        service.audits.draw(campaign, read_whole(str(form["items"]), "the number of items"))
    elif "revoke" in form:
        revoke_links(service.store, campaign, [], join=False, audit=True)
        app_state(request).access.read()
    elif "task" in form:
        asked = service.guarantees if service.store.row(campaign).rules.guarantee else service.audits
        asked.answer(campaign, {str(form["task"]): str(form.get("label", ""))})
    else:
        raise InputError(*NO_ACTION)
    return RedirectResponse(f"/campaigns/{campaign}/audit", 303)
