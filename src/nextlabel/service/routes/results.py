"""What a campaign has found out: results and who answered what, its certificate and its log, by page or as files."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, astuple, fields
from itertools import chain, islice
from tempfile import TemporaryFile
from typing import Annotated, Any, Literal, TypeVar

from anyio import to_thread
from fastapi import APIRouter, Query, Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from nextlabel.application import service
from nextlabel.application.frames import result_table
from nextlabel.campaign.results import GivenLabel, given_labels
from nextlabel.errors import BusyError
from nextlabel.files.write import export_text, write_workbook
from nextlabel.service.app_state import app_state
from nextlabel.service.auth import CampaignId
from nextlabel.service.models import (
    CertificateResponse,
    EventsResponse,
    LabelsQuery,
    LabelsResponse,
    OlderCertificate,
    PageQuery,
    ResultsQuery,
    ResultsResponse,
    to_json,
)
from nextlabel.service.openapi import Responses, problems

FileFormat = Literal["csv", "jsonl", "xlsx"]
T = TypeVar("T")

#: Rows that are streamed together.
CHUNK = 500
_TYPES = {
    "csv": "text/csv; charset=utf-8", "jsonl": "application/x-ndjson",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}  # fmt: skip


def page_or_file(page: Any) -> Responses:
    """The documentation of a reply that is one page of JSON, or a file."""
    text = {"schema": {"type": "string"}}
    binary = {"schema": {"type": "string", "format": "binary"}}
    return {200: {"model": page, "content": {"text/csv": text, "application/x-ndjson": text, _TYPES["xlsx"]: binary}}}


def file_response(
    name: str,
    format: FileFormat,
    rows: Iterable[T],
    header: Sequence[str],
    cells: Callable[[T], Sequence[Any]],
) -> StreamingResponse:
    """All rows (dataclasses) as a file: a line of ``cells`` below a ``header``, or one JSON object for each."""
    lines = _jsonl(rows) if format == "jsonl" else {"csv": _csv, "xlsx": _sheet}[format](rows, header, cells)
    attached = {"content-disposition": f'attachment; filename="{name}.{format}"'}
    return StreamingResponse(lines, media_type=_TYPES[format], headers=attached)


def _jsonl(rows: Iterable[Any]) -> Iterator[bytes]:
    for chunk in _chunks(rows):
        yield "".join(json.dumps(asdict(row)) + "\n" for row in chunk).encode()


def _csv(rows: Iterable[T], header: Sequence[str], cells: Callable[[T], Sequence[Any]]) -> Iterator[bytes]:
    yield export_text([header]).encode()
    for chunk in _chunks(rows):
        yield export_text(cells(row) for row in chunk).encode()


def _sheet(rows: Iterable[T], header: Sequence[str], cells: Callable[[T], Sequence[Any]]) -> Iterator[bytes]:
    with TemporaryFile() as file:
        write_workbook(file, chain([header], map(cells, rows)))
        file.seek(0)
        yield from iter(lambda: file.read(1 << 16), b"")


def _chunks(rows: Iterable[T]) -> Iterator[list[T]]:
    found = iter(rows)
    while chunk := list(islice(found, CHUNK)):
        yield chunk


router = APIRouter(tags=["results"])
_RESPONSES: Responses = {**page_or_file(ResultsResponse), **problems(404)}
COLUMNS = tuple(field.name for field in fields(GivenLabel))
_LABELS_RESPONSES: Responses = {**page_or_file(LabelsResponse), **problems(404)}


@router.get("/campaigns/{campaign}/results", responses=_RESPONSES, response_model=None)
def results(
    campaign: CampaignId,
    request: Request,
    page: Annotated[ResultsQuery, Query()],
) -> Response:
    """Show each task's most likely label, its probability, the labels behind it, and the event that closed it."""
    campaign_service, id = app_state(request).campaign_service, campaign
    row = campaign_service.store.row(id)
    if page.format != "json":
        table = result_table(campaign_service, id)
        return file_response(id, page.format, campaign_service.results(id), table.header, table.cells)
    tasks = campaign_service.store.tasks(id, page.after, page.limit, app_state(request).settings.max_page_bytes)
    known = campaign_service.results_of(row, campaign_service.store.classes(id), tasks, service.READ_PATIENCE_S)
    found = [asdict(result) for result in known]
    following = tasks[-1].number if tasks and tasks[-1].number + 1 < row.tasks else None
    return Response(json.dumps({"results": found, "next": following}), media_type="application/json")


@router.get("/campaigns/{campaign}/labels", responses=_LABELS_RESPONSES, response_model=None)
def labels(campaign: CampaignId, request: Request, page: Annotated[LabelsQuery, Query()]) -> Response:
    """Show every worker's answer to every task. All commands that read labels can read the files."""
    state, id = app_state(request), campaign
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
            row.config.answer_type, tasks, leases, page.unanswered, page.dropped, row.rules.dropped_models
        )
    ]
    following = tasks[-1].number if tasks and tasks[-1].number + 1 < row.tasks else None
    return Response(json.dumps({"labels": rows, "next": following}), media_type="application/json")


#: Seconds that a request waits for a certificate.
CERTIFICATE_S = 10.0
WAIT = (
    "Wait so many seconds until all of it, ``upper`` included, is by the labels that are there now. If that is not so "
    "by then, the reply is 202 with ``as_of_labels`` of the last certificate."
)

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


@router.get(
    "/campaigns/{campaign}/certificate",
    responses={**problems(404, 409, 422), 202: {"model": OlderCertificate}},
    response_model=CertificateResponse,
)
async def show_certificate(
    campaign: CampaignId,
    request: Request,
    wait: Annotated[float | None, Query(ge=0, le=30, description=WAIT)] = None,
) -> Any:
    """Show what the campaign is worth now, and what no policy can be expected to exceed.

    With many priors that may take a minute: 503 says that it is being computed, and the next request may have it.
    """
    certificates, id = app_state(request).campaign_service.certificates, campaign
    computed = asyncio.wrap_future(await to_thread.run_sync(certificates.soon, id, wait is not None))
    done, _ = await asyncio.wait([computed], timeout=CERTIFICATE_S if wait is None else wait)
    if not done:
        computed.add_done_callback(lambda future: future.exception())
        if wait is None:
            raise BusyError("the certificate is still being computed.", "Ask again in a moment.")
        last = certificates.last(id)
        return JSONResponse({"as_of_labels": None if last is None else last.as_of_labels}, 202)
    return to_json(computed.result())
