"""An audit: items drawn at random, and what an expert finds of them; auditors may answer."""

from __future__ import annotations

from typing import Any

from anyio import to_thread
from fastapi import APIRouter, Request

from nextlabel.campaign.known_answers import check_drawn
from nextlabel.campaigns.guarantees import GuaranteeStatus
from nextlabel.campaigns.status import AuditLink
from nextlabel.service.app_state import app_state, link_base, link_warning
from nextlabel.service.auth import CampaignId
from nextlabel.service.links import audit_url
from nextlabel.service.models import (
    AuditLinkResponse,
    AuditResponse,
    DrawAuditRequest,
    FreezeRequest,
    GoldRequest,
    GoldResponse,
    GuaranteeResponse,
    to_json,
)
from nextlabel.service.openapi import problems

router = APIRouter(tags=["audit"])


@router.get("/campaigns/{campaign}/audit", responses=problems(404), response_model=AuditResponse)
def show_audit(campaign: CampaignId, request: Request) -> dict[str, Any]:
    """Show the items that were drawn, with the answers so far, and without what the campaign believes of them."""
    items = app_state(request).campaign_service.audits.items(campaign)
    return {"items": [to_json(one) for one in items]}


@router.post("/campaigns/{campaign}/audit/draw", responses=problems(404, 409), response_model=AuditResponse)
async def draw_audit(campaign: CampaignId, body: DrawAuditRequest, request: Request) -> dict[str, Any]:
    """Draw items at random, beside those that were drawn before."""
    audits, id = app_state(request).campaign_service.audits, campaign
    await to_thread.run_sync(audits.draw, id, body.items, body.seed)
    items = await to_thread.run_sync(audits.items, id)
    return {"items": [to_json(one) for one in items]}


@router.post("/campaigns/{campaign}/audit/answers", responses=problems(404), response_model=GoldResponse)
async def answer_audit(campaign: CampaignId, body: GoldRequest, request: Request) -> dict[str, Any]:
    """Say what the truth of drawn items is; the certificate follows. Auditors may do this too."""
    audits, id = app_state(request).campaign_service.audits, campaign
    return {"changed": await to_thread.run_sync(audits.answer, id, body.answers)}


@router.post("/campaigns/{campaign}/audit/link", responses=problems(404, 409), response_model=AuditLinkResponse)
async def audit_link(campaign: CampaignId, request: Request) -> AuditLink:
    """A link by which an expert answers the items drawn so far, without a token; it is the same until items are drawn.

    It ends by ``links/revoke`` with ``audit``.
    """
    state, id = app_state(request), campaign
    row = await to_thread.run_sync(state.campaign_service.store.row, id)
    check_drawn(row)
    base, token = link_base(request), state.links.audit_token(id, len(row.rules.audit))
    return AuditLink(token, audit_url(base, token), len(row.rules.audit), link_warning(base) or None)


@router.get("/campaigns/{campaign}/guarantee", responses=problems(404), response_model=GuaranteeResponse)
def show_guarantee(campaign: CampaignId, request: Request) -> GuaranteeStatus:
    """Show how far the guarantee is, and its sentence."""
    return app_state(request).campaign_service.guarantees.status(campaign)


@router.post("/campaigns/{campaign}/guarantee/freeze", responses=problems(404, 409), response_model=GuaranteeResponse)
async def freeze(campaign: CampaignId, body: FreezeRequest, request: Request) -> GuaranteeStatus:
    """Freeze the labels and draw items for an expert: the results keep these labels until somebody reopens."""
    guarantees, id = app_state(request).campaign_service.guarantees, campaign
    return await to_thread.run_sync(guarantees.freeze, id, body.audits, body.of)


@router.post("/campaigns/{campaign}/guarantee/look", responses=problems(404, 409), response_model=GuaranteeResponse)
async def next_look(campaign: CampaignId, request: Request) -> GuaranteeStatus:
    """Draw the items of the next look, if several were planned, before labels are taken away."""
    return await to_thread.run_sync(app_state(request).campaign_service.guarantees.next_look, campaign)


@router.get("/campaigns/{campaign}/guarantee/items", responses=problems(404), response_model=AuditResponse)
def guarantee_items(campaign: CampaignId, request: Request) -> dict[str, Any]:
    """Show the items that the expert was asked for, with the answers, and without what the campaign believes."""
    items = app_state(request).campaign_service.guarantees.items(campaign)
    return {"items": [to_json(one) for one in items]}


@router.get("/campaigns/{campaign}/guarantee/record", responses=problems(404, 409))
def guarantee_record(campaign: CampaignId, request: Request) -> dict[str, Any]:
    """Show frozen labels, draw and answers, with which anybody can check the certificate."""
    return app_state(request).campaign_service.guarantees.record(campaign).record()


@router.post("/campaigns/{campaign}/guarantee/answers", responses=problems(404, 409), response_model=GoldResponse)
async def answer_guarantee(campaign: CampaignId, body: GoldRequest, request: Request) -> dict[str, Any]:
    """Say what the truth of items is that are asked for; the next ones follow, or the certificate."""
    guarantees, id = app_state(request).campaign_service.guarantees, campaign
    return {"changed": await to_thread.run_sync(guarantees.answer, id, body.answers)}


@router.post("/campaigns/{campaign}/guarantee/reopen", responses=problems(404, 409), response_model=GuaranteeResponse)
async def reopen_labels(campaign: CampaignId, request: Request) -> GuaranteeStatus:
    """Let labels decide again, which voids the certificate."""
    return await to_thread.run_sync(app_state(request).campaign_service.guarantees.reopen, campaign)


@router.post("/campaigns/{campaign}/guarantee/link", responses=problems(404, 409), response_model=AuditLinkResponse)
async def guarantee_link(campaign: CampaignId, request: Request) -> AuditLink:
    """A link by which an expert answers what the guarantee asks for, without a token; new items appear there.

    It ends by ``links/revoke`` with ``audit``.
    """
    state, id = app_state(request), campaign
    status = await to_thread.run_sync(state.campaign_service.guarantees.status, id)
    base, token = link_base(request), state.links.audit_token(id, 0)
    return AuditLink(token, audit_url(base, token), status.to_answer, link_warning(base) or None)
