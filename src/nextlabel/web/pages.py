"""All pages, for ``create_app(..., pages=mount_pages)``: the workers' page, the dashboard, the static files."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

from nextlabel.application.service import CampaignService
from nextlabel.service.app import ServiceApp, create_app
from nextlabel.service.app_state import AppState
from nextlabel.service.settings import ServiceSettings
from nextlabel.store.engine import SERVICE_LOCK_WAIT_S
from nextlabel.store.sql import open_store
from nextlabel.web.dashboard import access, formatting
from nextlabel.web.dashboard.access import DashboardSessions
from nextlabel.web.dashboard.routes import audit, campaign, create, links, tokens
from nextlabel.web.dashboard.state import DashboardState
from nextlabel.web.render import environment, mount_static
from nextlabel.web.worker.routes import mount_worker

FILTERS = (
    formatting.percent, formatting.points, formatting.count, formatting.shortly, formatting.plural,
    formatting.duration, formatting.rate, formatting.when, formatting.clock, formatting.stamp, formatting.until,
    formatting.sentence,
)  # fmt: skip


def mount_pages(app: FastAPI) -> None:
    """Add the workers' page, the requester's dashboard, and the static files of both."""
    mount_static(app)
    mount_worker(app)
    mount_dashboard(app)


def asgi_app(url: str, **settings: Any) -> ServiceApp:
    """The service of a database with all its pages, for an ASGI server or to be mounted in another application.

    ``settings`` are those of ``serve`` by the names of ``service.settings``. Whoever mounts it runs its lifespan too.
    """
    service = CampaignService(open_store(url, SERVICE_LOCK_WAIT_S))
    return create_app(service, ServiceSettings(**settings), mount_pages, close_service=True)


def mount_dashboard(app: FastAPI) -> None:
    """Add the requester's pages; ``mount_pages`` adds their static files."""
    state: AppState = app.state.nextlabel
    app.state.dashboard = DashboardState(state)
    app.state.sessions = DashboardSessions(
        state.campaign_service.store, state.access, bool(state.settings.cookie_secure)
    )
    environment().filters.update({filter.__name__: filter for filter in FILTERS})
    for module in (access, campaign, links, create, audit, tokens):
        app.include_router(module.router)
