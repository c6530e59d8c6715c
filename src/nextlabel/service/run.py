"""Start the service: uvicorn, in one process or several."""

from __future__ import annotations

import gc
import os
import signal
import tempfile
from collections.abc import Callable
from importlib import import_module
from typing import Any

import uvicorn
from fastapi import FastAPI

from nextlabel.application.service import CampaignService
from nextlabel.errors import InputError
from nextlabel.service.access import first_token
from nextlabel.service.app import create_app
from nextlabel.service.connections import GuardedProtocol
from nextlabel.service.links import signing_key
from nextlabel.service.logs import log_to_stderr
from nextlabel.service.settings import ADDRESS, ServiceSettings
from nextlabel.store.engine import SERVICE_LOCK_WAIT_S
from nextlabel.store.sql import open_store

#: Variables that tell further processes what to serve; their settings come from the environment too.
STORE, PAGES, METRICS = "NEXTLABEL_STORE", "NEXTLABEL_PAGES", "PROMETHEUS_MULTIPROC_DIR"
KEEP_ALIVE_S = 30
#: New objects after which Python looks for cycles among them.
YOUNG_OBJECTS = 10_000
#: Seconds after which a process that does not answer is replaced; on a busy machine one takes long to start.
HEALTH_CHECK_S = 120

Pages = Callable[[FastAPI], None]


def serve(
    settings: ServiceSettings,
    store_url: str,
    *,
    pages: Pages | None = None,
    show_token: Callable[[str], None] | None = None,
    show_start: Callable[[], None] = lambda: None,
) -> None:
    """Run until a signal arrives; ``show_token`` is called with the requester's token if it has just been created.

    ``show_start`` is called when nothing stands in the way and the log is open.
    """
    if settings.processes > 1 and store_url.strip() == "memory:":
        raise InputError("several processes cannot share a store in memory.", "Use a database, or one process.")
    store = open_store(store_url, SERVICE_LOCK_WAIT_S)
    signing_key(store, settings.key_file)  # another one is refused here, and not by each process
    token = first_token(store)
    log_to_stderr(settings.log_level)
    store.put(ADDRESS, settings.base_url.encode(), replace=True)
    show_start()
    if token is not None and show_token is not None:
        show_token(token)
    if settings.processes == 1:
        app = create_app(CampaignService(store), settings, pages, close_service=True)
        collect_garbage_seldom()
        _run(uvicorn.Server(uvicorn.Config(app, **_options(settings))))
        return
    store.close()
    with tempfile.TemporaryDirectory(prefix="nextlabel-metrics-") as folder:
        variables = {**settings.environment(), STORE: store_url, METRICS: folder}
        if pages is not None:
            variables[PAGES] = f"{pages.__module__}:{pages.__qualname__}"
        os.environ.update(variables)  # this process ends with the service
        factory = "nextlabel.service.run:app_from_environment"
        uvicorn.run(factory, factory=True, workers=settings.processes, **_options(settings))


def _run(server: uvicorn.Server) -> None:
    """Serve until a signal arrives. When uvicorn is done it raises SIGTERM again, which must not kill this process."""
    before = signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        server.run()
    except KeyboardInterrupt:
        pass
    finally:
        signal.signal(signal.SIGTERM, before)


def app_from_environment() -> FastAPI:
    """The app of one of several processes."""
    settings = ServiceSettings()
    log_to_stderr(settings.log_level)
    module, _, name = os.environ.get(PAGES, "").partition(":")
    pages: Pages | None = getattr(import_module(module), name) if module else None
    app = create_app(
        CampaignService(open_store(os.environ[STORE], SERVICE_LOCK_WAIT_S)), settings, pages, close_service=True
    )
    collect_garbage_seldom()
    return app


def collect_garbage_seldom() -> None:
    """Look for garbage less often, and not among what lives as long as the process: it took a tenth of its time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS, 20, 20)


def _options(settings: ServiceSettings) -> dict[str, Any]:
    return {
        "host": settings.host,
        "port": settings.port,
        "loop": "uvloop",
        "http": GuardedProtocol,
        "proxy_headers": True,
        "forwarded_allow_ips": settings.trusted_proxies,
        "ws": "none",
        "lifespan": "on",
        "log_config": None,
        "access_log": False,
        "server_header": False,
        "timeout_keep_alive": KEEP_ALIVE_S,
        "timeout_graceful_shutdown": settings.shutdown_seconds,
        "timeout_worker_healthcheck": HEALTH_CHECK_S,
    }
