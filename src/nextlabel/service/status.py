"""A campaign's row as the service tells it, with leases judged by the clock."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

from anyio import to_thread

from nextlabel.campaign.commands import Commands
from nextlabel.campaign.rates import arrival_rate, completion_rate, lease_seconds
from nextlabel.campaign.rows import CampaignRow
from nextlabel.service.response_models import Rates, Status
from nextlabel.service.services import Services
from nextlabel.service.times import iso, iso_or_none

#: Seconds that a look at a campaign waits for its turn; after that it sees leases that are over as out.
TURN_S = 0.5


async def row_now(services: Services, id: str) -> CampaignRow:
    """A campaign as it stands, what is over expired if that does not take long."""
    row = await to_thread.run_sync(services.campaign_service.store.row, id)
    over = row.deadline is not None and services.campaign_service.clock() >= row.deadline
    if row.reserved == 0 and (row.closed_seq is not None or not over):
        return row
    try:
        return await asyncio.wait_for(after(services, id, Commands.settle), TURN_S)
    except TimeoutError:
        return row


async def after(services: Services, id: str, command: Callable[[Commands], None]) -> CampaignRow:
    """The row after a command."""

    def run(commands: Commands) -> CampaignRow:
        command(commands)
        return replace(commands.ledger.row)

    return await services.writer.run(id, run)


def status_of(row: CampaignRow) -> Status:
    """What a requester is told."""
    settings = row.config.to_dict()
    settings.update(budget=row.budget, deadline=iso_or_none(row.deadline), lease_seconds=row.lease_seconds)
    return Status(
        id=row.id,
        state="closed" if row.closed_seq is not None else "paused" if row.paused else "open",
        closed_reason=row.closed_reason,
        closed_by=row.closed_seq,
        settings=settings,
        created_at=iso(row.created_at),
        last_at=iso(row.last_at),
        seq=row.seq,
        tasks=row.tasks,
        full=row.full,
        budget=row.budget,
        spent=row.spent,
        reserved=row.reserved,
        left=row.left,
        deadline=iso_or_none(row.deadline),
        given=row.given,
        kept=row.kept,
        late=row.late,
        expired=row.expired,
        released=row.released,
        lease_seconds=lease_seconds(row),
        rates=Rates(arrivals=arrival_rate(row), completions=completion_rate(row)),
        rho=row.rho,
    )
