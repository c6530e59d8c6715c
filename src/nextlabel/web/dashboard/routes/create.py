"""A new campaign: a file, what it is, and there it is."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from itertools import chain, islice
from typing import IO, Annotated, Any

from anyio import to_thread
from fastapi import APIRouter, Query, Request
from starlette.datastructures import UploadFile
from starlette.responses import JSONResponse, RedirectResponse, Response

from nextlabel.campaign.declaration import MOST_ANSWERS
from nextlabel.errors import InputError
from nextlabel.files.delimited import DelimitedTable
from nextlabel.files.numbers import number
from nextlabel.service.app_state import app_state
from nextlabel.web.dashboard.access import GuardedRoute
from nextlabel.web.dashboard.budget_curve import BudgetCurve
from nextlabel.web.dashboard.campaign_form import Form, create_campaign
from nextlabel.web.dashboard.drafts import UploadedFile
from nextlabel.web.dashboard.formatting import sentence
from nextlabel.web.dashboard.state import DashboardState, dashboard_state
from nextlabel.web.render import page

router = APIRouter(route_class=GuardedRoute, include_in_schema=False)
#: Seconds that an answer waits for a curve; rows whose scores make it up.
CURVE_S, SCORES = 20.0, 2000


@router.get("/new")
async def choose_file(request: Request) -> Response:
    """The first step."""
    return _first(request)


@router.post("/new")
async def take_file(request: Request) -> Response:
    """Read the file through and keep it."""
    dashboard = dashboard_state(request)
    async with request.form(max_files=1) as form:
        given = form.get("file")
        try:
            if not isinstance(given, UploadFile) or not given.filename:
                raise InputError("no file was chosen.", "Choose a CSV file with a header.")
            file: IO[bytes] = given.file
            draft = await to_thread.run_sync(dashboard.drafts.keep, file, given.filename)
        except InputError as error:
            return _first(request, _said(error), 422)
    return RedirectResponse(f"/new/{draft.id}", 303)


@router.get("/new/{draft}")
def describe(draft: str, request: Request, curve: str = "") -> Response:
    """The second step: what the columns are, question, labels and budget."""
    dashboard = dashboard_state(request)
    kept = dashboard.drafts.find(draft)
    form = Form.suggested(kept)
    known = (
        dashboard.curves.ask(kept.rows, 2, _scores(dashboard, kept, form.score_column)).result(60) if curve else None
    )
    return _page(kept, form, known)


@router.post("/new/{draft}")
async def make(draft: str, request: Request) -> Response:
    """Make the campaign, with all its tasks or not at all."""
    dashboard = dashboard_state(request)
    sent = await request.form()
    form = Form.read(dict(sent), [str(name) for name in sent.getlist("shown")])
    kept = await to_thread.run_sync(dashboard.drafts.find, draft)

    def found() -> str:
        with dashboard.drafts.open(kept) as file:
            id = create_campaign(app_state(request).campaign_service, kept, file, form)
        dashboard.drafts.drop(kept)
        return id

    try:
        id = await to_thread.run_sync(found)
    except InputError as error:
        return _page(kept, form, None, _said(error), 422)
    return RedirectResponse(f"/campaigns/{id}/links?made=1", 303)


@router.get("/new/{draft}/curve")
async def curve(
    draft: str, request: Request, answers: Annotated[int, Query(ge=2, le=MOST_ANSWERS)] = 2, score: str = ""
) -> Response:
    """What a budget buys for the file's tasks."""
    dashboard = dashboard_state(request)

    def ask() -> Any:
        kept = dashboard.drafts.find(draft)
        return dashboard.curves.ask(kept.rows, answers, _scores(dashboard, kept, score) if answers == 2 else ())

    future = await to_thread.run_sync(ask)
    done, _ = await asyncio.wait([asyncio.wrap_future(future)], timeout=CURVE_S)
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


def _scores(dashboard: DashboardState, draft: UploadedFile, column: str) -> list[float]:
    """The first scores of a file that are probabilities."""
    if column not in draft.columns:
        return []
    place = draft.columns.index(column)
    found: list[float] = []
    with dashboard.drafts.open(draft) as file:
        cells = chain.from_iterable(batch.columns[0] for batch in DelimitedTable(file, "the file").batches([place]))
        for cell in islice(cells, SCORES):
            with suppress(ValueError):
                found.append(number(cell))
    return [score for score in found if 0 <= score <= 1]


def _first(request: Request, problem: str = "", status: int = 200) -> Response:
    most = app_state(request).settings.max_upload_bytes  # ``service.limits`` lets this much through to this address
    return page("dashboard/new_file.html", status, problem=problem, most=most)


def _page(draft: UploadedFile, form: Form, known: BudgetCurve | None, problem: str = "", status: int = 200) -> Response:
    return page("dashboard/new.html", status, draft=draft, form=form, known=known, problem=problem)


def _said(error: InputError) -> str:
    return f"{sentence(error.message)} {error.hint}".strip()
