"""What a requester does to a campaign: forms that work without scripts, a model's predictions, deletion."""

from __future__ import annotations

from collections.abc import Callable
from typing import IO

from anyio import to_thread
from fastapi import APIRouter, Request
from starlette.datastructures import UploadFile
from starlette.responses import RedirectResponse, Response

from nextlabel.campaign.commands import Commands
from nextlabel.campaign.replies import AddedPredictions
from nextlabel.campaign.rows import CampaignRow
from nextlabel.errors import InputError, NotFoundError
from nextlabel.files.columns import with_point
from nextlabel.files.tasks import TaskReader
from nextlabel.service.app_state import app_state
from nextlabel.service.auth import CampaignId
from nextlabel.service.routes.campaigns import row_after
from nextlabel.web.dashboard.access import GuardedRoute, rights_of
from nextlabel.web.dashboard.formatting import sentence, title_of
from nextlabel.web.dashboard.routes.campaign import campaign_page_response, campaign_terms
from nextlabel.web.dashboard.setting_form import changed_settings, current
from nextlabel.web.dashboard.state import dashboard_state
from nextlabel.web.render import page

router = APIRouter(route_class=GuardedRoute, include_in_schema=False)


@router.post("/campaigns/{campaign}/pause")
async def pause(campaign: CampaignId, request: Request) -> Response:
    """Grant no new leases."""
    return await _run(request, campaign, Commands.pause)


@router.post("/campaigns/{campaign}/resume")
async def resume(campaign: CampaignId, request: Request) -> Response:
    """Grant leases again."""
    return await _run(request, campaign, Commands.resume)


@router.post("/campaigns/{campaign}/settings")
async def settings(campaign: CampaignId, request: Request) -> Response:
    """Change settings; fields left as they were shown change nothing."""
    fields = {name: str(value).strip() for name, value in (await request.form()).items()}
    row = await to_thread.run_sync(dashboard_state(request).store.row, campaign)
    try:
        changes = changed_settings(current(row, campaign_terms(row)), fields)
    except InputError as error:
        return await _refused(request, row, error)
    return await _run(request, campaign, lambda commands: commands.change(**changes))


async def _run(request: Request, campaign: str, command: Callable[[Commands], None]) -> Response:
    state, id = app_state(request), campaign
    try:
        await row_after(state, id, command)
    except NotFoundError:
        raise
    except InputError as error:
        return await _refused(request, await to_thread.run_sync(dashboard_state(request).store.row, id), error)
    return RedirectResponse(f"/campaigns/{id}", 303)


async def _refused(request: Request, row: CampaignRow, error: InputError) -> Response:
    message = f"{sentence(error.message)} {error.hint}"
    return await to_thread.run_sync(
        campaign_page_response, dashboard_state(request), row, rights_of(request), None, message, 422
    )


@router.get("/campaigns/{campaign}/delete")
def delete_page(campaign: CampaignId, request: Request) -> Response:
    """What will be gone, and the field to confirm it."""
    return _page(request, campaign)


@router.post("/campaigns/{campaign}/delete")
async def delete(campaign: CampaignId, request: Request) -> Response:
    """Delete the campaign, if its id was typed."""
    typed = str((await request.form()).get("typed", "")).strip()
    return await to_thread.run_sync(_delete, request, campaign, typed)


def _delete(request: Request, id: str, typed: str) -> Response:
    if typed != id:
        return _page(request, id, f"“{typed[:60]}” is not the campaign’s id: nothing was deleted. Type {id}.", 422)
    dashboard_state(request).app.campaign_service.deletions.begin(id)
    return RedirectResponse("/", 303)


def _page(request: Request, id: str, problem: str = "", status: int = 200) -> Response:
    row = dashboard_state(request).store.row(id)
    return page("dashboard/delete.html", status, row=row, title=title_of(row), problem=problem)


@router.post("/campaigns/{campaign}/predictions")
async def predictions(campaign: CampaignId, request: Request) -> Response:
    """Add what a model predicts."""
    service, id = app_state(request).campaign_service, campaign
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
