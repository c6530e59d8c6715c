"""Who sends a request and whether they may: decided from path and token before anything of it is read.

============================================ =====================================================
path                                         for
============================================ =====================================================
healthz, openapi.json; all outside the API   anybody
campaigns/{id}/ask, leases/{id}/...          the requester, and workers with a link of that campaign
everything else                              the requester
============================================ =====================================================

A token that was replaced is known to running processes after ``FRESH_S`` seconds at the latest.
"""

from __future__ import annotations

import re
import time
from typing import NamedTuple

from anyio import to_thread

from nextlabel.campaign.ledger import Store
from nextlabel.service.links import Links
from nextlabel.service.problem_details import NotAllowedError, TokenError
from nextlabel.service.tokens import NAME, PREFIX, matches

API = "/api/v1"
#: The requester's hash is read again after so many seconds; a token that does not match it after fewer.
FRESH_S, AGAIN_S = 5.0, 1.0
_OPEN = frozenset({f"{API}/healthz", f"{API}/openapi.json"})
_METRICS = frozenset({"/metrics", f"{API}/metrics"})
_WORK = re.compile(rf"{API}/(?:campaigns/[^/]+/ask|leases/[^/]+/(?:tell|release|renew|undo))")
_HINT = "Send the header 'Authorization: Bearer TOKEN'."


class Principal(NamedTuple):
    """The sender: a worker of one campaign, or the requester (None and None)."""

    campaign: str | None = None
    worker: str | None = None


REQUESTER = Principal()


class Authenticator:
    """Tells senders apart."""

    def __init__(self, store: Store, links: Links, open_metrics: bool = False) -> None:
        self._store, self._links = store, links
        self._open = _OPEN | _METRICS if open_metrics else _OPEN
        self._kept: str | None = None
        self._read_at = float("-inf")

    async def admit(self, path: str, authorization: bytes | None) -> Principal | None:
        """The sender of a request, None where anybody may; or a TokenError or NotAllowedError."""
        if not path.startswith(API + "/") and path not in _METRICS:
            return None
        if path in self._open:
            return None
        who = await self.who(authorization)
        if who is not REQUESTER and _WORK.fullmatch(path) is None:
            raise NotAllowedError("a worker's link is for work on tasks only.", "Use the requester's token.")
        return who

    async def who(self, authorization: bytes | None) -> Principal:
        """The sender by the Authorization header."""
        scheme, _, token = (authorization or b"").decode("latin-1").partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token:
            raise TokenError("the request has no token.", _HINT)
        if not token.startswith(PREFIX):
            key = self._links.read_worker(token)
            if key is None:
                raise TokenError("the token is not one of this service.", _HINT)
            return Principal(key.campaign, key.worker)
        if not await self._is_requester(token):
            raise TokenError("the token is not the requester's.", "Make a new one with nextlabel token.")
        return REQUESTER

    async def _is_requester(self, token: str) -> bool:
        age = time.monotonic() - self._read_at
        known = age < FRESH_S and matches(token, self._kept)
        if known or age < AGAIN_S:
            return known
        self._kept = await to_thread.run_sync(self._store.setting, NAME)
        self._read_at = time.monotonic()
        return matches(token, self._kept)
