"""Start the service: uvicorn, in one process or several."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Callable
from importlib import import_module
from typing import Any

import uvicorn
from fastapi import FastAPI

from nextlabel.campaigns.service import CampaignService
from nextlabel.errors import InputError
from nextlabel.service.app import create_app
from nextlabel.service.logs import log_to_stderr
from nextlabel.service.settings import Settings
from nextlabel.service.tokens import first_token
from nextlabel.store.open import open_store

#: How processes are told what they are for.
STORE, SETTINGS, PAGES, METRICS = (
    "NEXTLABEL_STORE", "NEXTLABEL_SETTINGS", "NEXTLABEL_PAGES", "PROMETHEUS_MULTIPROC_DIR",
)  # fmt: skip
KEEP_ALIVE_S = 30

Pages = Callable[[FastAPI], None]


def serve(
    settings: Settings,
    store_url: str,
    *,
    workers: int = 1,
    pages: Pages | None = None,
    show_token: Callable[[str], None] | None = None,
) -> None:
    """Run until a signal ends it; ``show_token`` is given the requester's token if it was made now."""
    if workers < 1:
        raise InputError(f"{workers} processes cannot serve.", "Give at least 1.")
    if workers > 1 and store_url.strip() == "memory:":
        raise InputError("processes cannot share a store in memory.", "Give a database, or one process.")
    store = open_store(store_url)
    token = first_token(store)
    if token is not None and show_token is not None:
        show_token(token)
    if workers == 1:
        log_to_stderr(settings.log_level)
        app = create_app(CampaignService(store), settings, pages, own=True)
        _run(uvicorn.Server(uvicorn.Config(app, **_options(settings))))
        return
    store.close()
    with tempfile.TemporaryDirectory(prefix="nextlabel-metrics-") as folder:
        told = {STORE: store_url, SETTINGS: settings.to_json(), METRICS: folder}
        if pages is not None:
            told[PAGES] = f"{pages.__module__}:{pages.__qualname__}"
        os.environ.update(told)
        try:
            uvicorn.run(
                "nextlabel.service.run:app_from_environment", factory=True, workers=workers, **_options(settings)
            )
        finally:
            for name in told:
                os.environ.pop(name, None)


def _run(server: uvicorn.Server) -> None:
    """Until a signal; uvicorn sends itself that signal again when all is done, which must not kill the process."""
    before = signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        server.run()
    except KeyboardInterrupt:
        pass
    finally:
        signal.signal(signal.SIGTERM, before)


def app_from_environment() -> FastAPI:
    """The app of one of several processes."""
    settings = Settings.from_json(os.environ[SETTINGS])
    log_to_stderr(settings.log_level)
    module, _, name = os.environ.get(PAGES, "").partition(":")
    pages: Pages | None = getattr(import_module(module), name) if module else None
    return create_app(CampaignService(open_store(os.environ[STORE])), settings, pages, own=True)


def _options(settings: Settings) -> dict[str, Any]:
    return {
        "host": settings.host,
        "port": settings.port,
        "loop": "uvloop",
        "http": "httptools",
        "ws": "none",
        "lifespan": "on",
        "log_config": None,
        "access_log": False,
        "server_header": False,
        "timeout_keep_alive": KEEP_ALIVE_S,
        "timeout_graceful_shutdown": settings.shutdown_s,
    }
