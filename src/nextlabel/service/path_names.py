"""Names in addresses: what cannot be a campaign's or a lease's is not looked for."""

from __future__ import annotations

import re
from typing import Annotated

from fastapi import Path

from nextlabel.campaign.ids import PATTERN, campaign_of
from nextlabel.errors import NotFoundError
from nextlabel.service.auth import Principal
from nextlabel.service.problem_details import NotAllowedError
from nextlabel.store.memory import no_campaign

_CAMPAIGN = re.compile(PATTERN)
_LEASE = re.compile(rf"{PATTERN}-[0-9]{{1,18}}-[0-9a-f]{{1,40}}")

CampaignName = Annotated[str, Path(description="The campaign's id")]
LeaseName = Annotated[str, Path(description="The lease's id")]


def campaign_named(name: str) -> str:
    """A name that a campaign can have."""
    if _CAMPAIGN.fullmatch(name) is None:
        raise no_campaign(name)
    return name


def campaign_of_lease(lease: str, who: Principal) -> str:
    """The campaign of a lease; to a worker those of other campaigns do not exist."""
    campaign = campaign_of(lease)
    if _LEASE.fullmatch(lease) is None or (who.campaign is not None and who.campaign != campaign):
        raise NotFoundError("there is no such lease.", "Ask for a task and use the lease's id.")
    return campaign


def campaign_for(name: str, who: Principal) -> str:
    """The campaign that a sender may work on."""
    if who.campaign is not None and who.campaign != name:
        raise NotAllowedError("the link is for another campaign.", "Ask for a link to this one.")
    return campaign_named(name)
