"""Creating a campaign: upload a file, then describe it."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from itertools import chain, islice
from typing import IO, Annotated, Any

from anyio import to_thread
from fastapi import APIRouter, Query, Request
from starlette.datastructures import UploadFile
from starlette.responses import JSONResponse, RedirectResponse, Response

from nextlabel.campaign.declaration import LANGUAGES, MOST_ANSWERS, declared
from nextlabel.campaign.imports import ImportRow
from nextlabel.campaign.shown_columns import looks_personal
from nextlabel.campaigns.import_status import import_status
from nextlabel.campaigns.imports import Progress
from nextlabel.errors import InputError, NotFoundError
from nextlabel.files.columns import number
from nextlabel.files.delimited import DelimitedTable
from nextlabel.service.app_state import app_state
from nextlabel.service.background_imports import in_background
from nextlabel.web.dashboard.access import GuardedRoute
from nextlabel.web.dashboard.budget_curve import BudgetCurve
from nextlabel.web.dashboard.campaign_form import CampaignForm, create_campaign
from nextlabel.web.dashboard.formatting import sentence
from nextlabel.web.dashboard.state import DashboardState, dashboard_state
from nextlabel.web.dashboard.uploads import UploadedFile
from nextlabel.web.render import page

router = APIRouter(route_class=GuardedRoute, include_in_schema=False)
#: Seconds that a request waits for a curve; rows whose scores are used for it.
CURVE_WAIT_S, SCORES = 20.0, 2000
#: Seconds after which the page of an import is loaded again.
RELOAD_S = 2


@router.get("/new")
async def choose_file(request: Request) -> Response:
    """The first step: choose a file."""
    return _first(request)


@router.post("/new")
async def take_file(request: Request) -> Response:
    """Read the file and keep it."""
    dashboard = dashboard_state(request)
    async with request.form(max_files=1) as form:
        given = form.get("file")
        try:
            if not isinstance(given, UploadFile) or not given.filename:
                raise InputError("no file was chosen.", "Choose a CSV file with a header.")
            file: IO[bytes] = given.file
            upload = await to_thread.run_sync(dashboard.uploads.keep, file, given.filename)
        except InputError as error:
            return _first(request, _message(error), 422)
    return RedirectResponse(f"/new/{upload.id}", 303)


@router.get("/new/{upload}")
def describe(upload: str, request: Request, curve: str = "") -> Response:
    """The second step: columns, question, labels and budget."""
    dashboard = dashboard_state(request)
    kept = dashboard.uploads.find(upload)
    form = CampaignForm.suggested(kept)
    known: BudgetCurve | None = None
    if curve:
        scores = _scores(dashboard, kept, form.score_column)
        try:
            known = dashboard.curves.ask(kept.rows, 2, scores).result(CURVE_WAIT_S)
        except TimeoutError:
            return _page(kept, form, None, "The curve is still being computed. Load this page again in a moment.")
    return _page(kept, form, known)


@router.post("/new/{upload}")
async def create(upload: str, request: Request) -> Response:
    """Create the campaign, with all its tasks or not at all."""
    dashboard = dashboard_state(request)
    sent = await request.form()
    form = CampaignForm.read(dict(sent), [str(name) for name in sent.getlist("shown")])
    kept = await to_thread.run_sync(dashboard.uploads.find, upload)

    def run(progress: Progress) -> str:
        with dashboard.uploads.open(kept) as file:
            id = create_campaign(app_state(request).campaign_service, kept, file, form, progress)
        dashboard.uploads.drop(kept)
        return id

    try:
        begun = await to_thread.run_sync(in_background, run)
    except InputError as error:
        return _page(kept, form, None, _message(error), 422)
    if isinstance(begun, ImportRow):
        return RedirectResponse(f"/new/{kept.id}/import/{begun.id}", 303)
    return RedirectResponse(f"/campaigns/{begun}/links?made=1", 303)


@router.get("/new/{upload}/import/{id}")
def importing(upload: str, id: str, request: Request) -> Response:
    """How far the import of a campaign's items has got; then its links."""
    dashboard = dashboard_state(request)
    row = dashboard.store.imports.find(id)
    if row is None:
        raise NotFoundError("there is no such import.", "Look for the campaign in the list.")
    if row.state in ("ranking", "done"):
        return RedirectResponse(f"/campaigns/{row.campaign}/links?made=1", 303)
    name = "" if row.state != "failed" else dashboard.uploads.find(upload).name
    headers = {} if row.state == "failed" else {"Refresh": str(RELOAD_S)}
    one = import_status(dashboard.store, row)
    return page("dashboard/importing.html", headers=headers, one=one, upload=upload, upload_name=name, seconds=RELOAD_S)


@router.get("/new/{upload}/curve")
async def curve(
    upload: str, request: Request, answers: Annotated[int, Query(ge=2, le=MOST_ANSWERS)] = 2, score: str = ""
) -> Response:
    """What a budget buys for the tasks of the file, as JSON."""
    dashboard = dashboard_state(request)

    def ask() -> Any:
        kept = dashboard.uploads.find(upload)
        return dashboard.curves.ask(kept.rows, answers, _scores(dashboard, kept, score) if answers == 2 else ())

    future = await to_thread.run_sync(ask)
    done, _ = await asyncio.wait([asyncio.wrap_future(future)], timeout=CURVE_WAIT_S)
    if not done:
        return Response(status_code=202)
    found: BudgetCurve = future.result()
    return JSONResponse(
        {
            "budgets": found.budgets,
            "expected": found.expected,
            "most": found.most,
            "scaled": found.scaled,
            "why": found.why,
        }
    )


def _scores(dashboard: DashboardState, upload: UploadedFile, column: str) -> list[float]:
    """The first scores of a file that are probabilities."""
    if column not in upload.columns:
        return []
    place = upload.columns.index(column)
    found: list[float] = []
    with dashboard.uploads.open(upload) as file:
        cells = chain.from_iterable(batch.columns[0] for batch in DelimitedTable(file, "the file").batches([place]))
        for cell in islice(cells, SCORES):
            with suppress(ValueError):
                found.append(number(cell))
    return [score for score in found if 0 <= score <= 1]


def _first(request: Request, problem: str = "", status: int = 200) -> Response:
    most = app_state(request).settings.max_upload_bytes  # as ``service.body_limits`` allows at this address
    return page("dashboard/new_file.html", status, problem=problem, most=most)


def _page(
    upload: UploadedFile, form: CampaignForm, known: BudgetCurve | None, problem: str = "", status: int = 200
) -> Response:
    return page(
        "dashboard/new.html", status, upload=upload, form=form, curve=known, problem=problem, setting=declared,
        languages=LANGUAGES, personal=looks_personal,
    )  # fmt: skip


def _message(error: InputError) -> str:
    return f"{sentence(error.message)} {error.hint}".strip()
