"""What models predict, as labels of workers called ``model:NAME``."""

from __future__ import annotations

from typing import Annotated, Any

from anyio import to_thread
from fastapi import APIRouter, Query, Request

from nextlabel.files.tasks import TaskReader
from nextlabel.service.app_state import app_state
from nextlabel.service.auth import CampaignId, campaign_id
from nextlabel.service.openapi import problems
from nextlabel.service.request_models import PredictionsQuery
from nextlabel.service.request_tables import saved_body, table_format
from nextlabel.service.response_models import AddedPredictionsResponse, to_json

router = APIRouter(tags=["tasks"])
_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "text/csv": {"schema": {}, "example": "task,label\na,yes\n"},
            "application/x-ndjson": {"schema": {}, "example": '{"task": "a", "probability": 0.8}\n'},
            "application/json": {
                "schema": {"type": "array", "items": {}},
                "example": [{"task": "a", "no": 0.2, "yes": 0.8}],
            },
        },
    }
}


@router.post(
    "/campaigns/{campaign}/predictions",
    responses=problems(404, 409, 415),
    openapi_extra=_BODY,
    response_model=AddedPredictionsResponse,
)
async def add_predictions(
    campaign: CampaignId, request: Request, query: Annotated[PredictionsQuery, Query()]
) -> dict[str, Any]:
    """Add what a model predicts: a label for each task, or probabilities.

    The campaign learns the model like any worker, and people are sent where it is not enough. The same predictions
    again change nothing; another label for a task is a conflict.
    """
    campaign_service, id = app_state(request).campaign_service, campaign_id(campaign)
    kind = table_format(request)
    await to_thread.run_sync(campaign_service.store.row, id)
    file = await saved_body(request)

    def take_in() -> dict[str, Any]:
        with file:
            reader = TaskReader(file, "the body", kind)
            added = campaign_service.add_predictions(id, query.model, reader.rows(), query.cost, query.task_column)
            return to_json(added, read=reader.report.sentences())

    return await to_thread.run_sync(take_in)
