"""New tasks: a body of any size, first saved to a temporary file, then added in one transaction."""

from __future__ import annotations

import tempfile
from itertools import chain
from typing import IO, Annotated, Any

from anyio import to_thread
from fastapi import APIRouter, Header, Query, Request

from nextlabel.campaign.replies import Added
from nextlabel.errors import InputError, MediaTypeError
from nextlabel.files.open_table import Format
from nextlabel.files.tasks import TaskReader
from nextlabel.service.app_state import app_state
from nextlabel.service.auth import CampaignId, campaign_id
from nextlabel.service.openapi import problems
from nextlabel.service.request_models import Name, TasksQuery
from nextlabel.service.response_models import AddedResponse, to_json

router = APIRouter(tags=["tasks"])
#: The largest body that is held in memory instead of a file, in bytes.
IN_MEMORY = 4 << 20
#: Formats of a body by its media type.
FORMATS: dict[str, Format] = {
    "text/csv": "csv",
    "application/x-ndjson": "jsonl",
    "application/jsonl": "jsonl",
    "application/json": "json",
}
_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "text/csv": {"schema": {}, "example": "id,text,score\na,Good film,0.8\n"},
            "application/x-ndjson": {"schema": {}, "example": '{"id": "a", "text": "Good film"}\n'},
            "application/json": {
                "schema": {"type": "array", "items": {}},
                "example": [{"id": "a", "text": "Good film"}],
            },
        },
    }
}


@router.post(
    "/campaigns/{campaign}/tasks", responses=problems(404, 409, 415), openapi_extra=_BODY, response_model=AddedResponse
)
async def add_tasks(
    campaign: CampaignId,
    request: Request,
    columns: Annotated[TasksQuery, Query()],
    idempotency_key: Annotated[Name | None, Header()] = None,
) -> dict[str, Any]:
    """Add tasks, all of them or none: CSV with a header, JSON lines or a JSON list."""
    campaign_service, id = app_state(request).campaign_service, campaign_id(campaign)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in FORMATS:
        raise MediaTypeError(f"a body of type {kind[:60]!r} is not supported.", f"Send {', '.join(FORMATS)}.")
    batch = columns.batch
    if batch is not None and idempotency_key is not None and batch != idempotency_key:
        raise InputError("batch and Idempotency-Key differ.", "Give only one of them.")
    key = batch if batch is not None else idempotency_key
    if key is not None and "\x00" in key:
        raise InputError("the key of the batch contains a null character.", "Give another key.")
    await to_thread.run_sync(campaign_service.store.row, id)
    with tempfile.SpooledTemporaryFile(max_size=IN_MEMORY) as file:
        async for piece in request.stream():
            file.write(piece)
        file.seek(0)

        def take_in(body: IO[bytes] = file) -> tuple[Added, list[str]]:
            reader = TaskReader(
                body, "the body", FORMATS[kind], id_column=columns.id_column, score_column=columns.score_column
            )
            tasks = iter(reader)
            first = next(tasks)  # what is no list of tasks is refused even if the batch is known
            return campaign_service.add_tasks(id, chain([first], tasks), key), reader.report.sentences()

        added, read = await to_thread.run_sync(take_in)
    return to_json(added, read=read)
