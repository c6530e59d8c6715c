"""Memory grows neither with the file that is imported nor with the log that is verified: bytes are counted."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from nextlabel.application import service as service_module
from nextlabel.application.service import CampaignService
from nextlabel.application.table_cache import TableCache
from nextlabel.campaign import intake
from nextlabel.campaign.policy_tables import PolicyTables
from nextlabel.store import verify
from stores import Clock, opened, simple

#: Bytes of a task.
SIZE = 4_000


class NoTables(TableCache):
    """Tables that are made beside an import would be counted with it, or not, by chance."""

    def prepare(self, *what: object) -> Future[PolicyTables]:
        never: Future[PolicyTables] = Future()
        never.set_exception(NotImplementedError())
        return never


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake, "CHUNK", 20)
    monkeypatch.setattr(service_module, "AT_ONCE", 50)
    monkeypatch.setattr(verify, "SLICE", 20)
    monkeypatch.setattr(verify, "EVENTS", 4)


def peak(call: Callable[[], Any]) -> int:
    """The most bytes that were in use at once while something ran."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def peaks(folder: Path, many: int) -> tuple[int, int]:
    """Memory while so many tasks are imported, and while their campaign is verified."""
    folder.mkdir()
    with opened("sqlite", folder) as store:
        service = CampaignService(store, Clock(), NoTables(store))
        id = service.create(simple()).id
        tasks = ({"id": f"t{k}", "text": f"{k}".ljust(SIZE, "x")} for k in range(many))
        importing = peak(lambda: service.add_tasks(id, tasks))
        assert service.store.row(id).tasks == many
        verifying = peak(lambda: service[id].verify())
        service.table_cache.close()
    return importing, verifying


def test_neither_the_file_nor_the_log_is_held_in_memory(tmp_path: Path) -> None:
    peaks(tmp_path / "first", 60)  # what is loaded and remembered once
    few, many = peaks(tmp_path / "few", 150), peaks(tmp_path / "many", 750)
    for small, large in zip(few, many, strict=True):
        assert large - small < 0.2 * 600 * SIZE
