"""Who is working: a session that is signed, so that no token stays in an address, a history or a referrer.

In a window of its own the page keeps cookies:

========== ==============================================================================================
cookie     holds
========== ==============================================================================================
nl_worker  the session, signed (``LinkSigner.sign``); it ends when a link is revoked by which the worker came
nl_last    id of the lease answered last, for Undo; that of another worker has no effect
nl_read    the version of the instructions that was read here (``steps.version_of``)
========== ==============================================================================================

All are limited to ``/work/{campaign}``, hidden from scripts, and not sent with forms of other sites.

In a frame of Mechanical Turk browsers keep no cookies of ours, so that all three are in the address, which begins with
``/frame/{token}``. No other site learns it: referrers stay here. These addresses alone may be framed, by the sites of
the setting ``frame_hosts``. The way back is a form to ``/mturk/externalSubmit`` of the site that MTurk named, if that
is one of the setting ``submit_hosts``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self
from urllib.parse import urlencode, urlsplit

from starlette.requests import Request
from starlette.responses import Response

from nextlabel.campaign.records import JOIN_LINK
from nextlabel.errors import InputError, TokenError
from nextlabel.integrations import mturk
from nextlabel.service.app_state import app_state
from nextlabel.service.auth import campaign_id
from nextlabel.service.links import INVALID_LINK, LinkSigner, WorkerKey
from nextlabel.service.middleware import request_context
from nextlabel.service.settings import PREFIX, ServiceSettings
from nextlabel.web.worker.steps import version_read

#: Kinds of signed sessions: in a cookie, and in an address.
COOKIE_KIND, FRAME_KIND = "s3", "f1"
SESSION_COOKIE, LAST_LEASE_COOKIE, READ_COOKIE = "nl_worker", "nl_last", "nl_read"
MAX_AGE_S = 30 * 86_400
LONGEST_COMPLETION = 1000
COMPLETION = "completion"
WORK, FRAME = "/work/", "/frame/"
NO_SESSION = (
    "this page does not know who you are.",
    "Open the link that you were sent again, and allow cookies for this site.",
)


@dataclass(frozen=True, slots=True)
class WorkerSession:
    """One worker on one campaign; ``completion`` is the https address to go to at the end, or empty.

    ``version`` and ``joined`` are those of the links by which the worker came, ``joined`` None for a personal one, and
    ``before`` is what they had labelled before they came by a platform's. In a frame there is an ``assignment`` to hand
    back, and a ``token`` that stands for all this. ``read`` is the version of the instructions that was read, ``last``
    the lease answered last, as the browser says.
    """

    campaign: str
    worker: str
    completion: str
    version: int
    joined: int | None
    before: int = 0
    assignment: mturk.Assignment | None = None
    token: str = ""
    read: str = ""
    last: str = ""

    @property
    def key(self) -> WorkerKey:
        """Who works on what."""
        return WorkerKey(self.campaign, self.worker)

    @property
    def place(self) -> str:
        """The page, without what the browser says."""
        return f"{FRAME}{self.token}" if self.token else f"{WORK}{self.campaign}"

    @property
    def address(self) -> str:
        """The address of the page."""
        state = {name: value for name, value in (("read", self.read), ("last", self.last)) if value and self.token}
        return self.place + (f"?{urlencode(state)}" if state else "")

    def noted(self, note: str | None) -> str:
        """The address of the page with a note on it."""
        return self.address + (f"{'&' if '?' in self.address else '?'}note={note}" if note else "")

    def signed(self, links: LinkSigner, kind: str) -> str:
        """The session as a token."""
        facts = (self.campaign, self.worker, self.completion, self.version, self.joined, self.before, self.assignment)
        return links.sign(kind, list(facts))

    @classmethod
    def of(cls, links: LinkSigner, kind: str, token: str) -> Self | None:
        """The session of a token, None if it is not valid."""
        payload = links.read(kind, token)
        return payload and cls(*[*payload[:6], payload[6] and mturk.Assignment(*payload[6])])


def session_from_link(
    request: Request, key: WorkerKey, joined: bool, before: int = 0, assignment: mturk.Assignment | None = None
) -> WorkerSession:
    """The session of somebody who opened a personal link or, with ``joined``, that of a platform."""
    links = app_state(request).links
    given = request.query_params.get(COMPLETION, "") if assignment is None else ""
    completion = checked_completion(given, app_state(request).settings)
    by_platform = links.version(key.campaign, JOIN_LINK) if joined else None
    found = WorkerSession(key.campaign, key.worker, completion, links.version(*key), by_platform, before, assignment)
    return found if assignment is None else replace(found, token=found.signed(links, FRAME_KIND))


def session_of(request: Request, place: str) -> WorkerSession:
    """The session of a request to ``/work/{campaign}`` or ``/frame/{token}``; raises TokenError if there is none."""
    links, given, refused = app_state(request).links, request.query_params, NO_SESSION
    if request.url.path.startswith(FRAME):
        allow_framing(request)
        found, refused = WorkerSession.of(links, FRAME_KIND, place), INVALID_LINK
        token, read, last = place, given.get("read", ""), given.get("last", "")[:200]
    else:
        campaign, cookies = campaign_id(place), request.cookies
        found = WorkerSession.of(links, COOKIE_KIND, cookies.get(SESSION_COOKIE, ""))
        found = found if found is not None and found.campaign == campaign else None
        token, read, last = "", cookies.get(READ_COOKIE, ""), cookies.get(LAST_LEASE_COOKIE, "")
    # The link by which the worker came may have been revoked since.
    by_platform = None if found is None or found.joined is None else links.version(found.campaign, JOIN_LINK)
    if found is None or found.joined != by_platform or found.version != links.version(*found.key):
        raise TokenError(*refused)
    request_context(request).worker = found.worker
    return replace(found, token=token, read=version_read(read), last=last)


def allow_framing(request: Request) -> None:
    """Let the page that answers a request, also one with an error, be framed by the sites of the settings."""
    request_context(request).framed = bool(app_state(request).settings.frame_origins)


def keep_cookie(request: Request, response: Response, session: WorkerSession, name: str, value: str) -> None:
    """Store something in the browser, for the page of the campaign alone."""
    secure = bool(app_state(request).settings.cookie_secure)
    response.set_cookie(
        name, value, max_age=MAX_AGE_S, path=session.address, secure=secure, httponly=True, samesite="lax"
    )


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
