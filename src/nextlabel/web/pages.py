"""All pages, as ``create_app(..., pages=mount_pages)`` takes them."""

from __future__ import annotations

from fastapi import FastAPI

from nextlabel.web.dashboard import mount_dashboard
from nextlabel.web.static_files import mount_static
from nextlabel.web.worker.routes import mount_worker


def mount_pages(app: FastAPI) -> None:
    """Add the worker's page, the requester's dashboard, and the files that they need."""
    mount_static(app)
    mount_worker(app)
    mount_dashboard(app)
