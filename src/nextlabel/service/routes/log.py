"""A campaign's log and its certificate."""

from __future__ import annotations

import asyncio
import json
from typing import Annotated, Any

from anyio import to_thread
from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from nextlabel.errors import BusyError
from nextlabel.service.app_state import app_state
from nextlabel.service.auth import CampaignId
from nextlabel.service.models import CertificateResponse, EventsResponse, PageQuery, to_json
from nextlabel.service.openapi import problems

#: Seconds that a request waits for a certificate.
CERTIFICATE_S = 10.0

router = APIRouter(tags=["log"])
_EVENTS: dict[int | str, dict[str, Any]] = {200: {"model": EventsResponse}, **problems(404)}


@router.get("/campaigns/{campaign}/events", responses=_EVENTS, response_model=None)
def show_events(
    campaign: CampaignId,
    request: Request,
    page: Annotated[PageQuery, Query()],
) -> Response:
    """Show the log: all events in order. A page ends early if its events are large."""
    state, id = app_state(request), campaign
    store = state.campaign_service.store
    events = store.events(id, page.after, page.limit, state.settings.max_page_bytes)
    rows = [to_json(event) for event in events]
    following = events[-1].seq if events and events[-1].seq < store.row(id).seq else None
    return Response(json.dumps({"events": rows, "next": following}), media_type="application/json")


@router.get("/campaigns/{campaign}/certificate", responses=problems(404, 409), response_model=CertificateResponse)
async def show_certificate(campaign: CampaignId, request: Request) -> dict[str, Any]:
    """Show what the campaign is worth now, and what no policy can exceed if workers are alike.

    With many priors that may take a minute: 503 says that it is being computed, and the next request may have it.
    """
    certificates, id = app_state(request).campaign_service.certificates, campaign
    computed = asyncio.wrap_future(await to_thread.run_sync(certificates.soon, id))
    done, _ = await asyncio.wait([computed], timeout=CERTIFICATE_S)
    if not done:
        computed.add_done_callback(lambda future: future.exception())
        raise BusyError("the certificate is still being computed.", "Ask again in a moment.")
    return to_json(computed.result())
