"""All pages, as ``create_app(..., pages=mount_pages)`` takes them."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

from fastapi import FastAPI

from nextlabel.web.static_files import mount_static
from nextlabel.web.worker.routes import mount_worker

DASHBOARD = "nextlabel.web.dashboard"


def mount_pages(app: FastAPI) -> None:
    """Add the worker's page, the requester's dashboard where it is installed, and the files that they need."""
    mount_static(app)
    mount_worker(app)
    if find_spec(DASHBOARD) is not None:
        import_module(DASHBOARD).mount_dashboard(app)
