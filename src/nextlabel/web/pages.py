"""All pages, for ``create_app(..., pages=mount_pages)``."""

from __future__ import annotations

from fastapi import FastAPI

from nextlabel.web.dashboard.mount import mount_dashboard
from nextlabel.web.static_files import mount_static
from nextlabel.web.worker.routes import mount_worker


def mount_pages(app: FastAPI) -> None:
    """Add the workers' page, the requester's dashboard, and the static files of both."""
    mount_static(app)
    mount_worker(app)
    mount_dashboard(app)
