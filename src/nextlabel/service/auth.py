"""Who sends a request, and whether they may: decided from the path and the token, before the body is read.

============================================ ===========================================================
path                                         open to
============================================ ===========================================================
healthz, openapi.json; all outside the API   everybody
campaigns/{id}/ask, leases/{id}/...          the requester, and workers with a link to that campaign
everything else                              the requester
============================================ ===========================================================

When the requester's token is replaced, running processes notice within ``TOKEN_CACHE_S`` seconds. Text in a path that
cannot be the id of a campaign or a lease is not looked up, and leases of other campaigns do not exist for a worker.
"""

from __future__ import annotations

import re
import time
from typing import Annotated, NamedTuple

from anyio import to_thread
from fastapi import Path

from nextlabel.campaign.ids import PATTERN, campaign_of
from nextlabel.campaign.ledger import Store
from nextlabel.errors import NotAllowedError, NotFoundError, TokenError
from nextlabel.service.links import LinkSigner
from nextlabel.service.tokens import NAME, PREFIX, matches
from nextlabel.store.memory import no_campaign

API = "/api/v1"
#: Seconds for which the requester's token hash is cached, and for which a token that does not match it is refused
#: without another look at the store.
TOKEN_CACHE_S, MISMATCH_CACHE_S = 5.0, 1.0
_OPEN = frozenset({f"{API}/healthz", f"{API}/openapi.json"})
_METRICS = frozenset({"/metrics", f"{API}/metrics"})
_WORK = re.compile(rf"{API}/(?:campaigns/[^/]+/ask|leases/[^/]+/(?:tell|release|renew|undo))")
_CAMPAIGN = re.compile(PATTERN)
_LEASE = re.compile(rf"{PATTERN}-[0-9]{{1,18}}-[0-9a-f]{{1,40}}")
_HINT = "Send the header 'Authorization: Bearer TOKEN'."

CampaignId = Annotated[str, Path(description="The campaign's id")]
LeaseId = Annotated[str, Path(description="The lease's id")]


class Principal(NamedTuple):
    """The sender of a request: one worker of one campaign, or the requester (both None)."""

    campaign: str | None = None
    worker: str | None = None


REQUESTER = Principal()


class Authenticator:
    """Finds the sender of each request."""

    def __init__(self, store: Store, links: LinkSigner, open_metrics: bool = False) -> None:
        self._store, self._links = store, links
        self._open = _OPEN | _METRICS if open_metrics else _OPEN
        self._token_hash: str | None = None
        self._read_at = float("-inf")

    async def authenticate(self, path: str, authorization: bytes | None) -> Principal | None:
        """The sender, None where no token is needed; raises TokenError or NotAllowedError."""
        if not path.startswith(API + "/") and path not in _METRICS:
            return None
        if path in self._open:
            return None
        principal = await self._principal(authorization)
        if principal is not REQUESTER and _WORK.fullmatch(path) is None:
            raise NotAllowedError("a worker's link only allows work on tasks.", "Use the requester's token.")
        return principal

    async def _principal(self, authorization: bytes | None) -> Principal:
        scheme, _, token = (authorization or b"").decode("latin-1").partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token:
            raise TokenError("the request has no token.", _HINT)
        if not token.startswith(PREFIX):
            key = self._links.read_worker(token)
            if key is None:
                raise TokenError("the token was not issued by this service.", _HINT)
            return Principal(key.campaign, key.worker)
        if not await self._is_requester(token):
            raise TokenError("the token is not the requester's.", "Create a new one with nextlabel token.")
        return REQUESTER

    async def _is_requester(self, token: str) -> bool:
        age = time.monotonic() - self._read_at
        known = age < TOKEN_CACHE_S and matches(token, self._token_hash)
        if known or age < MISMATCH_CACHE_S:
            return known
        self._token_hash = await to_thread.run_sync(self._store.setting, NAME)
        self._read_at = time.monotonic()
        return matches(token, self._token_hash)


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
