"""A limit on the size of request bodies, whether or not the client announces it."""

from __future__ import annotations

import re

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from nextlabel.service.auth import API
from nextlabel.service.problem_details import BodyTooLargeError
from nextlabel.service.settings import MIB, ServiceSettings

_UPLOAD = re.compile(rf"(?:{API})?/campaigns/[^/]+/predictions|{API}/campaigns/[^/]+/tasks|/new")
#: An announced body that is too large is still read up to this size, so that its sender sees the response.
DISCARD_LIMIT = 16 * MIB


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
        await _check_announced(scope, receive, limit)
        size = 0

        async def receive_limited() -> Message:
            nonlocal size
            message = await receive()
            if message["type"] == "http.request":
                size += len(message.get("body", b""))
                if size > limit:
                    raise BodyTooLargeError(limit)
            return message

        await self._app(scope, receive_limited, send)


async def read_body(scope: Scope, receive: Receive, limit: int) -> bytes:
    """The whole body of a request, if it is not larger than ``limit``."""
    await _check_announced(scope, receive, limit)
    body: bytes = b""
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise ClientDisconnect
        body += message.get("body", b"")
        if len(body) > limit:
            raise BodyTooLargeError(limit)
        if not message.get("more_body", False):
            return body


async def _check_announced(scope: Scope, receive: Receive, limit: int) -> None:
    """Refuse a body that is announced as too large."""
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit() and int(value) > limit:
            if int(value) <= DISCARD_LIMIT:
                await _discard(receive)
            raise BodyTooLargeError(limit)


async def _discard(receive: Receive) -> None:
    while True:
        message = await receive()
        if message["type"] != "http.request" or not message.get("more_body", False):
            return
