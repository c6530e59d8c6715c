"""All pages, for ``create_app(..., pages=mount_pages)``: the workers' page, the dashboard, the static files."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

from nextlabel.application.service import CampaignService
from nextlabel.service.app import ServiceApp, create_app
from nextlabel.service.settings import ServiceSettings
from nextlabel.store.engine import SERVICE_LOCK_WAIT_S
from nextlabel.store.sql import open_store
from nextlabel.web.dashboard import access
from nextlabel.web.dashboard.routes import campaign, create, links
from nextlabel.web.dashboard.state import DashboardState
from nextlabel.web.render import ADDRESS, FOLDER, Static
from nextlabel.web.worker import audit as expert
from nextlabel.web.worker import routes as worker


def mount_pages(app: FastAPI) -> None:
    """Add the workers' page, the expert's, the requester's dashboard, and the static files of all."""
    app.mount(ADDRESS, Static(directory=FOLDER))
    app.state.dashboard = DashboardState(app.state.nextlabel)
    for module in (worker, expert, access, campaign, links, create):
        app.include_router(module.router)


def asgi_app(url: str, **settings: Any) -> ServiceApp:
    """The service of a database with all its pages, for an ASGI server or to be mounted in another application.

    ``settings`` are those of ``serve`` by the names of ``service.settings``. Whoever mounts it runs its lifespan too.
    """
    service = CampaignService(open_store(url, SERVICE_LOCK_WAIT_S))
    return create_app(service, ServiceSettings(**settings), mount_pages, close_service=True)
