"""What every request goes through: an id, authentication, a limit on its body, security headers, one log line.

The log line and the metrics of a request are written before the last part of its response is sent, so that whoever has
read the response finds the request in both. Plain ASGI: a request costs some ten microseconds here.

The service may be below a path of a site, as at ``https://example.org/labels``. Inside, every address begins at the
root. Requests lose the path here, unless a proxy has taken it off already: that of the setting ``public_url``, or the
``root_path`` by which another application has mounted this one. Addresses in replies get it: ``Location``, the paths of
cookies, and, by ``prefixed``, what pages refer to.
"""

from __future__ import annotations

import logging
import random
import re
import time
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from nextlabel.campaign.rows import campaign_of
from nextlabel.service.auth import API, REQUESTER, Authenticator, Principal
from nextlabel.service.logs import request_log, without_secrets
from nextlabel.service.metrics import Metrics
from nextlabel.service.problem_details import BodyTooLargeError, problem_response
from nextlabel.service.settings import MIB, ServiceSettings
from nextlabel.tracing import span

_prefix: ContextVar[str] = ContextVar("prefix", default="")
_ADDRESS = re.compile(r'(\s(?:href|src|action|formaction|data-[a-z-]+)=")/(?!/)')
_COOKIE_PATH = re.compile(rb"(; *path=)/", re.IGNORECASE)
_REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
X_FRAME_OPTIONS = b"x-frame-options"

#: Added to every response that does not set them itself; pages have a policy of their own.
SECURITY_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (X_FRAME_OPTIONS, b"DENY"),
    (b"cache-control", b"no-store"),
)

#: Added where browsers come by https: for a year they will not come by http, in which a cookie could be read.
HSTS = (b"strict-transport-security", b"max-age=31536000")
_UPLOAD = re.compile(rf"(?:{API})?/campaigns/[^/]+/(?:predictions|features|items)|{API}/campaigns/[^/]+/tasks|/new")

#: An announced body that is too large is still read up to this size, so that its sender sees the response.
DISCARD_LIMIT = 16 * MIB


@dataclass(slots=True)
class RequestContext:
    """What the log says about one request; ``principal`` is None where no token is needed.

    ``cause`` is the error behind a response with status 503, which says no more than that the database does not answer.
    ``created`` is the campaign that the request made.
    ``framed`` is for pages whose own policy says who may frame them, in place of the header that forbids it to all.
    """

    request_id: str
    principal: Principal | None = None
    worker: str | None = None
    status: int = 0
    started: float = field(default_factory=time.perf_counter)
    recorded: bool = False
    cause: BaseException | None = None
    framed: bool = False
    created: str = ""


def request_context(request: Request) -> RequestContext:
    """The context of a request."""
    context: RequestContext = request.scope["nextlabel"]
    return context


def principal_of(request: Request) -> Principal:
    """Who sent a request to the API."""
    return request_context(request).principal or REQUESTER


