"""Who is working: a signed cookie per campaign, so that no token stays in an address, a history or a referrer.

========== ==============================================================================================
cookie     holds
========== ==============================================================================================
nl_worker  campaign, worker, the platform's completion link and the versions of the links by which the worker
           came, signed (``LinkSigner.sign``): a session ends when its link is revoked
nl_last    id of the lease answered last, for Undo; that of another worker has no effect
nl_read    the version of the instructions that was read here (``actions.version_of``)
========== ==============================================================================================

All are limited to ``/work/{campaign}``, hidden from scripts, and not sent with forms of other sites. The page does not
work without cookies: the alternative would be a token in every address.
"""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response

from nextlabel.campaign.records import JOIN_LINK
from nextlabel.errors import InputError, TokenError
from nextlabel.service.app_state import app_state
from nextlabel.service.links import LinkSigner, WorkerKey
from nextlabel.service.settings import PREFIX, ServiceSettings

KIND = "s3"
SESSION_COOKIE, LAST_LEASE_COOKIE, READ_COOKIE = "nl_worker", "nl_last", "nl_read"
MAX_AGE_S = 30 * 86_400
LONGEST_COMPLETION = 1000
COMPLETION = "completion"


class Completion(NamedTuple):
    """The platform's page at the end of the work, and its host."""

    address: str
    site: str


class WorkerSession(NamedTuple):
    """One worker on one campaign; ``completion`` is the https address to go to at the end, or empty.

    ``joined`` is the version of the platforms' link by which the worker came, None for a personal link; ``before`` is
    what they had labelled before they came by it.
    """

    campaign: str
    worker: str
    completion: str
    version: int
    joined: int | None
    before: int = 0

    @property
    def key(self) -> WorkerKey:
        """Who works on what."""
        return WorkerKey(self.campaign, self.worker)

    @property
    def address(self) -> str:
        """The address of the page."""
        return f"/work/{self.campaign}"

    @property
    def renew_address(self) -> str:
        """The address that extends a lease."""
        return f"{self.address}/renew"

    @property
    def assignment(self) -> None:
        """There is nothing to hand back: the page is in a window of its own."""
        return None

    @property
    def completion_site(self) -> str:
        """The host of the completion link, for display."""
        return urlsplit(self.completion).hostname or ""


def session_from_link(request: Request, key: WorkerKey, joined: bool, before: int = 0) -> WorkerSession:
    """The session of somebody who opened a personal link or, with ``joined``, that of a platform."""
    state = app_state(request)
    links, given = state.links, request.query_params.get(COMPLETION, "")
    completion = checked_completion(given, state.settings)
    by_platform = links.version(key.campaign, JOIN_LINK) if joined else None
    return WorkerSession(key.campaign, key.worker, completion, links.version(*key), by_platform, before)


def session_from_cookie(request: Request, campaign: str) -> WorkerSession:
    """The session of a request; raises TokenError if there is none."""
    links = app_state(request).links
    payload = links.read(KIND, request.cookies.get(SESSION_COOKIE, ""))
    session = None if payload is None else WorkerSession(*payload)
    if session is None or session.campaign != campaign or not _current(links, session):
        raise TokenError(
            "this page does not know who you are.",
            "Open the link that you were sent again, and allow cookies for this site.",
        )
    return session


def completion_of(request: Request) -> Completion | None:
    """Where somebody whose campaign was deleted finishes on their platform, by their session or by their link."""
    payload = app_state(request).links.read(KIND, request.cookies.get(SESSION_COOKIE, ""))
    address = "" if payload is None else WorkerSession(*payload).completion
    with suppress(InputError):
        address = checked_completion(request.query_params.get(COMPLETION, ""), app_state(request).settings) or address
    return Completion(address, urlsplit(address).hostname or "") if address else None


def last_lease(request: Request) -> str:
    """The lease that was answered last, according to the browser."""
    return request.cookies.get(LAST_LEASE_COOKIE, "")


def set_session_cookie(request: Request, response: Response, session: WorkerSession) -> None:
    """Store the session in the browser."""
    _set(request, response, session, SESSION_COOKIE, _signed(app_state(request).links, session))


def set_last_lease_cookie(request: Request, response: Response, session: WorkerSession, lease: str) -> None:
    """Store in the browser which lease was answered last."""
    _set(request, response, session, LAST_LEASE_COOKIE, lease)


def instructions_read(request: Request) -> str:
    """The version of the instructions that was read in this browser."""
    return request.cookies.get(READ_COOKIE, "")


def set_read_cookie(request: Request, response: Response, session: WorkerSession, version: str) -> None:
    """Store in the browser which instructions were read."""
    _set(request, response, session, READ_COOKIE, version)


def checked_completion(address: str, settings: ServiceSettings) -> str:
    """The completion link, or empty; it is not signed, so it must lead to a site that the service's settings name."""
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
    if not settings.completes_at(parts.netloc):
        raise InputError(
            f"the completion link leads to {parts.netloc[:100]}, which this service does not know.",
            f"Whoever runs the service can allow more sites than {settings.completion_hosts or 'none'} in "
            f"{PREFIX}COMPLETION_HOSTS.",
        )
    return address


def _current(links: LinkSigner, session: WorkerSession) -> bool:
    """Whether the link by which the worker came has not been revoked since."""
    by_platform = session.joined is None or session.joined == links.version(session.campaign, JOIN_LINK)
    return by_platform and session.version == links.version(session.campaign, session.worker)


def _signed(links: LinkSigner, session: WorkerSession) -> str:
    return links.sign(KIND, list(session))


def _set(request: Request, response: Response, session: WorkerSession, name: str, value: str) -> None:
    secure = bool(app_state(request).settings.cookie_secure)
    response.set_cookie(
        name, value, max_age=MAX_AGE_S, path=session.address, secure=secure, httponly=True, samesite="lax"
    )
