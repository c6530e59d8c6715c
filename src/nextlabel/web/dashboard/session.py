"""Who is signed in: a signed cookie that ends by itself, and with the token that it was given for."""

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
LASTS_S = 12 * 3600
#: The requester's hash is read again after so many seconds.
FRESH_S = 5.0


class Sessions:
    """Cookies given out and read."""

    def __init__(self, store: Store, links: LinkSigner) -> None:
        self._store, self._links = store, links
        self._kept: str | None = None
        self._read_at = float("-inf")
        self._lock = Lock()

    def known(self, token: str) -> bool:
        """Whether it is the requester's token, compared in constant time."""
        return matches(token, self._hash(0.0))

    def open(self, request: Request, response: Response) -> None:
        """Sign the browser in."""
        secure = bool(app_state(request).settings.cookie_secure)
        value = self._links.sign(KIND, [self._mark()], timed=True)
        response.set_cookie(
            COOKIE, value, max_age=LASTS_S, path="/", secure=secure, httponly=True, samesite="strict"
        )  # fmt: skip

    def signed_in(self, request: Request) -> bool:
        """Whether a request comes from somebody who is signed in."""
        return bool(self._links.read(KIND, request.cookies.get(COOKIE, ""), max_age_s=LASTS_S) == [self._mark()])

    def _mark(self) -> str:
        """Changes with the token; says nothing about it."""
        return hashlib.sha256(b"dashboard" + (self._hash(FRESH_S) or "").encode()).hexdigest()[:16]

    def _hash(self, fresh_s: float) -> str | None:
        with self._lock:
            if time.monotonic() - self._read_at >= fresh_s:
                self._kept = self._store.setting(NAME)
                self._read_at = time.monotonic()
            return self._kept


def close(response: Response) -> None:
    """Sign the browser out."""
    response.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")
