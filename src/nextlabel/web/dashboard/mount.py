"""The dashboard, put on the service."""

from __future__ import annotations

from fastapi import FastAPI

from nextlabel.service.app_state import AppState
from nextlabel.web.dashboard import formatting as words
from nextlabel.web.dashboard.routes import campaign, commands, links, task
from nextlabel.web.dashboard.routes import create as found
from nextlabel.web.dashboard.routes import sign_in as enter
from nextlabel.web.dashboard.session import Sessions
from nextlabel.web.dashboard.state import DashboardState
from nextlabel.web.render import environment

FILTERS = (
    words.percent, words.points, words.count, words.shortly, words.plural, words.duration, words.rate, words.when,
    words.clock, words.stamp, words.until, words.sentence,
)  # fmt: skip


def mount_dashboard(app: FastAPI) -> None:
    """Add the requester's pages; static files are ``mount_pages``' affair."""
    services: AppState = app.state.nextlabel
    app.state.dashboard = DashboardState(services)
    app.state.sessions = Sessions(services.campaign_service.store, services.links)
    environment().filters.update({one.__name__: one for one in FILTERS})
    for router in (enter.router, campaign.router, commands.router, task.router, links.router, found.router):
        app.include_router(router)
