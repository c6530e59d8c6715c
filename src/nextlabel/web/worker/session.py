"""Who is at the page: a signed cookie, for one campaign each, so that the token is in no address, history or referrer.

========== ==============================================================================================
cookie     holds
========== ==============================================================================================
nl_worker  campaign, worker and the platform's completion link, signed (``LinkSigner.sign``)
nl_last    id of the lease answered last, for Undo; another worker's does nothing
========== ==============================================================================================

Both belong to ``/work/{campaign}``, are out of scripts' reach and do not travel with other sites' forms. Without
cookies there is no work: the alternative is a token in every address.
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
WHO, LAST = "nl_worker", "nl_last"
LASTS_S = 30 * 86_400
LONGEST_COMPLETION = 1000
COMPLETION = "completion"


class Session(NamedTuple):
    """One worker at one campaign; ``completion`` is the https address to go to at the end, or empty."""

    campaign: str
    worker: str
    completion: str

    @property
    def address(self) -> str:
        """The page."""
        return f"/work/{self.campaign}"

    @property
    def completion_site(self) -> str:
        """The site of the completion link, to be shown."""
        return urlsplit(self.completion).hostname or ""


def opened(key: WorkerKey, parameters: Mapping[str, str]) -> Session:
    """The session of somebody who came by a link."""
    return Session(key.campaign, key.worker, checked_completion(parameters.get(COMPLETION, "")))


def session_of(request: Request, campaign: str) -> Session:
    """Who a request is from, or a TokenError."""
    said = app_state(request).links.read(KIND, request.cookies.get(WHO, ""))
    if said is None or said[0] != campaign:
        raise TokenError(
            "this page does not know who you are.",
            "Open the link that you were sent once more, and allow cookies for this site.",
        )
    return Session(*said)


def last_of(request: Request) -> str:
    """The lease that was answered last, as the browser says."""
    return request.cookies.get(LAST, "")


def remember(request: Request, response: Response, session: Session) -> None:
    """Give the browser its session."""
    _set(request, response, session, WHO, _signed(app_state(request).links, session))


def remember_last(request: Request, response: Response, session: Session, lease: str) -> None:
    """Have the browser keep which lease was answered last."""
    _set(request, response, session, LAST, lease)


def checked_completion(address: str) -> str:
    """A completion link: https, or none."""
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


def _signed(links: LinkSigner, session: Session) -> str:
    return links.sign(KIND, list(session))


def _set(request: Request, response: Response, session: Session, name: str, value: str) -> None:
    secure = bool(app_state(request).settings.cookie_secure)
    response.set_cookie(
        name, value, max_age=LASTS_S, path=session.address, secure=secure, httponly=True, samesite="lax"
    )
