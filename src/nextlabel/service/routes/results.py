"""Results: page by page as JSON, or all of them as CSV or JSON lines."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from nextlabel.campaigns import service
from nextlabel.campaigns.result_table import ResultTable
from nextlabel.service.app_state import app_state
from nextlabel.service.auth import CampaignId, campaign_id
from nextlabel.service.downloads import file_response, page_or_file
from nextlabel.service.openapi import Responses, problems
from nextlabel.service.request_models import ResultsQuery
from nextlabel.service.response_models import ResultsResponse

router = APIRouter(tags=["results"])
_RESPONSES: Responses = {**page_or_file(ResultsResponse), **problems(404)}


@router.get("/campaigns/{campaign}/results", responses=_RESPONSES, response_model=None)
def results(
    campaign: CampaignId,
    request: Request,
    page: Annotated[ResultsQuery, Query()],
) -> Response:
    """Show each task's most likely label, its probability, the labels behind it, and the event that closed it."""
    campaign_service, id = app_state(request).campaign_service, campaign_id(campaign)
    row = campaign_service.store.row(id)
    if page.format != "json":
        table = ResultTable(campaign_service, id)
        return file_response(id, page.format, campaign_service.results(id), table.header, table.cells)
    tasks = campaign_service.store.tasks(id, page.after, page.limit, app_state(request).settings.max_page_bytes)
    known = campaign_service.results_of(row, campaign_service.store.classes(id), tasks, service.READ_PATIENCE_S)
    found = [asdict(result) for result in known]
    following = tasks[-1].number if tasks and tasks[-1].number + 1 < row.tasks else None
    return Response(json.dumps({"results": found, "next": following}), media_type="application/json")
