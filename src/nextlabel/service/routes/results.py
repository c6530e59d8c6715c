"""Results: page by page as JSON, or all of them as CSV or JSON lines."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from itertools import islice
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response, StreamingResponse

from nextlabel.campaign.results import Result
from nextlabel.campaigns.service import CampaignService
from nextlabel.files.write import export_text
from nextlabel.service.app_state import app_state
from nextlabel.service.auth import CampaignId, campaign_id
from nextlabel.service.openapi import problems
from nextlabel.service.request_models import ResultsQuery
from nextlabel.service.response_models import ResultsResponse

router = APIRouter(tags=["results"])
#: Results that are streamed together.
CHUNK = 500
_TYPES = {"csv": "text/csv; charset=utf-8", "jsonl": "application/x-ndjson"}
_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {"model": ResultsResponse, "content": {"text/csv": {"schema": {"type": "string"}},
                                        "application/x-ndjson": {"schema": {"type": "string"}}}},
    **problems(404),
}  # fmt: skip


@router.get("/campaigns/{campaign}/results", responses=_RESPONSES, response_model=None)
def results(
    campaign: CampaignId,
    request: Request,
    page: Annotated[ResultsQuery, Query()],
) -> Response:
    """Show each task's most likely label, its probability, the labels behind it, and the event that closed it."""
    campaign_service, id = app_state(request).campaign_service, campaign_id(campaign)
    row, format = campaign_service.store.row(id), page.format
    if format == "json":
        tasks = campaign_service.store.tasks(id, page.after, page.limit, app_state(request).settings.max_page_bytes)
        known = campaign_service.results_of(row, campaign_service.store.classes(id), tasks)
        found = [asdict(result) for result in known]
        following = tasks[-1].number if tasks and tasks[-1].number + 1 < row.tasks else None
        return Response(json.dumps({"results": found, "next": following}), media_type="application/json")
    lines = _csv(campaign_service, id, row.config.labels) if format == "csv" else _jsonl(campaign_service, id)
    name = {"content-disposition": f'attachment; filename="{id}.{format}"'}
    return StreamingResponse(lines, media_type=_TYPES[format], headers=name)


def _jsonl(campaign_service: CampaignService, id: str) -> Iterator[bytes]:
    for chunk in _chunks(campaign_service, id):
        yield "".join(json.dumps(asdict(result)) + "\n" for result in chunk).encode()


def _csv(campaign_service: CampaignService, id: str, labels: tuple[str, ...]) -> Iterator[bytes]:
    plain = ("task", "label", "probability", "labels", "in_flight", "closed", "closed_by", "closed_reason")
    yield export_text([[*plain, *(f"count_{label}" for label in labels), "payload"]]).encode()
    for chunk in _chunks(campaign_service, id):
        yield export_text(
            [*(getattr(r, name) for name in plain), *r.counts.values(), json.dumps(r.payload)] for r in chunk
        ).encode()


def _chunks(campaign_service: CampaignService, id: str) -> Iterator[list[Result]]:
    found = campaign_service.results(id)
    while chunk := list(islice(found, CHUNK)):
        yield chunk
