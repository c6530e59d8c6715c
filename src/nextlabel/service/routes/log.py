"""A campaign's log, its workers and its certificate."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from nextlabel.service.app_state import app_state
from nextlabel.service.openapi import problems
from nextlabel.service.path_ids import CampaignId, campaign_id
from nextlabel.service.request_models import PageQuery, WorkersQuery
from nextlabel.service.response_models import CertificateResponse, EventsResponse, WorkerResponse, WorkersResponse
from nextlabel.service.times import iso

router = APIRouter(tags=["log"])
_EVENTS: dict[int | str, dict[str, Any]] = {200: {"model": EventsResponse}, **problems(404)}


@router.get("/campaigns/{campaign}/events", responses=_EVENTS, response_model=None)
def show_events(
    campaign: CampaignId,
    request: Request,
    page: Annotated[PageQuery, Query()],
) -> Response:
    """Show the log: all events in order."""
    events = app_state(request).campaign_service.store.events(campaign_id(campaign), page.after, page.limit)
    rows = [{"seq": one.seq, "at": iso(one.at), "kind": one.kind, "data": one.data} for one in events]
    following = events[-1].seq if len(events) == page.limit else None
    return Response(json.dumps({"events": rows, "next": following}), media_type="application/json")


@router.get("/campaigns/{campaign}/workers", responses=problems(404))
def show_workers(campaign: CampaignId, request: Request, page: Annotated[WorkersQuery, Query()]) -> WorkersResponse:
    """Show what each worker has done, those with the most labels first."""
    rows = app_state(request).campaign_service.store.workers(campaign_id(campaign), page.limit)
    workers = [
        WorkerResponse(
            worker=row.worker,
            given=row.given,
            labels=row.labels,
            late=row.late,
            expired=row.expired,
            released=row.released,
            mean_seconds=row.seconds / (row.labels - row.late) if row.labels > row.late else None,
            last_at=iso(row.last_at),
        )
        for row in rows
    ]
    return WorkersResponse(workers=workers)


@router.get("/campaigns/{campaign}/certificate", responses=problems(404, 409))
def show_certificate(campaign: CampaignId, request: Request) -> CertificateResponse:
    """Show what the campaign is worth now, and what no policy can exceed."""
    certificate = asdict(app_state(request).campaign_service.certificate(campaign_id(campaign)))
    del certificate["curve"]
    return CertificateResponse(**{**certificate, "at": iso(certificate["at"])})
