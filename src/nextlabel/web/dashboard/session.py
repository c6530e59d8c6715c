"""Who is signed in at the dashboard: a cookie with random bits, of which the store keeps the hash.

Nothing in the store is enough to make a cookie. A session ends at sign-out, after ``MAX_AGE_S`` seconds, and when the
token with which it began is revoked or replaced.
"""

from __future__ import annotations

import secrets
import time

from starlette.requests import Request
from starlette.responses import Response

from nextlabel.campaign.access import Role, Session
from nextlabel.campaign.ledger import Store
from nextlabel.service.access import AccessCache
from nextlabel.service.tokens import hashed

COOKIE = "nl_requester"
MAX_AGE_S = 12 * 3600


class DashboardSessions:
    """Begins, finds and ends sessions."""

    def __init__(self, store: Store, access: AccessCache, secure: bool) -> None:
        self._store, self._access, self._secure = store, access, secure

    def sign_in(self, token: str, response: Response) -> bool:
        """Give the browser a cookie; False if the token is unknown."""
        known = self._access.read().tokens.get(hashed(token))
        if known is None:
            return False
        cookie = secrets.token_urlsafe(32)
        self._store.access.end_sessions(time.time() - MAX_AGE_S)
        self._store.access.add_session(Session(hashed(cookie), known.hash, time.time()))
        response.set_cookie(
            COOKIE, cookie, max_age=MAX_AGE_S, path="/", secure=self._secure, httponly=True, samesite="strict"
        )
        return True

    def role(self, request: Request) -> Role | None:
        """The role of the browser that sent a request, None if it is not signed in."""
        cookie = request.cookies.get(COOKIE, "")
        session = self._store.access.session(hashed(cookie)) if cookie else None
        if session is None or time.time() - session.created_at >= MAX_AGE_S:
            return None
        token = self._access.state.tokens.get(session.token_hash)
        return None if token is None else token.role

    def sign_out(self, request: Request, response: Response) -> None:
        """End the session, in the store and in the browser."""
        cookie = request.cookies.get(COOKIE, "")
        if cookie:
            self._store.access.end_session(hashed(cookie))
        response.delete_cookie(COOKIE, path="/", secure=self._secure, httponly=True, samesite="strict")
