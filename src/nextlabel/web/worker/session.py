"""Who is working: a signed cookie per campaign, so that no token stays in an address, a history or a referrer.

========== ==============================================================================================
cookie     holds
========== ==============================================================================================
nl_worker  campaign, worker and the platform's completion link, signed (``LinkSigner.sign``)
nl_last    id of the lease answered last, for Undo; that of another worker has no effect
========== ==============================================================================================

Both are limited to ``/work/{campaign}``, hidden from scripts, and not sent with forms of other sites. The page does not
work without cookies: the alternative would be a token in every address.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response

from nextlabel.errors import InputError, TokenError
from nextlabel.service.app_state import app_state
from nextlabel.service.links import LinkSigner, WorkerKey

KIND = "s2"
SESSION_COOKIE, LAST_LEASE_COOKIE = "nl_worker", "nl_last"
MAX_AGE_S = 30 * 86_400
LONGEST_COMPLETION = 1000
COMPLETION = "completion"


class WorkerSession(NamedTuple):
    """One worker on one campaign; ``completion`` is the https address to go to at the end, or empty."""

    campaign: str
    worker: str
    completion: str

    @property
    def address(self) -> str:
        """The address of the page."""
        return f"/work/{self.campaign}"

    @property
    def completion_site(self) -> str:
        """The host of the completion link, for display."""
        return urlsplit(self.completion).hostname or ""


def session_from_link(key: WorkerKey, parameters: Mapping[str, str]) -> WorkerSession:
    """The session of somebody who opened a link."""
    return WorkerSession(key.campaign, key.worker, checked_completion(parameters.get(COMPLETION, "")))


def session_from_cookie(request: Request, campaign: str) -> WorkerSession:
    """The session of a request; raises TokenError if there is none."""
    payload = app_state(request).links.read(KIND, request.cookies.get(SESSION_COOKIE, ""))
    if payload is None or payload[0] != campaign:
        raise TokenError(
            "this page does not know who you are.",
            "Open the link that you were sent again, and allow cookies for this site.",
        )
    return WorkerSession(*payload)


def last_lease(request: Request) -> str:
    """The lease that was answered last, according to the browser."""
    return request.cookies.get(LAST_LEASE_COOKIE, "")


def set_session_cookie(request: Request, response: Response, session: WorkerSession) -> None:
    """Store the session in the browser."""
    _set(request, response, session, SESSION_COOKIE, _signed(app_state(request).links, session))


def set_last_lease_cookie(request: Request, response: Response, session: WorkerSession, lease: str) -> None:
    """Store in the browser which lease was answered last."""
    _set(request, response, session, LAST_LEASE_COOKIE, lease)


def checked_completion(address: str) -> str:
    """The completion link if it is an https address, or empty."""
    if not address:
        return ""
    try:
        parts = urlsplit(address)
        plain = parts.scheme == "https" and parts.hostname and "@" not in parts.netloc
    except ValueError:
        plain = False
    if not plain or len(address) > LONGEST_COMPLETION or not address.isascii() or not address.isprintable():
        raise InputError(
            "the completion link is not an https address.",
            "Give e.g. https://app.prolific.com/submissions/complete?cc=CODE.",
        )
    return address


def _signed(links: LinkSigner, session: WorkerSession) -> str:
    return links.sign(KIND, list(session))


def _set(request: Request, response: Response, session: WorkerSession, name: str, value: str) -> None:
    secure = bool(app_state(request).settings.cookie_secure)
    response.set_cookie(
        name, value, max_age=MAX_AGE_S, path=session.address, secure=secure, httponly=True, samesite="lax"
    )
