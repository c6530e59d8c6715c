"""Who answered what: page by page as JSON, or all of it as CSV or JSON lines."""

from __future__ import annotations

import json
from dataclasses import asdict, astuple, fields
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from nextlabel.campaign.given_labels import GivenLabel, given_labels
from nextlabel.service.app_state import app_state
from nextlabel.service.auth import CampaignId, campaign_id
from nextlabel.service.downloads import file_response, page_or_file
from nextlabel.service.openapi import Responses, problems
from nextlabel.service.request_models import LabelsQuery
from nextlabel.service.response_models import LabelsResponse

router = APIRouter(tags=["results"])
COLUMNS = tuple(field.name for field in fields(GivenLabel))
_RESPONSES: Responses = {**page_or_file(LabelsResponse), **problems(404)}


@router.get("/campaigns/{campaign}/labels", responses=_RESPONSES, response_model=None)
def labels(campaign: CampaignId, request: Request, page: Annotated[LabelsQuery, Query()]) -> Response:
    """Show every worker's answer to every task. All commands that read labels can read the files."""
    state, id = app_state(request), campaign_id(campaign)
    store = state.campaign_service.store
    row = store.row(id)
    if page.format != "json":
        found = state.campaign_service.labels(id, page.unanswered, page.dropped)
        return file_response(f"{id}-labels", page.format, found, COLUMNS, astuple)
    tasks = store.tasks(id, page.after, page.limit, state.settings.max_page_bytes)
    leases = store.leases(id, [task.number for task in tasks])
    rows = [
        asdict(one)
        for one in given_labels(
            row.config.labels, tasks, leases, page.unanswered, page.dropped, row.rules.dropped_models
        )
    ]
    following = tasks[-1].number if tasks and tasks[-1].number + 1 < row.tasks else None
    return Response(json.dumps({"labels": rows, "next": following}), media_type="application/json")
