"""``python -m benchmarks.live.journey``: files of the package in which an ask and a tell over HTTP call a function."""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import threading
from pathlib import Path
from types import FrameType
from typing import Any

import nextlabel
from nextlabel.application.service import CampaignService
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.service.app import create_app
from nextlabel.service.links import LinkSigner
from nextlabel.store.sql import open_store

PACKAGE = str(Path(nextlabel.__file__).parent) + "/"


def journey(folder: str) -> list[str]:
    """The files, after two pairs that warm up."""
    service, config = CampaignService(open_store(f"{folder}/journey.db")), CampaignSettings(budget=100, policy="index")
    service.create(config, "demo", tasks=["a"] * 50)
    service.table_cache.prepare(config, service.store.classes("demo"), config.rho).result()
    app, token = create_app(service), LinkSigner.of(service.store).worker_token("demo", "ann")
    files: set[str] = set()
    watching = False

    def see(frame: FrameType, event: str, argument: Any) -> None:
        file = frame.f_code.co_filename
        if watching and event == "call" and file.startswith(PACKAGE) and not frame.f_code.co_name.startswith("<"):
            files.add(file.removeprefix(PACKAGE))

    async def post(path: str, body: dict[str, str]) -> Any:
        headers = [(b"authorization", f"Bearer {token}".encode())]
        scope = {"type": "http", "method": "POST", "path": f"/api/v1{path}", "raw_path": b"", "query_string": b"",
                 "headers": headers, "http_version": "1.1", "scheme": "http", "root_path": ""}  # fmt: skip
        sent: list[Any] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": json.dumps(body).encode(), "more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)

        await app(scope, receive, send)
        return json.loads(sent[1]["body"])

    async def work() -> None:
        nonlocal watching
        for turn in range(3):
            watching = turn == 2
            lease = (await post("/campaigns/demo/ask", {}))["lease"]["id"]
            assert (await post(f"/leases/{lease}/tell", {"label": "1"}))["counted"]
        watching = False

    threading.setprofile(see)
    sys.setprofile(see)
    try:
        asyncio.run(work())
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
        app.state.nextlabel.command_queue.close()
        service.close()
    return sorted(files)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        found = journey(folder)
    print("\n".join(found))
    print(f"{len(found)} files")
