"""Who is signed in: a signed cookie that expires, and that becomes invalid with the token for which it was issued."""

from __future__ import annotations

import hashlib
import time
from threading import Lock

from starlette.requests import Request
from starlette.responses import Response

from nextlabel.campaign.ledger import Store
from nextlabel.service.app_state import app_state
from nextlabel.service.links import LinkSigner
from nextlabel.service.tokens import NAME, matches

COOKIE, KIND = "nl_requester", "d2"
MAX_AGE_S = 12 * 3600
#: Seconds for which the hash of the requester's token is cached.
TOKEN_CACHE_S = 5.0


class RequesterSessions:
    """Issues and reads the cookies."""

    def __init__(self, store: Store, links: LinkSigner) -> None:
        self._store, self._links = store, links
        self._token_hash: str | None = None
        self._read_at = float("-inf")
        self._lock = Lock()

    def is_token(self, token: str) -> bool:
        """Whether this is the requester's token."""
        return matches(token, self._hash(0.0))

    def sign_in(self, request: Request, response: Response) -> None:
        """Give the browser a cookie."""
        secure = bool(app_state(request).settings.cookie_secure)
        value = self._links.sign(KIND, [self._fingerprint()], timed=True)
        response.set_cookie(
            COOKIE, value, max_age=MAX_AGE_S, path="/", secure=secure, httponly=True, samesite="strict"
        )  # fmt: skip

    def signed_in(self, request: Request) -> bool:
        """Whether a request comes from a browser that is signed in."""
        payload = self._links.read(KIND, request.cookies.get(COOKIE, ""), max_age_s=MAX_AGE_S)
        return bool(payload == [self._fingerprint()])

    def _fingerprint(self) -> str:
        """A text that changes with the token and reveals nothing about it."""
        return hashlib.sha256(b"dashboard" + (self._hash(TOKEN_CACHE_S) or "").encode()).hexdigest()[:16]

    def _hash(self, max_age_s: float) -> str | None:
        with self._lock:
            if time.monotonic() - self._read_at >= max_age_s:
                self._token_hash = self._store.setting(NAME)
                self._read_at = time.monotonic()
            return self._token_hash


def sign_out(response: Response) -> None:
    """Delete the browser's cookie."""
    response.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")
