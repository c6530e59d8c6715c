"""Workers of a campaign: what they did and are owed, who gets tasks, whose labels count."""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from nextlabel.application.worker_reports import COLUMNS, cells, report_of
from nextlabel.service.app_state import Service, app_state
from nextlabel.service.auth import CampaignId
from nextlabel.service.models import (
    StandingRequest,
    WorkerResponse,
    WorkersQuery,
    WorkersResponse,
    to_json,
)
from nextlabel.service.openapi import Responses, problems
from nextlabel.service.routes.results import file_response, page_or_file

router = APIRouter(tags=["workers"])
_RESPONSES: Responses = {**page_or_file(WorkersResponse), **problems(404)}


@router.get("/campaigns/{campaign}/workers", responses=_RESPONSES, response_model=None)
def show_workers(campaign: CampaignId, request: Request, page: Annotated[WorkersQuery, Query()]) -> Response:
    """Show what each worker did, is owed and is worth, those with the most labels first; or all as a file."""
    reports, id = app_state(request).campaign_service.worker_reports, campaign
    if page.format != "json":
        return file_response(f"{id}-workers", page.format, reports.of(id), COLUMNS, cells)
    found = {"workers": [to_json(one) for one in reports.of(id, page.limit)]}
    return Response(json.dumps(found), media_type="application/json")


@router.post("/campaigns/{campaign}/workers/standing", responses=problems(404), response_model=WorkerResponse)
def set_standing(campaign: CampaignId, body: StandingRequest, service: Service) -> dict[str, Any]:
    """Pause, block or restore (``active``) a worker; a blocked worker's item goes to others."""
    row = service.set_standing(campaign, body.worker, body.standing, body.reason)
    return to_json(report_of(row, service.store.row(campaign).config.pay_per_label))
