"""Webhooks: addresses that are told what happens in a campaign (``campaign.webhooks``)."""

from __future__ import annotations

from typing import Any

from anyio import to_thread
from fastapi import APIRouter, Request

from nextlabel.service.app_state import app_state
from nextlabel.service.auth import CampaignId
from nextlabel.service.models import (
    CreateWebhookRequest,
    NewWebhookResponse,
    TrialResponse,
    webhook_json,
)
from nextlabel.service.openapi import problems
from nextlabel.service.routes.commands import WebhookId
from nextlabel.service.webhooks import WebhookSender, checked_address, send_trial

router = APIRouter(tags=["webhooks"])


@router.post(
    "/campaigns/{campaign}/webhooks", status_code=201, responses=problems(404, 409), response_model=NewWebhookResponse
)
def create_webhook(campaign: CampaignId, body: CreateWebhookRequest, request: Request) -> dict[str, Any]:
    """Tell an address what happens from now on. The secret that messages are signed with is shown this once."""
    state = app_state(request)
    made = state.webhooks.add(campaign, checked_address(body.url, state.settings), body.types, body.from_start)
    sender = WebhookSender(state.campaign_service.store, state.settings)
    return {"webhook": webhook_json(made), "secret": sender.secret_of(made)}


@router.post("/campaigns/{campaign}/webhooks/{id}/test", responses=problems(404), response_model=TrialResponse)
async def test_webhook(campaign: CampaignId, id: WebhookId, request: Request) -> dict[str, Any]:
    """Send a message of the type webhook.test now, and show what the receiver says."""
    state = app_state(request)
    webhook = await to_thread.run_sync(state.webhooks.get, campaign, id)
    store = state.campaign_service.store
    reply = await send_trial(store, state.settings, webhook, state.webhooks.trial(webhook))
    return {"ok": reply.ok, "said": reply.said}
