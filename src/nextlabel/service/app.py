"""The service, put together."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from threading import Thread

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.responses import Response

from nextlabel.campaign.ledger import Store
from nextlabel.campaigns.certificate import Certificates
from nextlabel.campaigns.service import CampaignService
from nextlabel.service.auth import API, Authenticator
from nextlabel.service.express import Express
from nextlabel.service.limits import Limits
from nextlabel.service.links import Links
from nextlabel.service.logs import request_log
from nextlabel.service.metrics import Metrics
from nextlabel.service.middleware import RequestMiddleware, context_of
from nextlabel.service.openapi import complete
from nextlabel.service.problem_details import problem
from nextlabel.service.routes import campaigns, health, links, log, results, tasks, work
from nextlabel.service.services import Services
from nextlabel.service.settings import Settings
from nextlabel.service.writer import Writer
from nextlabel.version import __version__

ROUTERS = (campaigns.router, tasks.router, links.router, work.router, results.router, log.router, health.router)


def create_app(
    office_or_store: CampaignService | Store,
    settings: Settings | None = None,
    pages: Callable[[FastAPI], None] | None = None,
    own: bool = False,
) -> FastAPI:
    """The service over an office; ``pages`` adds routes of its own, ``own``: the office is closed with the service."""
    campaign_service = (
        office_or_store if isinstance(office_or_store, CampaignService) else CampaignService(office_or_store)
    )
    settings = settings if settings is not None else Settings()
    known = Links.of(campaign_service.store)
    tally = Metrics(campaign_service.store)
    writer = Writer(campaign_service, tally.committed)
    app = FastAPI(
        title="nextlabel",
        version=__version__,
        summary="Which task should the next worker label?",
        openapi_url=f"{API}/openapi.json",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=_life(campaign_service, writer, own),
        middleware=[
            Middleware(
                RequestMiddleware,
                doorkeeper=Authenticator(campaign_service.store, known, settings.open_metrics),
                tally=tally,
            ),
            Middleware(Limits, settings=settings),
            Middleware(Express, routes=work.router.routes),
        ],
        exception_handlers={HTTPException: _as_problem, RequestValidationError: _as_problem},
    )
    app.state.services = Services(campaign_service, writer, settings, known, tally, Certificates(campaign_service))
    for router in ROUTERS:
        app.include_router(router, prefix=API)
    app.include_router(health.router, include_in_schema=False)
    complete(app)
    if pages is not None:
        pages(app)
    return app


async def _as_problem(request: Request, error: Exception) -> Response:
    response = problem(error, context_of(request).request_id)
    allowed = _methods(request.url.path.removeprefix(API)) if response.status_code == 405 else ()
    if allowed:  # the framework names those of the first route only
        response.headers["allow"] = ", ".join(allowed)
    return response


def _methods(path: str) -> list[str]:
    """What the API takes at a path."""
    routes = [route for router in ROUTERS for route in router.routes if isinstance(route, APIRoute)]
    return sorted({method for route in routes if route.path_regex.match(path) for method in route.methods or ()})


def _life(
    campaign_service: CampaignService, writer: Writer, own: bool
) -> Callable[[FastAPI], AbstractAsyncContextManager[None]]:
    @asynccontextmanager
    async def commands(app: FastAPI) -> AsyncIterator[None]:
        Thread(target=_warm, args=(campaign_service,), name="warm", daemon=True).start()
        yield
        await asyncio.to_thread(writer.close)
        for handler in request_log.handlers:
            handler.flush()
        if own:
            campaign_service.close()

    return commands


def _warm(campaign_service: CampaignService) -> None:
    """Have the tables of all open campaigns made, so that the first worker does not wait."""
    try:
        for row in campaign_service.store.campaigns():
            if row.closed_seq is None:
                campaign_service.warm(row.id)
    except Exception as error:  # the service works without: tables are made when they are needed
        request_log.warning("tables were not made ahead", exc_info=error)
