"""Predictions of a model, uploaded on the page of a campaign."""

from __future__ import annotations

from typing import IO

from anyio import to_thread
from fastapi import APIRouter, Request
from starlette.datastructures import UploadFile
from starlette.responses import RedirectResponse, Response

from nextlabel.campaign.replies import AddedPredictions
from nextlabel.errors import InputError
from nextlabel.files.columns import with_point
from nextlabel.files.tasks import TaskReader
from nextlabel.service.app_state import app_state
from nextlabel.service.auth import campaign_id
from nextlabel.web.dashboard.access import GuardedRoute, rights_of
from nextlabel.web.dashboard.formatting import sentence
from nextlabel.web.dashboard.routes.campaign import campaign_page_response
from nextlabel.web.dashboard.state import dashboard_state

router = APIRouter(route_class=GuardedRoute, include_in_schema=False)


@router.post("/campaigns/{campaign}/predictions")
async def predictions(campaign: str, request: Request) -> Response:
    """Add what a model predicts."""
    service, id = app_state(request).campaign_service, campaign_id(campaign)
    row = await to_thread.run_sync(service.store.row, id)
    async with request.form(max_files=1) as form:
        given, model, cost = form.get("file"), str(form.get("model", "")), str(form.get("cost", ""))
        try:
            if not isinstance(given, UploadFile) or not given.filename:
                raise InputError("no file was chosen.", "Choose one with the columns task and label.")
            file, name, price = given.file, given.filename, _cost(cost)

            def take_in(file: IO[bytes] = file) -> AddedPredictions:
                return service.add_predictions(id, model, TaskReader(file, name).rows(), price)

            await to_thread.run_sync(take_in)
        except InputError as error:
            message = f"{sentence(error.message)} {error.hint}"
            return await to_thread.run_sync(
                campaign_page_response, dashboard_state(request), row, rights_of(request), None, message, 422
            )
    return RedirectResponse(f"/campaigns/{id}#h-workers", 303)


def _cost(text: str) -> float:
    try:
        return float(with_point(text)) if text.strip() else 0.0
    except ValueError:
        raise InputError(f"cost {text[:40]!r} is not a number.", "Give e.g. 0.01, or leave it empty.") from None
