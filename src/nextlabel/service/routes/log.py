"""A campaign's log, its workers and its certificate."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from nextlabel.service.openapi import problems
from nextlabel.service.path_names import CampaignName, campaign_named
from nextlabel.service.request_models import PageQuery, WorkersPage
from nextlabel.service.response_models import CertificateOut, Events, WorkerOut, Workers
from nextlabel.service.services import services_of
from nextlabel.service.times import iso

router = APIRouter(tags=["log"])
_EVENTS: dict[int | str, dict[str, Any]] = {200: {"model": Events}, **problems(404)}


@router.get("/campaigns/{campaign}/events", responses=_EVENTS, response_model=None)
def events(
    campaign: CampaignName,
    request: Request,
    page: Annotated[PageQuery, Query()],
) -> Response:
    """The log: every event in order."""
    found = services_of(request).campaign_service.store.events(campaign_named(campaign), page.after, page.limit)
    told = [{"seq": one.seq, "at": iso(one.at), "kind": one.kind, "data": one.data} for one in found]
    following = found[-1].seq if len(found) == page.limit else None
    return Response(json.dumps({"events": told, "next": following}), media_type="application/json")


@router.get("/campaigns/{campaign}/workers", responses=problems(404))
def workers(campaign: CampaignName, request: Request, page: Annotated[WorkersPage, Query()]) -> Workers:
    """What each worker did, those with most labels first."""
    rows = services_of(request).campaign_service.store.workers(campaign_named(campaign), page.limit)
    told = [
        WorkerOut(
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
    return Workers(workers=told)


@router.get("/campaigns/{campaign}/certificate", responses=problems(404, 409))
def certificate(campaign: CampaignName, request: Request) -> CertificateOut:
    """What the campaign is worth now, and what no policy can get it to."""
    found = asdict(services_of(request).certificates.of(campaign_named(campaign)))
    return CertificateOut(**{**found, "at": iso(found["at"])})
