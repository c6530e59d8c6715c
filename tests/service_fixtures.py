"""A service on a real port over a real SQLite file, for tests that speak HTTP."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import uvicorn

from nextlabel.application import service as service_module
from nextlabel.application import worker_reports
from nextlabel.application.service import CampaignService
from nextlabel.service.access import first_token
from nextlabel.service.app import create_app
from nextlabel.service.connections import GuardedProtocol
from nextlabel.service.routes import results, work
from nextlabel.service.settings import ServiceSettings
from nextlabel.store.sql import open_store
from nextlabel.web.worker import steps as worker_steps

#: Seconds after which a test that waits gives up: far more than the slowest machine needs.
PATIENCE_S = 300.0
#: How long a request waits for what is being computed before it is told to come back: a slow machine would be told so
#: where a test looks at something else.
WAITS: tuple[tuple[Any, str], ...] = (
    (work, "TABLES_WAIT_S"), (worker_steps, "TABLES_WAIT_S"), (results, "CERTIFICATE_S"),
    (service_module, "READ_PATIENCE_S"), (worker_reports, "WAIT_S"),
)  # fmt: skip
for module, constant in WAITS:
    assert hasattr(module, constant)
    setattr(module, constant, PATIENCE_S)
#: A policy whose tables are there at once.
QUICK = {"budget": 20, "labels": ["no", "yes"], "policy": "uncertainty"}


class Clock:
    """A clock that tests move."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def __call__(self) -> float:
        return time.time() + self.ahead


@dataclass
class Service:
    url: str
    token: str
    campaign_service: CampaignService
    clock: Clock
    app: Any

    def http(self, token: str | None = None, **headers: str) -> httpx.Client:
        """A client with the requester's token, or another one ("" for none)."""
        token = self.token if token is None else token
        given = {"Authorization": f"Bearer {token}"} if token else {}
        return httpx.Client(base_url=f"{self.url}/api/v1", headers={**given, **headers}, timeout=PATIENCE_S)

    def campaign(self, id: str = "demo", tasks: int = 5, **settings: Any) -> str:
        """A campaign with tasks t0, t1, ..."""
        with self.http() as http:
            made = http.post("/campaigns", json={**QUICK, "id": id, **settings})
            assert made.status_code in (200, 201), made.text
            if tasks:
                body = [{"id": f"t{k}", "text": f"text {k}"} for k in range(tasks)]
                added = http.post(f"/campaigns/{id}/tasks", json=body)
                assert added.status_code == 200, added.text
        return id

    def worker(self, name: str, campaign: str = "demo") -> httpx.Client:
        """A client with a worker's token."""
        with self.http() as http:
            made = http.post(f"/campaigns/{campaign}/links", json={"workers": [name]}).json()
        return self.http(made["links"][0]["token"])


@contextmanager
def running(url: str, pages: Callable[[Any], None] | None = None, **settings: Any) -> Iterator[Service]:
    """The service in a thread of this process, with ``pages`` (``web.pages.mount_pages``) or the API alone."""
    clock = Clock()
    store = open_store(url)
    campaign_service = CampaignService(store, clock)
    token = first_token(store)
    assert token is not None
    listening = socket.create_server(("127.0.0.1", 0))  # kept, so that nobody else can take the port
    port = int(listening.getsockname()[1])
    app = create_app(campaign_service, ServiceSettings(port=port, **settings), pages)
    server = uvicorn.Server(
        uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            ws="none",
            lifespan="on",
            http=GuardedProtocol,
            timeout_keep_alive=int(PATIENCE_S),  # else a slow client may write to a connection that is being closed
        )
    )
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive(), "the service did not start"
        time.sleep(0.01)
    try:
        yield Service(f"http://127.0.0.1:{port}", token, campaign_service, clock, app)
    finally:
        server.should_exit = True
        thread.join()
        listening.close()
        campaign_service.close()


@contextmanager
def on_sqlite(folder: Path, **settings: Any) -> Iterator[Service]:
    with running(f"sqlite:///{folder / 'labels.db'}", **settings) as service:
        yield service
