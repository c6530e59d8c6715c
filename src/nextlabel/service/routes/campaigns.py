"""Campaigns: make, list, look at, change, pause, resume."""

from __future__ import annotations

from typing import Any

from anyio import to_thread
from fastapi import APIRouter, Request, Response

from nextlabel.campaign.commands import Commands
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.campaign.ids import checked_campaign_id
from nextlabel.campaign.rows import CampaignRow
from nextlabel.campaigns.service import CampaignService
from nextlabel.errors import NotFoundError
from nextlabel.service.openapi import problems
from nextlabel.service.path_names import CampaignName, campaign_named
from nextlabel.service.request_models import Change, NewCampaign
from nextlabel.service.response_models import Campaigns, Status
from nextlabel.service.services import services_of
from nextlabel.service.status import after, row_now, status_of
from nextlabel.service.times import seconds_of

router = APIRouter(tags=["campaigns"])
_MADE: dict[int | str, dict[str, Any]] = {
    200: {"model": Status, "description": "There already, with these settings"},
    **problems(409),
}


@router.post("/campaigns", status_code=201, responses=_MADE)
async def create(given: NewCampaign, request: Request, response: Response) -> Status:
    """A new campaign; the same id with the same settings is the same campaign."""
    table = given.model_dump(exclude_unset=True)
    id = table.pop("id", None)
    if "deadline" in table:
        table["deadline"] = seconds_of("deadline", table["deadline"])
    row, new = await to_thread.run_sync(_made, services_of(request).campaign_service, table, id)
    response.status_code = 201 if new else 200
    return status_of(row)


def _made(campaign_service: CampaignService, table: dict[str, Any], id: str | None) -> tuple[CampaignRow, bool]:
    config = CampaignSettings.from_dict(table)
    new = True
    if id is not None:
        checked_campaign_id(id)
        try:
            campaign_service.store.row(id)
            new = False
        except NotFoundError:
            pass
    return campaign_service.create(config, id), new


@router.get("/campaigns", responses=problems())
async def campaigns(request: Request) -> Campaigns:
    """All campaigns, newest first."""
    rows = await to_thread.run_sync(services_of(request).campaign_service.store.campaigns)
    return Campaigns(campaigns=[status_of(row) for row in rows])


@router.get("/campaigns/{campaign}", responses=problems(404))
async def status(campaign: CampaignName, request: Request) -> Status:
    """How a campaign stands."""
    return status_of(await row_now(services_of(request), campaign_named(campaign)))


@router.patch("/campaigns/{campaign}", responses=problems(404, 409))
async def change(campaign: CampaignName, given: Change, request: Request) -> Status:
    """Another budget, deadline or lease time; what is left out stays."""
    values = given.model_dump(exclude_unset=True)
    if "deadline" in values:
        values["deadline"] = seconds_of("deadline", values["deadline"])
    id = campaign_named(campaign)
    return status_of(await after(services_of(request), id, lambda commands: commands.change(**values)))


@router.post("/campaigns/{campaign}/pause", responses=problems(404))
async def pause(campaign: CampaignName, request: Request) -> Status:
    """No new leases; those that are out go on."""
    return status_of(await after(services_of(request), campaign_named(campaign), Commands.pause))


@router.post("/campaigns/{campaign}/resume", responses=problems(404))
async def resume(campaign: CampaignName, request: Request) -> Status:
    """New leases again."""
    return status_of(await after(services_of(request), campaign_named(campaign), Commands.resume))
