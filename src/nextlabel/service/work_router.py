"""The short way to the routes of workers, which are called most: past FastAPI's layers, straight to the endpoints.

The routes are FastAPI's, which documents them and would find them too, but needs longer to find and call them
(docs/decisions/0022). Requests and responses are Starlette's, without what these routes do not use.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from fastapi import APIRouter
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from nextlabel.service.auth import API
from nextlabel.service.body_limits import read_body


class WorkRequest(Request):
    """A request whose body is read in one piece, up to a limit."""

    def __init__(self, scope: Scope, receive: Receive, limit: int) -> None:  # the rest of Starlette's is for other uses
        self.scope, self._receive, self._limit = scope, receive, limit

    async def body(self) -> bytes:
        """The whole body."""
        return await read_body(self.scope, self._receive, self._limit)


class JsonResponse(Response):
    """A value as JSON, with further headers."""

    def __init__(self, value: Any, headers: Iterable[tuple[bytes, bytes]] = ()) -> None:
        self.status_code, self.background = 200, None
        self.body = json.dumps(value).encode()
        self.raw_headers = [
            (b"content-length", b"%d" % len(self.body)), (b"content-type", b"application/json"), *headers,
        ]  # fmt: skip

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": self.body})


class WorkRouter:
    """Calls the endpoints of a router whose paths have one parameter."""

    def __init__(self, router: APIRouter, max_body_bytes: int) -> None:
        self._limit = max_body_bytes
        self._routes = [route for route in router.routes if isinstance(route, APIRoute)]

    def serves(self, scope: Scope) -> bool:
        """Whether a request is for one of the routes, which it then names."""
        if scope["type"] != "http" or scope["method"] != "POST" or not scope["path"].startswith(API):
            return False
        path = scope["path"][len(API) :]
        for route in self._routes:
            if match := route.path_regex.match(path):
                scope["route"], scope["path_params"] = route, match.groupdict()
                return True
        return False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request that is for one of the routes."""
        (id,) = scope["path_params"].values()
        response = await scope["route"].endpoint(id, WorkRequest(scope, receive, self._limit))
        await response(scope, receive, send)
