"""How large a body may be, told beforehand or not."""

from __future__ import annotations

import re

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from nextlabel.service.auth import API
from nextlabel.service.problem_details import BodyTooLargeError
from nextlabel.service.settings import MIB, Settings

_UPLOAD = re.compile(rf"{API}/campaigns/[^/]+/tasks|/new")
#: A body that was announced and is too large is read away up to here, so that its sender gets to see the answer.
READ_AWAY = 16 * MIB


class Limits:
    """Refuses bodies over the limit of their path."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app, self._settings = app, settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        most = self._settings.most_upload if _UPLOAD.fullmatch(scope["path"]) else self._settings.most_body
        told = next((value for name, value in scope["headers"] if name == b"content-length"), None)
        if told is not None and told.isdigit() and int(told) > most:
            if int(told) <= READ_AWAY:
                await _read_away(receive)
            raise BodyTooLargeError(most)
        read = 0

        async def counted() -> Message:
            nonlocal read
            message = await receive()
            if message["type"] == "http.request":
                read += len(message.get("body", b""))
                if read > most:
                    raise BodyTooLargeError(most)
            return message

        await self._app(scope, counted, send)


async def _read_away(receive: Receive) -> None:
    while True:
        message = await receive()
        if message["type"] != "http.request" or not message.get("more_body", False):
            return
