"""The service as a FastAPI application."""

from __future__ import annotations

import asyncio
import json
import logging
import time
import warnings
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext
from functools import partial
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic.warnings import UnsupportedFieldAttributeWarning
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from nextlabel import tracing
from nextlabel.application.service import CampaignService
from nextlabel.application.table_cache import crowd_compiled
from nextlabel.application.webhooks import Webhooks
from nextlabel.service.access import AccessCache
from nextlabel.service.app_state import AppState
from nextlabel.service.auth import API, Authenticator
from nextlabel.service.background import HOUR_S, at_signals, erase_old, repeated
from nextlabel.service.command_queue import CommandQueue
from nextlabel.service.connections import STATE, ConnectionLimits
from nextlabel.service.limits import RequestLimits
from nextlabel.service.links import LinkSigner, signing_key
from nextlabel.service.logs import request_log
from nextlabel.service.metrics import Metrics
from nextlabel.service.middleware import BodyLimitMiddleware, RequestMiddleware, request_context, without_prefix
from nextlabel.service.openapi import complete_document
from nextlabel.service.problem_details import problem_response
from nextlabel.service.routes import campaigns, commands, health, platforms, results, tasks, tokens, work
from nextlabel.service.routes.work import WorkRouter
from nextlabel.service.settings import ServiceSettings
from nextlabel.service.webhooks import WebhookSender, WebhookWorker
from nextlabel.version import __version__

#: A process claims a webhook for so many times as long as a receiver has to reply.
CLAIMED = 3.0
#: Work comes first: its routes are called most, and routes are tried in order.
PARTS = (work, campaigns, tasks, results, platforms, commands, tokens, health)
ROUTERS = (*(part.router for part in PARTS), results.workers)


class ServiceApp(FastAPI):
    """FastAPI, but for the requests of workers, which take a shorter way (``routes.work.WorkRouter``)."""

    work_router: WorkRouter | None = None
    work: ASGIApp
    public_path = ""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] == "http":
            scope, send = without_prefix(self.public_path, scope, send)
        if self.work_router is not None and self.work_router.serves(scope):
            scope["app"] = self
            await self.work(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)


class AsciiJson(JSONResponse):
    """JSON in ASCII, so that whatever a database holds can be sent and no single campaign breaks a list."""

    def render(self, content: Any) -> bytes:
        """The body."""
        return json.dumps(content).encode()


def create_app(
    campaign_service: CampaignService,
    settings: ServiceSettings | None = None,
    pages: Callable[[FastAPI], None] | None = None,
    close_service: bool = False,
) -> ServiceApp:
    """The application; ``pages`` adds routes to it, ``close_service`` closes the campaign service at shutdown."""
    # FastAPI hides this while it reads a route, unless another thread puts the filters back, as Numba does.
    warnings.filterwarnings("ignore", category=UnsupportedFieldAttributeWarning)
    campaign_service.refit_in_background()
    settings = settings if settings is not None else ServiceSettings()
    if settings.traces:
        tracing.begin()
    access = AccessCache(campaign_service.store)
    signer = LinkSigner(signing_key(campaign_service.store, settings.key_file), lambda: access.state)
    metrics = Metrics()
    command_queue = CommandQueue(campaign_service, metrics.commits.observe)
    limits = RequestLimits(settings, metrics.count_limit)
    webhooks = Webhooks(campaign_service.store, CLAIMED * settings.webhook_seconds)
    webhook_worker = WebhookWorker(webhooks, WebhookSender(campaign_service.store, settings))
    authenticator = Authenticator(access, signer, limits, settings.open_metrics)
    imports, deletions = campaign_service.imports, campaign_service.deletions
    retain = partial(erase_old, campaign_service, settings.keep_names_days)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[dict[str, Any]]:
        Thread(target=_warm_up, args=(campaign_service,), name="warm-up", daemon=True).start()
        with (
            repeated("import-recovery", imports.recover, imports.stop),
            repeated("deletions", deletions.finish, deletions.stop, deletions.wanted),
            repeated("retention", retain, lambda: None, every=HOUR_S) if settings.keep_names_days else nullcontext(),
            at_signals(imports.stop),
        ):
            async with webhook_worker.running():
                yield {STATE: ConnectionLimits(settings, metrics.count_limit)}  # uvicorn hands it to every connection
        await asyncio.to_thread(command_queue.close)
        for handler in logging.getLogger("nextlabel").handlers:
            handler.flush()
        if close_service:
            campaign_service.close()

    app = ServiceApp(
        title="nextlabel",
        version=__version__,
        summary="Which task should the next worker label?",
        openapi_url=f"{API}/openapi.json",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        default_response_class=AsciiJson,
        generate_unique_id_function=lambda route: route.name,  # operation ids as client generators want them
        lifespan=lifespan,
        middleware=[
            Middleware(RequestMiddleware, authenticator=authenticator, metrics=metrics, settings=settings),
            Middleware(BodyLimitMiddleware, settings=settings),
        ],
        exception_handlers={HTTPException: _handle_error, RequestValidationError: _handle_error},
    )
    app.public_path = urlsplit(settings.public_url).path
    app.work_router = WorkRouter(work.router)
    app.work = RequestMiddleware(BodyLimitMiddleware(app.work_router, settings), authenticator, metrics, settings)
    app.state.nextlabel = AppState(
        campaign_service, command_queue, settings, access, signer, metrics, limits, webhooks
    )  # fmt: skip
    for router in ROUTERS:
        app.include_router(router, prefix=API)
    app.include_router(health.router, include_in_schema=False)
    complete_document(app)
    if pages is not None:
        pages(app)
    return app


async def _handle_error(request: Request, error: Exception) -> Response:
    response = problem_response(error, request_context(request).request_id)
    if response.status_code == 405:  # FastAPI names the methods of the first matching route only
        path = request.url.path.removeprefix(API)
        routes = [route for router in ROUTERS for route in router.routes if isinstance(route, APIRoute)]
        allowed = {method for route in routes if route.path_regex.match(path) for method in route.methods or ()}
        if allowed:
            response.headers["allow"] = ", ".join(sorted(allowed))
    return response


def _warm_up(campaign_service: CampaignService) -> None:
    """Compile, and compute the tables of all open campaigns, so that the first worker does not wait for them."""
    begun = time.monotonic()
    try:
        crowd_compiled().result()
        request_log.info("ready after %.1f seconds: workers get tasks at once", time.monotonic() - begun)
        for row in campaign_service.store.campaigns():
            if row.closed_seq is None:
                campaign_service.warm(row.id)
    except Exception as error:  # not needed to serve: tables are computed on demand too
        request_log.warning("tables were not computed ahead", exc_info=error)
