"""The status of a campaign as the service reports it, after leases that have run out were expired."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from anyio import to_thread

from nextlabel.campaign.commands import Commands
from nextlabel.campaign.rows import CampaignRow
from nextlabel.campaigns.status import status_of
from nextlabel.errors import UnavailableError
from nextlabel.service.app_state import AppState
from nextlabel.service.response_models import status_json

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
    except (TimeoutError, UnavailableError):
        return row


async def row_after(state: AppState, id: str, command: Callable[[Commands], None]) -> CampaignRow:
    """The row of a campaign after a command."""

    def run(commands: Commands) -> CampaignRow:
        command(commands)
        return replace(commands.ledger.row)

    return await state.command_queue.run(id, run)


def campaign_json(row: CampaignRow) -> dict[str, Any]:
    """What the requester is told about a campaign."""
    return status_json(status_of(row))
