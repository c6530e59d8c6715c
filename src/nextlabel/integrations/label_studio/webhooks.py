"""Label Studio tells of annotations here; the reply comes when the annotator's next task is in their tab.

Label Studio sends what it tells before it answers the annotator's browser, which then asks for the next task. It waits
a second by default (``WEBHOOK_TIMEOUT``), and what it cannot deliver is lost: the bridge reads it soon.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from threading import Thread
from typing import Any

from anyio import to_thread
from fastapi import FastAPI, Request
from starlette.responses import Response

from nextlabel.errors import InputError, NotFoundError, TokenError, UnavailableError
from nextlabel.integrations.label_studio.bridge import Bridge
from nextlabel.integrations.label_studio.connection import SECRET_HEADER, webhook_path


def mount_webhook(app: FastAPI, bridge: Bridge, secret: str, every_s: float) -> None:
    """Add the route, and have the bridge read what has changed while the service runs."""

    async def webhook(request: Request) -> Response:
        if not secrets.compare_digest(request.headers.get(SECRET_HEADER, "").encode(), secret.encode()):
            raise TokenError("the request does not have the secret of this connection.", "Connect the project again.")
        try:
            payload = await request.json()
            action = str(payload["action"])
        except (ValueError, KeyError, TypeError):
            raise InputError("the body is not what Label Studio sends.", 'Give {"action": ...}.') from None
        await to_thread.run_sync(_handle, bridge, action, payload)
        return Response(status_code=204)

    app.add_api_route(webhook_path(bridge.campaign), webhook, methods=["POST"], include_in_schema=False)
    inner = app.router.lifespan_context

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[Any]:
        async with inner(app) as state:
            reading = Thread(target=bridge.run, args=(every_s,), name="label-studio", daemon=True)
            reading.start()
            try:
                yield state
            finally:
                bridge.stop()
                await to_thread.run_sync(reading.join)

    app.router.lifespan_context = lifespan


def _handle(bridge: Bridge, action: str, payload: Any) -> None:
    try:
        bridge.handle(action, payload)
    except (UnavailableError, NotFoundError):
        bridge.read_soon()  # nothing is lost: what has changed is read again
