"""Ids in paths: text that cannot be an id of a campaign or a lease is not looked up."""

from __future__ import annotations

import re
from typing import Annotated

from fastapi import Path

from nextlabel.campaign.ids import PATTERN, campaign_of
from nextlabel.errors import NotAllowedError, NotFoundError
from nextlabel.service.auth import Principal
from nextlabel.store.memory import no_campaign

_CAMPAIGN = re.compile(PATTERN)
_LEASE = re.compile(rf"{PATTERN}-[0-9]{{1,18}}-[0-9a-f]{{1,40}}")

CampaignId = Annotated[str, Path(description="The campaign's id")]
LeaseId = Annotated[str, Path(description="The lease's id")]


def campaign_id(text: str) -> str:
    """The id in a path, if a campaign can have it."""
    if _CAMPAIGN.fullmatch(text) is None:
        raise no_campaign(text)
    return text


def campaign_id_of_lease(lease: str, principal: Principal) -> str:
    """The campaign of a lease; for a worker, leases of other campaigns do not exist."""
    campaign = campaign_of(lease)
    if _LEASE.fullmatch(lease) is None or (principal.campaign is not None and principal.campaign != campaign):
        raise NotFoundError("there is no such lease.", "Ask for a task and use the lease's id.")
    return campaign


def workable_campaign_id(text: str, principal: Principal) -> str:
    """The campaign in a path, if the sender may work on it."""
    if principal.campaign is not None and principal.campaign != text:
        raise NotAllowedError("the link is for another campaign.", "Ask for a link to this one.")
    return campaign_id(text)
