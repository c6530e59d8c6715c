"""What the verbs of ``nextlabel campaign`` share: the database's office, and a campaign in a few words."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nextlabel.cli.flag_values import parse_number
from nextlabel.cli.serve import needs_service

if TYPE_CHECKING:
    from nextlabel.campaign.rows import CampaignRow
    from nextlabel.campaigns.service import CampaignService

Id = Annotated[str, typer.Argument(metavar="ID", help="The campaign; see nextlabel campaign status.")]


@contextmanager
def service_at(db: str) -> Iterator[CampaignService]:
    """Commands on the database."""
    needs_service()
    from nextlabel.campaigns.service import CampaignService
    from nextlabel.store.open import open_store

    campaign_service = CampaignService(open_store(db))
    try:
        yield campaign_service
    finally:
        campaign_service.close()


def number_of(name: str, text: str) -> float:
    """What was typed as a number."""
    return parse_number(name, text, "Give a number.")


def state_of(row: CampaignRow) -> str:
    """Open, paused or closed, with the reason why it is closed."""
    return row.state if row.closed_reason is None else f"{row.state} ({row.closed_reason})"


def fields_of(row: CampaignRow) -> dict[str, Any]:
    """What ``--json`` tells of a campaign."""
    names = (
        "id", "state", "closed_reason", "tasks", "budget", "spent", "reserved", "left", "given", "kept", "late",
        "expired", "released", "seq",
    )  # fmt: skip
    return {**{name: getattr(row, name) for name in names}, "name": row.config.name}
