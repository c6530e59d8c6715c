"""The status of a campaign as the service reports it, after leases that have run out were expired."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

from anyio import to_thread

from nextlabel.campaign.commands import Commands
from nextlabel.campaign.rates import arrival_rate, completion_rate, lease_seconds
from nextlabel.campaign.rows import CampaignRow
from nextlabel.service.app_state import AppState
from nextlabel.service.response_models import CampaignResponse, RatesResponse
from nextlabel.service.times import iso, iso_or_none

#: Seconds that a read waits for its turn to expire leases; after that it reports them as they are stored.
EXPIRY_WAIT_S = 2.0


async def current_row(state: AppState, id: str) -> CampaignRow:
    """The campaign's row now, with leases that have run out expired unless that takes long."""
    row = await to_thread.run_sync(state.campaign_service.store.row, id)
    past_deadline = row.deadline is not None and state.campaign_service.clock() >= row.deadline
    if row.reserved == 0 and (row.closed_seq is not None or not past_deadline):
        return row
    try:
        return await asyncio.wait_for(row_after(state, id, Commands.settle), EXPIRY_WAIT_S)
    except TimeoutError:
        return row


async def row_after(state: AppState, id: str, command: Callable[[Commands], None]) -> CampaignRow:
    """The row of a campaign after a command."""

    def run(commands: Commands) -> CampaignRow:
        command(commands)
        return replace(commands.ledger.row)

    return await state.command_queue.run(id, run)


def campaign_response(row: CampaignRow) -> CampaignResponse:
    """What the requester is told about a campaign."""
    settings = row.config.to_dict()
    settings.update(budget=row.budget, deadline=iso_or_none(row.deadline), lease_seconds=row.lease_seconds)
    return CampaignResponse(
        id=row.id,
        state=row.state,
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
        rates=RatesResponse(arrivals=arrival_rate(row), completions=completion_rate(row)),
        rho=row.rho,
    )
