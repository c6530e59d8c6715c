"""Campaigns: create, list, show, change, pause, resume, delete."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from anyio import to_thread
from fastapi import APIRouter, Request, Response

from nextlabel.campaign.commands import Commands
from nextlabel.campaign.rows import CampaignRow, checked_campaign_id
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.campaigns.service import CampaignService
from nextlabel.campaigns.status import status_of
from nextlabel.errors import GoneError, InputError, NotFoundError, UnavailableError
from nextlabel.prose import iso
from nextlabel.service.app_state import AppState, app_state
from nextlabel.service.auth import ROLES, CampaignId
from nextlabel.service.middleware import principal_of, request_context
from nextlabel.service.models import (
    CampaignResponse,
    CampaignsResponse,
    ChangeCampaignRequest,
    CreateCampaignRequest,
    DeletedResponse,
    status_json,
)
from nextlabel.service.openapi import problems

router = APIRouter(tags=["campaigns"])

_CREATE_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {"model": CampaignResponse, "description": "It existed already, with the same settings"},
    **problems(409),
}
_DELETE_RESPONSES = {status: text for status, text in problems(404).items() if status != 410}

#: Seconds that a read waits for its turn to expire leases; after that it reports them as they are stored.
EXPIRY_WAIT_S = 2.0


@router.post("/campaigns", status_code=201, responses=_CREATE_RESPONSES, response_model=CampaignResponse)
async def create(body: CreateCampaignRequest, request: Request, response: Response) -> dict[str, Any]:
    """Create a campaign; the same id with the same settings is the same campaign."""
    settings = body.model_dump(exclude_unset=True)
    id = settings.pop("id", None)
    token, context = principal_of(request).token, request_context(request)
    owner = "" if token is None else token.owner
    row, new = await to_thread.run_sync(_create, app_state(request).campaign_service, settings, id, owner)
    context.created = row.id
    response.status_code = 201 if new else 200
    return campaign_json(row)


def _create(
    campaign_service: CampaignService, settings: dict[str, Any], id: str | None, owner: str
) -> tuple[CampaignRow, bool]:
    """The campaign, and whether it is new."""
    if ":" in settings.get("policy", ""):
        raise InputError(
            "a policy of your own cannot be chosen over HTTP: the service would import what a client names.",
            "Create the campaign with nextlabel campaign create --policy module:Class on the server.",
        )
    config = CampaignSettings.from_dict(settings)
    new = True
    if id is not None:
        checked_campaign_id(id)
        try:
            campaign_service.store.row(id)
            new = False
        except NotFoundError:
            pass
    return campaign_service.create(config, id, owner=owner), new


@router.get("/campaigns", responses=problems(), response_model=CampaignsResponse)
async def campaigns(request: Request) -> dict[str, Any]:
    """List the campaigns that the token opens, newest first."""
    state, token = app_state(request), principal_of(request).token
    rows = await to_thread.run_sync(lambda: state.access.opened(token, state.campaign_service.store.campaigns()))
    return {"campaigns": [campaign_json(row, _names_workers(request)) for row in rows]}


@router.get("/campaigns/{campaign}", responses=problems(404), response_model=CampaignResponse)
async def status(campaign: CampaignId, request: Request) -> dict[str, Any]:
    """Show a campaign's settings and counters."""
    return campaign_json(await current_row(app_state(request), campaign), _names_workers(request))


@router.patch("/campaigns/{campaign}", responses=problems(404, 409), response_model=CampaignResponse)
async def change(campaign: CampaignId, body: ChangeCampaignRequest, request: Request) -> dict[str, Any]:
    """Change what may change while a campaign runs: budget, deadline, pay, what workers see. The rest stays."""
    changes = body.model_dump(exclude_unset=True)
    id = campaign
    return campaign_json(await row_after(app_state(request), id, lambda commands: commands.change(**changes)))


@router.delete("/campaigns/{campaign}", responses=_DELETE_RESPONSES, response_model=DeletedResponse)
async def delete(campaign: CampaignId, request: Request) -> dict[str, Any]:
    """Delete a campaign with its tasks, labels, log and links, for good; a second time, nothing happens."""
    id, state = campaign, app_state(request)
    at = await to_thread.run_sync(_delete, state.campaign_service, id)
    return {"id": id, "deleted_at": iso(at)}


def _delete(campaign_service: CampaignService, id: str) -> float:
    """When the campaign was deleted: now, or before."""
    try:
        return campaign_service.deletions.begin(id).deleted_at
    except GoneError:
        before = campaign_service.store.deletions.find(id)
        assert before is not None
        return before


@router.post("/campaigns/{campaign}/pause", responses=problems(404), response_model=CampaignResponse)
async def pause(campaign: CampaignId, request: Request) -> dict[str, Any]:
    """Grant no new leases; workers keep those that they hold."""
    return campaign_json(await row_after(app_state(request), campaign, Commands.pause))


@router.post("/campaigns/{campaign}/resume", responses=problems(404), response_model=CampaignResponse)
async def resume(campaign: CampaignId, request: Request) -> dict[str, Any]:
    """Grant leases again."""
    return campaign_json(await row_after(app_state(request), campaign, Commands.resume))


async def current_row(state: AppState, id: str) -> CampaignRow:
    """The campaign's row now, with leases that have run out expired unless that takes long."""
    row = await to_thread.run_sync(state.campaign_service.store.row, id)
    past_deadline = row.deadline is not None and state.campaign_service.clock() >= row.deadline
    if row.reserved == 0 and (row.closed_seq is not None or not past_deadline):
        return row
    try:
        return await asyncio.wait_for(row_after(state, id, Commands.settle), EXPIRY_WAIT_S)
    except (TimeoutError, UnavailableError):
        return row


async def row_after(state: AppState, id: str, command: Callable[[Commands], None]) -> CampaignRow:
    """The row of a campaign after a command."""

    def run(commands: Commands) -> CampaignRow:
        command(commands)
        return replace(commands.state.row)

    return await state.command_queue.run(id, run)


def campaign_json(row: CampaignRow, names_workers: bool = True) -> dict[str, Any]:
    """What the requester is told about a campaign; a viewer hears nothing of single workers."""
    status = status_of(row)
    if not names_workers:
        status = replace(status, notices=tuple(one for one in status.notices if one.worker is None))
    return status_json(status)


def _names_workers(request: Request) -> bool:
    role = principal_of(request).role
    return role is not None and ROLES[role].sees_workers