class RequestMiddleware:
    """The outermost layer of the service."""

    def __init__(self, app: ASGIApp, authenticator: Authenticator, metrics: Metrics, settings: ServiceSettings) -> None:
        self._app, self._authenticator, self._metrics = app, authenticator, metrics
        self._security_headers = [*SECURITY_HEADERS, *([HSTS] if settings.is_https else [])]
        self._security_names = {name for name, _ in self._security_headers}
        self._log_names = settings.log_names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        authorization = given_id = None
        for name, value in scope["headers"]:
            if name == b"authorization":
                authorization = value
            elif name == b"x-request-id":
                given_id = value
        own = given_id is not None and _REQUEST_ID.fullmatch(given_id)  # the client's, if it is well-formed
        context = scope["nextlabel"] = RequestContext(own[0].decode() if own else f"{random.getrandbits(64):016x}")
        with span(scope["method"], headers=scope["headers"], request_id=context.request_id) as opened:
            await self._serve(scope, receive, send, context, authorization)
            if opened is not None:
                opened.update_name(f"{scope['method']} {route_of(scope)}")
                opened.set_attribute("http.response.status_code", context.status)

    async def _serve(
        self, scope: Scope, receive: Receive, send: Send, context: RequestContext, authorization: bytes | None
    ) -> None:
        async def send_recorded(message: Message) -> None:
            if message["type"] == "http.response.start":
                context.status = message["status"]
                if context.principal is not None and context.principal.token is not None:
                    await self._authenticator.note(scope, context.principal.token, context.status, context.created)
                headers, missing = message.get("headers", ()), self._security_headers
                if context.framed or not self._security_names.isdisjoint(name for name, _ in headers):
                    there = {name for name, _ in headers} | ({X_FRAME_OPTIONS} if context.framed else set())
                    missing = [pair for pair in missing if pair[0] not in there]
                message["headers"] = [*headers, *missing, (b"x-request-id", context.request_id.encode())]
            elif not message.get("more_body", False):
                self._record(scope, context)
            await send(message)

        try:
            context.principal = await self._authenticator.authenticate(scope, authorization)
            await self._app(scope, receive, send_recorded)
        except Exception as error:
            if context.status:  # the response has begun: all that is left is to break the connection off
                self._log(logging.ERROR, "response broken off", scope, context, error)
                raise
            response, context.cause = problem_response(error, context.request_id), error
            if response.status_code == 500:
                self._log(logging.ERROR, "unexpected error", scope, context, error)
            await response(scope, receive, send_recorded)
        finally:
            self._record(scope, context)

    def _record(self, scope: Scope, context: RequestContext) -> None:
        """Count and log a request once."""
        if context.recorded:
            return
        context.recorded = True
        seconds = time.perf_counter() - context.started
        # The path's template, so that the number of series does not grow with the number of campaigns.
        self._metrics.count_request(scope["method"], route_of(scope), context.status, seconds)
        if context.status == 503:
            cause = without_secrets(f"{type(context.cause).__name__}: {context.cause}".splitlines()[0][:300])
            self._log(logging.WARNING, "the request could not be served", scope, context, cause=cause)
        if request_log.isEnabledFor(logging.INFO):
            self._log(logging.INFO, "", scope, context, ms=round(1000 * seconds, 2))

    def _log(
        self, level: int, message: str, scope: Scope, context: RequestContext,
        error: Exception | None = None, **more: Any,
    ) -> None:  # fmt: skip
        """Write a line of the log; of workers no names, unless the settings ask for them."""
        if not request_log.isEnabledFor(level):
            return
        parameters = scope.get("path_params") or {}
        lease, token = parameters.get("lease"), context.principal.token if context.principal else None
        worker = context.worker or (context.principal.worker if context.principal else None)
        fields = {
            "request_id": context.request_id,
            "method": scope["method"],
            "path": scope["path"],
            "status": context.status,
            "campaign": campaign_of(lease) if lease else parameters.get("campaign"),
            "worker": worker if self._log_names else None,
            "token": token.name if token else None,
        }
        request_log.log(level, message, exc_info=error, extra={"fields": fields | more})


def route_of(scope: Scope) -> str:
    """The template of a request's path."""
    return str(getattr(scope.get("route"), "path", "none"))


class BodyLimitMiddleware:
    """Refuses bodies that are larger than their path allows."""

    def __init__(self, app: ASGIApp, settings: ServiceSettings) -> None:
        self._app, self._settings = app, settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        upload = _UPLOAD.fullmatch(scope["path"])
        limit = self._settings.max_upload_bytes if upload else self._settings.max_body_bytes
        announced = -1
        for name, value in scope["headers"]:
            if name == b"content-length" and value.isdigit():
                announced = max(announced, int(value))
        if announced > limit:
            while announced <= DISCARD_LIMIT and (await receive()).get("more_body", False):
                pass
            raise BodyTooLargeError(limit)
        if announced >= 0:  # a server hands on no more than was announced
            await self._app(scope, receive, send)
            return
        size = 0

        async def receive_limited() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > limit:
                raise BodyTooLargeError(limit)
            return message

        await self._app(scope, receive_limited, send)


def current_prefix() -> str:
    """The path below which the service is, as this request came; empty for none."""
    return _prefix.get()


def prefixed(html: str) -> str:
    """A page, or a part of one, with its addresses below the path."""
    prefix = _prefix.get()
    return _ADDRESS.sub(lambda found: f"{found[1]}{prefix}/", html) if prefix else html


def without_prefix(public_path: str, scope: Scope, send: Send) -> tuple[Scope, Send]:
    """A request as if the service were at the root of its site, and how to send its reply."""
    prefix = (scope.get("root_path") or public_path).rstrip("/")
    _prefix.set(prefix)
    if not prefix:
        return scope, send
    path: str = scope["path"]
    if path == prefix or path.startswith(prefix + "/"):
        path = path[len(prefix) :] or "/"
    below = prefix.encode()

    async def send_below(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [_with_prefix(below, *header) for header in message.get("headers", ())]}
        await send(message)

    return {**scope, "path": path, "root_path": ""}, send_below


def _with_prefix(prefix: bytes, name: bytes, value: bytes) -> tuple[bytes, bytes]:
    if name.lower() == b"location" and value.startswith(b"/") and not value.startswith(b"//"):
        return name, prefix + value
    if name.lower() == b"set-cookie":
        return name, _COOKIE_PATH.sub(rb"\1" + prefix + b"/", value)
    return name, value
