"""Imports over HTTP: followed while they go on, refused as a whole, one at a time."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from nextlabel.application import imports
from nextlabel.application import service as service_module
from nextlabel.campaign import intake
from nextlabel.client import Client
from service_fixtures import PATIENCE_S, on_sqlite

ASYNC = {"prefer": "respond-async"}


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake, "CHUNK", 10)
    monkeypatch.setattr(service_module, "AT_ONCE", 20)


def tasks(many: int) -> list[dict[str, Any]]:
    return [{"id": f"t{k}", "text": f"text {k}"} for k in range(many)]


def ended(http: httpx.Client, place: str) -> dict[str, Any]:
    """An import when it has ended."""
    until = time.monotonic() + PATIENCE_S
    while True:
        found: dict[str, Any] = http.get(place.removeprefix("/api/v1")).json()
        if found["state"] in ("done", "failed"):
            return found
        assert time.monotonic() < until
        time.sleep(0.01)


def test_an_import_can_be_followed(tmp_path: Path, small_chunks: None) -> None:
    with on_sqlite(tmp_path) as service, service.http() as http:
        service.campaign("demo", tasks=0)
        begun = http.post("/campaigns/demo/tasks", json=tasks(60), headers={**ASYNC, "idempotency-key": "once"})
        assert begun.status_code == 202 and begun.json()["campaign"] == "demo" and begun.json()["batch"] == "once"
        done = ended(http, begun.headers["location"])
        assert (done["state"], done["rows"], done["published"], done["added"]) == ("done", 60, 60, 60)
        assert http.get("/campaigns/demo/imports").json()["imports"][0] == done
        with Client(service.url, service.token) as client:
            (one,) = client.imports("demo")
        assert (one.id, one.state, one.published) == (done["id"], "done", 60)
        again = http.post("/campaigns/demo/tasks", json=tasks(60), headers={"idempotency-key": "once"})
        assert again.status_code == 200 and again.json()["known"] == 60
        short = http.post("/campaigns/demo/tasks", json=tasks(3), headers=ASYNC)
        assert short.status_code == 200 and short.json()["known"] == 3
        for place in ("/campaigns/demo/imports/00", "/campaigns/other/imports", "/campaigns/other/imports/00"):
            assert http.get(place).status_code == 404


def test_an_import_with_an_error_adds_nothing(tmp_path: Path, small_chunks: None) -> None:
    with on_sqlite(tmp_path) as service, service.http() as http:
        service.campaign("demo", tasks=0)
        bad = [*tasks(60), {"id": "x", "score": 7}]
        assert http.post("/campaigns/demo/tasks", json=bad).status_code == 422
        begun = http.post("/campaigns/demo/tasks", json=bad, headers=ASYNC)
        found = ended(http, begun.headers["location"])
        assert found["state"] == "failed" and "score '7'" in found["error"]
        assert http.get("/campaigns/demo").json()["tasks"] == 0


def test_other_tasks_wait_for_the_end_of_an_import(
    tmp_path: Path, small_chunks: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = threading.Event()
    publish = imports.Imports._publish_all
    monkeypatch.setattr(imports.Imports, "_publish_all", lambda *at: go_on.wait(PATIENCE_S) and publish(*at))
    with on_sqlite(tmp_path) as service, service.http() as http:
        service.campaign("demo", tasks=0)
        begun = http.post("/campaigns/demo/tasks", json=tasks(60), headers=ASYNC)
        refused = http.post("/campaigns/demo/tasks", json=["one more"])
        assert refused.status_code == 503 and int(refused.headers["retry-after"]) > 0
        assert "being imported" in refused.json()["detail"]
        assert http.get("/campaigns/demo").json()["tasks"] == 0
        go_on.set()
        assert ended(http, begun.headers["location"])["state"] == "done"
        assert http.post("/campaigns/demo/tasks", json=["one more"]).status_code == 200
