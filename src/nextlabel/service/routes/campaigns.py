"""Campaigns: create, list, show, change, delete."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from typing import Any

from anyio import from_thread
from fastapi import APIRouter, Request, Response

from nextlabel.application.status import status_of
from nextlabel.campaign.commands import Commands
from nextlabel.campaign.rows import CampaignRow, checked_campaign_id
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.errors import GoneError, InputError, NotFoundError, UnavailableError
from nextlabel.service.app_state import Service, app_state
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
from nextlabel.wording import iso

router = APIRouter(tags=["campaigns"])

_CREATE_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {"model": CampaignResponse, "description": "It existed already, with the same settings"},
    **problems(409),
}
_DELETE_RESPONSES = {status: text for status, text in problems(404).items() if status != 410}

#: Seconds that a read waits for its turn to expire leases; after that it reports them as they are stored.
EXPIRY_WAIT_S = 2.0


@router.post("/campaigns", status_code=201, responses=_CREATE_RESPONSES, response_model=CampaignResponse)
def create(body: CreateCampaignRequest, request: Request, response: Response, service: Service) -> dict[str, Any]:
    """Create a campaign; the same id with the same settings is the same campaign."""
    settings = body.model_dump(exclude_unset=True)
    id, token = settings.pop("id", None), principal_of(request).token
    if ":" in settings.get("policy", ""):
        raise InputError(
            "a policy of your own cannot be chosen over HTTP: the service would import what a client names.",
            "Create the campaign with nextlabel campaign create --policy module:Class on the server.",
        )
    config = CampaignSettings.from_dict(settings)
    if id is not None:
        checked_campaign_id(id)
        with suppress(NotFoundError):
            service.store.row(id)
            response.status_code = 200
    made = service.create(config, id, owner="" if token is None else token.owner)
    request_context(request).created = made.id
    return campaign_json(service.store.row(made.id))


@router.get("/campaigns", responses=problems(), response_model=CampaignsResponse)
def campaigns(request: Request, service: Service) -> dict[str, Any]:
    """List the campaigns that the token opens, newest first."""
    rows = app_state(request).access.opened(principal_of(request).token, service.store.campaigns())
    return {"campaigns": [campaign_json(row, _names_workers(request)) for row in rows]}


@router.get("/campaigns/{campaign}", responses=problems(404), response_model=CampaignResponse)
def status(campaign: CampaignId, request: Request) -> dict[str, Any]:
    """Show a campaign's settings and counters."""
    return campaign_json(current_row(request, campaign), _names_workers(request))


@router.patch("/campaigns/{campaign}", responses=problems(404, 409), response_model=CampaignResponse)
def change(campaign: CampaignId, body: ChangeCampaignRequest, service: Service) -> dict[str, Any]:
    """Change what may change while a campaign runs: budget, deadline, pay, what workers see. The rest stays."""
    return status_json(service[campaign].change(**body.model_dump(exclude_unset=True)))


@router.delete("/campaigns/{campaign}", responses=_DELETE_RESPONSES, response_model=DeletedResponse)
def delete(campaign: CampaignId, service: Service) -> dict[str, Any]:
    """Delete a campaign with its tasks, labels, log and links, for good; a second time, nothing happens."""
    try:
        at = service.deletions.begin(campaign).deleted_at
    except GoneError:
        before = service.store.records.deleted_at(campaign)
        assert before is not None
        at = before
    return {"id": campaign, "deleted_at": iso(at)}


def current_row(request: Request, id: str) -> CampaignRow:
    """The campaign's row now, with leases that have run out expired unless that takes long."""
    state = app_state(request)
    store, now = state.campaign_service.store, state.campaign_service.clock()
    row = store.row(id)
    out = store.leases(id, open=True, limit=1) if row.reserved else []
    past_deadline = row.closed_seq is None and row.deadline is not None and now >= row.deadline
    if not past_deadline and all(lease.expires_at > now for lease in out):
        return row

    def settle(commands: Commands) -> CampaignRow:
        commands.settle()
        return replace(commands.state.row)

    async def settled() -> CampaignRow:
        return await asyncio.wait_for(state.command_queue.run(id, settle), EXPIRY_WAIT_S)

    try:
        return from_thread.run(settled)
    except (TimeoutError, UnavailableError):
        return row


def campaign_json(row: CampaignRow, names_workers: bool = True) -> dict[str, Any]:
    """What the requester is told about a campaign; a viewer hears nothing of single workers."""
    status = status_of(row)
    if not names_workers:
        status = replace(status, notices=tuple(one for one in status.notices if one.worker is None))
    return status_json(status)


def _names_workers(request: Request) -> bool:
    role = principal_of(request).role
    return role is not None and ROLES[role].sees_workers
