"""New tasks and what models predict of them: tables in bodies of any size; and how far imports have got."""

from __future__ import annotations

import json
import tempfile
from collections.abc import AsyncIterator
from itertools import chain
from typing import IO, Annotated, Any

from anyio import to_thread
from fastapi import APIRouter, Depends, Header, Path, Query, Request
from starlette.responses import JSONResponse

from nextlabel.application import predictions
from nextlabel.application.imports import Progress, find_import, import_status
from nextlabel.campaign.records import ImportRow
from nextlabel.campaign.settings import columns_notes
from nextlabel.errors import InputError, MediaTypeError
from nextlabel.files.tables import Format
from nextlabel.files.tasks import TaskReader
from nextlabel.service.app_state import Service
from nextlabel.service.auth import API, CampaignId
from nextlabel.service.background import in_background
from nextlabel.service.models import (
    AddedFeaturesResponse,
    AddedPredictionsResponse,
    AddedResponse,
    FeaturesQuery,
    ImportResponse,
    Name,
    PredictionsQuery,
    TasksQuery,
    to_json,
)
from nextlabel.service.openapi import problems

router = APIRouter(tags=["tasks"])


def _table_body(csv: str, line: str, example: Any) -> dict[str, Any]:
    """The documentation of a table in a body, in each of its formats."""
    content = {
        "text/csv": {"schema": {}, "example": csv},
        "application/x-ndjson": {"schema": {}, "example": line},
        "application/json": {"schema": {"type": "array", "items": {}}, "example": [example]},
    }
    return {"requestBody": {"required": True, "content": content}}


_TASK = {"id": "a", "text": "Good film"}
_BODY = _table_body("id,text\na,Good film\n", json.dumps(_TASK) + "\n", _TASK)
_PREDICTIONS_BODY = _table_body(
    "task,label\na,yes\n", '{"task": "a", "probability": 0.8}\n', {"task": "a", "no": 0.2, "yes": 0.8}
)
_FEATURES_BODY = _table_body(
    "task,length,text\na,12,Good film\n", '{"task": "a", "vector": [0.5, 1]}\n', {"task": "a", "length": 12}
)
_FEATURES_BODY["requestBody"]["content"]["application/octet-stream"] = {"schema": {}}
_ADDED: dict[int | str, dict[str, Any]] = {
    202: {"model": ImportResponse, "description": "The import goes on; Location is where to follow it"},
    **problems(404, 409, 415),
}

#: The largest body that is held in memory instead of a file, in bytes.
IN_MEMORY = 4 << 20

#: Formats of a body by its media type.
FORMATS: dict[str, Format] = {
    "text/csv": "csv",
    "application/x-ndjson": "jsonl",
    "application/jsonl": "jsonl",
    "application/json": "json",
}


def table_format(request: Request) -> Format:
    """The format of the body."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in FORMATS:
        raise MediaTypeError(f"a body of type {kind[:60]!r} is not supported.", f"Send {', '.join(FORMATS)}.")
    return FORMATS[kind]


async def saved_body(campaign: CampaignId, request: Request, service: Service) -> AsyncIterator[IO[bytes]]:
    """The whole body in a file that is closed in the end, unless the route hands it on (``handed_on``)."""
    await to_thread.run_sync(service.store.row, campaign)
    request.state.handed_on = False
    file = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115  # closed below
    try:
        async for piece in request.stream():
            file.write(piece)
        file.seek(0)
        yield file
    finally:
        if not request.state.handed_on:
            file.close()


TableFormat = Annotated[Format, Depends(table_format)]
SavedBody = Annotated[IO[bytes], Depends(saved_body)]


@router.post("/campaigns/{campaign}/tasks", responses=_ADDED, openapi_extra=_BODY, response_model=AddedResponse)
def add_tasks(
    campaign: CampaignId,
    request: Request,
    service: Service,
    kind: TableFormat,
    columns: Annotated[TasksQuery, Query()],
    body: SavedBody,
    idempotency_key: Annotated[Name | None, Header()] = None,
    prefer: Annotated[str | None, Header(description="respond-async: do not wait for the end of an import")] = None,
) -> Any:
    """Add tasks, all of them or none: CSV with a header, JSON lines or a JSON list.

    Many tasks are imported in steps (``/imports``), and workers get them when all are there.
    """
    batch = columns.batch
    if batch is not None and idempotency_key is not None and batch != idempotency_key:
        raise InputError("batch and Idempotency-Key differ.", "Give only one of them.")
    key = batch if batch is not None else idempotency_key
    if key is not None and "\x00" in key:
        raise InputError("the key of the batch contains a null character.", "Give another key.")

    def take_in(progress: Progress | None = None) -> dict[str, Any]:
        with body:
            reader = TaskReader(
                body, "the body", kind, id_column=columns.id_column, score_column=columns.score_column,
                gold_column=columns.gold_column,
            )  # fmt: skip
            tasks = iter(reader)
            first = next(tasks)  # what is no list of tasks is refused even if the batch is known
            added = service.add_tasks(campaign, chain([first], tasks), key, progress)
            config = service.store.row(campaign).config
            notes = columns_notes(config.show, reader.columns, columns.score_column)
            return to_json(added, read=[*reader.report.sentences(), *notes, *added.notes()])

    if prefer is None or "respond-async" not in prefer.lower():
        return take_in()
    request.state.handed_on = True
    begun = in_background(take_in)
    if not isinstance(begun, ImportRow):
        return begun
    status = import_status(service.store, begun)
    place = f"{API}/campaigns/{campaign}/imports/{begun.id}"
    return JSONResponse(to_json(status), 202, {"Location": place, "Preference-Applied": "respond-async"})


@router.get("/campaigns/{campaign}/imports/{id}", responses=problems(404), response_model=ImportResponse)
def show_import(
    campaign: CampaignId, id: Annotated[str, Path(pattern="^[0-9a-f]{1,32}$")], service: Service
) -> dict[str, Any]:
    """Show how far one import has got."""
    return to_json(find_import(service.store, campaign, id))


@router.post(
    "/campaigns/{campaign}/predictions",
    responses=problems(404, 409, 415),
    openapi_extra=_PREDICTIONS_BODY,
    response_model=AddedPredictionsResponse,
)
def add_predictions(
    campaign: CampaignId,
    service: Service,
    kind: TableFormat,
    query: Annotated[PredictionsQuery, Query()],
    body: SavedBody,
) -> dict[str, Any]:
    """Add what a model predicts: a label for each task, or probabilities.

    The campaign learns the model like any worker, and people are sent where it is not enough. The same predictions
    again change nothing; another label for a task is a conflict.
    """
    reader = TaskReader(body, "the body", kind)
    added = predictions.add_predictions(service, campaign, query.model, reader.rows(), query.cost, query.task_column)
    return to_json(added, read=reader.report.sentences())


@router.post(
    "/campaigns/{campaign}/features",
    responses=problems(404, 409, 415),
    openapi_extra=_FEATURES_BODY,
    response_model=AddedFeaturesResponse,
)
def add_features(
    campaign: CampaignId, request: Request, service: Service, query: Annotated[FeaturesQuery, Query()], body: SavedBody
) -> dict[str, Any]:
    """Add what is known of items beside their labels: a table with a column task, or NumPy's .npz, or Parquet.

    A learner is taught by people's labels, and what it says of an item is where the item's own labels start.
    """
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/octet-stream":
        table_format(request)
    return to_json(service[campaign].add_features(body, replace=query.replace))
