"""What a campaign has found out: results, who answered what, its workers and its log, by page or as files."""

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
from nextlabel.application.worker_reports import COLUMNS, cells
from nextlabel.campaign.results import GivenLabel, given_labels
from nextlabel.campaign.rows import CampaignRow, TaskRow
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
    WorkersQuery,
    WorkersResponse,
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
    attached = {"content-disposition": f'attachment; filename="{name}.{format}"'}
    return StreamingResponse(_lines(format, rows, header, cells), media_type=_TYPES[format], headers=attached)


def _lines(
    format: FileFormat, rows: Iterable[Any], header: Sequence[str], cells: Callable[[Any], Sequence[Any]]
) -> Iterator[bytes]:
    if format == "xlsx":
        with TemporaryFile() as file:
            write_workbook(file, chain([header], map(cells, rows)))
            file.seek(0)
            yield from iter(lambda: file.read(1 << 16), b"")
        return
    if format == "csv":
        yield export_text([header]).encode()
    found = iter(rows)
    while chunk := list(islice(found, CHUNK)):
        lines = (json.dumps(asdict(row)) + "\n" for row in chunk)
        yield ("".join(lines) if format == "jsonl" else export_text(cells(row) for row in chunk)).encode()


def _page(name: str, rows: Sequence[Any], following: int | None) -> Response:
    return Response(json.dumps({name: rows, "next": following}), media_type="application/json")


def _following(row: CampaignRow, tasks: Sequence[TaskRow]) -> int | None:
    """The cursor of the page after these tasks."""
    return tasks[-1].number if tasks and tasks[-1].number + 1 < row.tasks else None


router = APIRouter(tags=["results"])
workers = APIRouter(tags=["workers"])
LABEL_COLUMNS = tuple(field.name for field in fields(GivenLabel))


@router.get(
    "/campaigns/{campaign}/results", responses={**page_or_file(ResultsResponse), **problems(404)}, response_model=None
)
def results(campaign: CampaignId, request: Request, page: Annotated[ResultsQuery, Query()]) -> Response:
    """Show each task's most likely label, its probability, the labels behind it, and the event that closed it."""
    campaign_service = app_state(request).campaign_service
    row = campaign_service.store.row(campaign)
    if page.format != "json":
        table = result_table(campaign_service, campaign)
        return file_response(campaign, page.format, campaign_service[campaign].results(), table.header, table.cells)
    tasks = campaign_service.store.tasks(campaign, page.after, page.limit, app_state(request).settings.max_page_bytes)
    known = campaign_service.results_of(row, campaign_service.store.classes(campaign), tasks, service.READ_PATIENCE_S)
    return _page("results", [asdict(result) for result in known], _following(row, tasks))


@router.get(
    "/campaigns/{campaign}/labels", responses={**page_or_file(LabelsResponse), **problems(404)}, response_model=None
)
def labels(campaign: CampaignId, request: Request, page: Annotated[LabelsQuery, Query()]) -> Response:
    """Show every worker's answer to every task. All commands that read labels can read the files."""
    state = app_state(request)
    store = state.campaign_service.store
    row = store.row(campaign)
    if page.format != "json":
        found = state.campaign_service[campaign].labels(unanswered=page.unanswered, dropped=page.dropped)
        return file_response(f"{campaign}-labels", page.format, found, LABEL_COLUMNS, astuple)
    tasks = store.tasks(campaign, page.after, page.limit, state.settings.max_page_bytes)
    leases, models = store.leases(campaign, [task.number for task in tasks]), row.dropped_models
    given = given_labels(row.config.answer_type, tasks, leases, page.unanswered, page.dropped, models)
    return _page("labels", [asdict(one) for one in given], _following(row, tasks))


@workers.get(
    "/campaigns/{campaign}/workers", responses={**page_or_file(WorkersResponse), **problems(404)}, response_model=None
)
def show_workers(campaign: CampaignId, request: Request, page: Annotated[WorkersQuery, Query()]) -> Response:
    """Show what each worker did, is owed and is worth, those with the most labels first; or all as a file."""
    reports = app_state(request).campaign_service.worker_reports
    if page.format != "json":
        return file_response(f"{campaign}-workers", page.format, reports.of(campaign), COLUMNS, cells)
    found = {"workers": [to_json(one) for one in reports.of(campaign, page.limit)]}
    return Response(json.dumps(found), media_type="application/json")


#: Seconds that a request waits for a certificate.
CERTIFICATE_S = 10.0
WAIT = (
    "Wait so many seconds until all of it, ``upper`` included, is by the labels that are there now. If that is not so "
    "by then, the reply is 202 with ``as_of_labels`` of the last certificate."
)


@router.get(
    "/campaigns/{campaign}/events", responses={200: {"model": EventsResponse}, **problems(404)}, response_model=None
)
def show_events(campaign: CampaignId, request: Request, page: Annotated[PageQuery, Query()]) -> Response:
    """Show the log: all events in order. A page ends early if its events are large."""
    state = app_state(request)
    store = state.campaign_service.store
    events = store.events(campaign, page.after, page.limit, state.settings.max_page_bytes)
    following = events[-1].seq if events and events[-1].seq < store.row(campaign).seq else None
    return _page("events", [to_json(event) for event in events], following)


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
