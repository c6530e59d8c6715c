"""A campaign's log and its certificate."""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from nextlabel.service.app_state import app_state
from nextlabel.service.auth import CampaignId, campaign_id
from nextlabel.service.openapi import problems
from nextlabel.service.request_models import PageQuery
from nextlabel.service.response_models import CertificateResponse, EventsResponse, to_json

router = APIRouter(tags=["log"])
_EVENTS: dict[int | str, dict[str, Any]] = {200: {"model": EventsResponse}, **problems(404)}


@router.get("/campaigns/{campaign}/events", responses=_EVENTS, response_model=None)
def show_events(
    campaign: CampaignId,
    request: Request,
    page: Annotated[PageQuery, Query()],
) -> Response:
    """Show the log: all events in order. A page ends early if its events are large."""
    state, id = app_state(request), campaign_id(campaign)
    store = state.campaign_service.store
    events = store.events(id, page.after, page.limit, state.settings.max_page_bytes)
    rows = [to_json(event) for event in events]
    following = events[-1].seq if events and events[-1].seq < store.row(id).seq else None
    return Response(json.dumps({"events": rows, "next": following}), media_type="application/json")


@router.get("/campaigns/{campaign}/certificate", responses=problems(404, 409), response_model=CertificateResponse)
def show_certificate(campaign: CampaignId, request: Request) -> dict[str, Any]:
    """Show what the campaign is worth now, and what no policy can exceed if workers are alike."""
    return to_json(app_state(request).campaign_service.certificate(campaign_id(campaign)))
