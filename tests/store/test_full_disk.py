"""A full disk is said at once, in its own words, and an import does not hold it for a minute."""

from __future__ import annotations

import shutil
from collections import namedtuple
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from nextlabel.application import imports
from nextlabel.application import service as service_module
from nextlabel.store.engine import LEAST_ROOM
from service_fixtures import on_sqlite


def test_an_import_fails_at_once_and_others_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_module, "AT_ONCE", 20)
    monkeypatch.setattr(imports, "PATIENCE_S", 1e9)  # to try again would never end
    with on_sqlite(tmp_path) as service, service.http() as http:
        id = service.campaign("demo", tasks=3)
        engine = service.campaign_service.store.engine
        full = [True]

        @event.listens_for(engine, "begin")
        def limit(connection: Any) -> None:
            """The file may grow by twenty pages: SQLite then says what it says on a full disk."""
            pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
            most = pages + 20 if full[0] else 1 << 30
            connection.exec_driver_sql(f"PRAGMA max_page_count={most}")
            full[0] = full[0] and most

        body = [{"id": f"n{k}", "text": "x" * 10_000} for k in range(500)]
        refused = http.post(f"/campaigns/{id}/tasks", json=body)
        assert refused.status_code == 503 and "the disk of the database is full" in refused.json()["detail"]
        full[0] = False
        assert http.get(f"/campaigns/{id}").json()["tasks"] == 3
        assert http.post(f"/campaigns/{id}/ask", json={"worker": "ann"}).json()["lease"] is not None
        assert http.post(f"/campaigns/{id}/tasks", json=body).status_code == 200  # there is room again


def test_health_says_that_there_is_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with on_sqlite(tmp_path) as service, service.http() as http:
        usage = namedtuple("usage", "total used free")
        monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(1 << 40, 1 << 40, LEAST_ROOM - 1))
        found = http.get("/healthz")
        assert found.status_code == 503 and "the disk of the database is full" in found.json()["detail"]
        monkeypatch.undo()
        assert http.get("/healthz").status_code == 200
