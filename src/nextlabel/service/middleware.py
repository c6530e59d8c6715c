"""What every request passes: an id, the sender, security headers, errors as problem details, one line in the log.

Plain ASGI: a request through here costs some ten microseconds.
"""

from __future__ import annotations

import logging
import random
import re
import time
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from nextlabel.campaign.ids import campaign_of
from nextlabel.service.auth import REQUESTER, Authenticator, Principal
from nextlabel.service.logs import log_request, request_log
from nextlabel.service.metrics import Metrics
from nextlabel.service.problem_details import problem

_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
#: On every response that does not set its own; pages need another policy.
SECURITY = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"x-frame-options", b"DENY"),
    (b"cache-control", b"no-store"),
)


@dataclass(slots=True)
class RequestContext:
    """One request as the log tells of it; ``who`` is None where anybody may come."""

    request_id: str
    who: Principal | None = None
    worker: str | None = None
    status: int = 0


def context_of(request: Request) -> RequestContext:
    """The visit that a request belongs to."""
    visit: RequestContext = request.scope["nextlabel"]
    return visit


def sender_of(request: Request) -> Principal:
    """Who sent a request of the API."""
    return context_of(request).who or REQUESTER


class RequestMiddleware:
    """The outermost layer."""

    def __init__(self, app: ASGIApp, doorkeeper: Authenticator, tally: Metrics) -> None:
        self._app, self._doorkeeper, self._tally = app, doorkeeper, tally

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begin = time.perf_counter()
        authorization: bytes | None = None
        given: bytes | None = None
        for name, value in scope["headers"]:
            if name == b"authorization":
                authorization = value
            elif name == b"x-request-id":
                given = value
        known = given is not None and _ID.fullmatch(given)
        visit = RequestContext(given.decode() if known and given is not None else f"{random.getrandbits(64):016x}")
        scope["nextlabel"] = visit

        async def dressed(message: Message) -> None:
            if message["type"] == "http.response.start":
                visit.status = message["status"]
                headers = list(message.get("headers", ()))
                there = {name for name, _ in headers}
                headers.extend(pair for pair in SECURITY if pair[0] not in there)
                headers.append((b"x-request-id", visit.request_id.encode()))
                message["headers"] = headers
            await send(message)

        try:
            visit.who = await self._doorkeeper.admit(scope["path"], authorization)
            await self._app(scope, receive, dressed)
        except Exception as error:
            if visit.status:  # too late to say anything: the connection breaks off
                request_log.error("response broken off", exc_info=error, extra={"fields": _fields(scope, visit)})
                raise
            response = problem(error, visit.request_id)
            if response.status_code == 500:
                request_log.error("unexpected", exc_info=error, extra={"fields": _fields(scope, visit)})
            await response(scope, receive, dressed)
        finally:
            seconds = time.perf_counter() - begin
            self._tally.request(scope["method"], _route(scope), visit.status, seconds)
            if request_log.isEnabledFor(logging.INFO):
                log_request(_fields(scope, visit), seconds)


def _route(scope: Scope) -> str:
    """The template of the path, so that metrics do not grow with the campaigns."""
    return str(getattr(scope.get("route"), "path", "none"))


def _fields(scope: Scope, visit: RequestContext) -> dict[str, Any]:
    named = scope.get("path_params") or {}
    lease = named.get("lease")
    return {
        "request_id": visit.request_id,
        "method": scope["method"],
        "path": scope["path"],
        "status": visit.status,
        "campaign": campaign_of(lease) if lease else named.get("campaign"),
        "worker": visit.worker or (visit.who.worker if visit.who else None),
    }
