"""What a requester looks at is read through indexes: the plans of the statements themselves, on both databases."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event, insert, text

from nextlabel.application.imports import imports_of
from nextlabel.campaign.rows import lease_id
from nextlabel.store.sql import SqlStore
from nextlabel.store.tables import events, leases, payloads, tasks, workers
from stores import START, Clock, opened, service_of_store, simple

#: Rows of each table, so that a planner with statistics has a reason to use an index.
ROWS = 5000
#: Tables that grow with tasks and labels.
LARGE = "tasks|leases|events|payloads"
Statement = tuple[str, Any]


def analyze(store: SqlStore) -> None:
    if store.engine.dialect.name == "postgresql":
        with store.engine.execution_options(writes=True).begin() as connection:
            connection.execute(text("ANALYZE"))


def empty(store: SqlStore) -> None:
    with store.engine.execution_options(writes=True).begin() as connection:
        for table in ("tasks", "payloads", "leases", "workers"):
            connection.execute(text(f"DELETE FROM {table}"))
        connection.execute(text("DELETE FROM events WHERE seq > 1"))


def fill(store: SqlStore) -> None:
    """Rows as a campaign with many labels has them, in two campaigns."""
    lease = {"leased_at": START, "expires_at": START + 60, "dropped": False, "free": False, "previous": -1}
    task = {"class_id": 0, "w": 0, "labels": 1, "gold": -1, "closed": -1}
    zeros = ("given", "labels", "late", "expired", "released", "seconds", "last_at", "bought", "dropped", "tested")
    tally = {**dict.fromkeys((*zeros, "free", "turned_away"), 0), "standing": "active", "reason": ""}
    with store.engine.execution_options(writes=True).begin() as connection:
        for campaign in (1, 2):
            where = {"campaign": campaign}
            rows = [
                {**where, **task, "number": k, "place": k / ROWS, "node": 1 + k % 50, "last": k} for k in range(ROWS)
            ]
            connection.execute(insert(tasks), rows)
            texts = [{**where, "number": k, "key": f"t{k}", "data": '"text"'} for k in range(ROWS)]
            connection.execute(insert(payloads), texts)
            some = [{**where, **tally, "number": k, "worker": f"w{k}"} for k in range(500)]
            connection.execute(insert(workers), some)
            held = [
                {
                    **where, **lease, "number": k, "task": k, "worker": k % 500, "seq": k + 2, "secret": k,
                    "label": -1 if k < 3 else 1, "answer": -1 if k < 3 else 1, "status": 0 if k < 3 else 1,
                    "ended_at": -1.0 if k < 3 else START + 5, "counted": -1 if k < 3 else 1,
                }
                for k in range(ROWS)
            ]  # fmt: skip
            connection.execute(insert(leases), held)
            log = [
                {**where, "seq": k + 2, "at": START, "kind": "leased", "data": '{"lease": "x"}'} for k in range(ROWS)
            ]
            connection.execute(insert(events), log)
        for id, data in connection.execute(text("SELECT id, data FROM campaigns")).all():
            new = {"id": id, "data": json.dumps(json.loads(data) | {"tasks": ROWS})}
            connection.execute(text("UPDATE campaigns SET seq = 5001, data = :data WHERE id = :id"), new)


@pytest.fixture(params=["sqlite", "postgresql", "postgresql without statistics", "postgresql with old statistics"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SqlStore]:
    """With statistics of today, of the time when there were a few rows, or none: its own daemon has not come by yet."""
    kind, _, statistics = request.param.partition(" ")
    with opened(kind, tmp_path) as made:
        if kind == "postgresql":
            with made.engine.execution_options(writes=True).begin() as connection:
                for table in LARGE.split("|"):
                    connection.execute(text(f"ALTER TABLE {table} SET (autovacuum_enabled = false)"))
        assert isinstance(made, SqlStore)
        service = service_of_store(made, Clock())
        for id in ("demo", "other"):
            service.create(simple(), id)
        if "old" in statistics:
            service.add_tasks("other", ["a", "b"])
            service["other"].tell(service["other"].ask("w0").id, "yes")
            analyze(made)
            empty(made)
        fill(made)
        if not statistics:
            analyze(made)
        yield made
        service.table_cache.close()


def plan_of(store: SqlStore, statement: Statement) -> list[str]:
    explain = "EXPLAIN QUERY PLAN" if store.engine.dialect.name == "sqlite" else "EXPLAIN"
    with store.engine.connect() as connection:
        found = connection.exec_driver_sql(f"{explain} {statement[0]}", statement[1])
        return [str(row[-1]) for row in found]


def is_indexed(store: SqlStore, plan: list[str]) -> bool:
    """Whether no large table is read through, or read as far as its campaign goes."""
    if store.engine.dialect.name == "postgresql":
        return not any(re.search(rf"Seq Scan on ({LARGE})\b", step) for step in plan)
    whole = rf"SCAN ({LARGE})\b|SEARCH ({LARGE}) USING .*\(campaign=\?\)$"
    served = ("ix_leases_comment", "ix_leases_open")  # in their order, and stopped at the limit
    return not any(re.search(whole, step) and not any(name in step for name in served) for step in plan)


def test_what_a_requester_looks_at(store: SqlStore) -> None:
    seen: list[Statement] = []

    @event.listens_for(store.engine, "before_cursor_execute")
    def keep(connection: Any, cursor: Any, statement: str, parameters: Any, context: Any, executemany: bool) -> None:
        if statement.lstrip().startswith("SELECT"):
            seen.append((statement, parameters))

    ids = [lease_id("demo", k, k) for k in range(100, 120)]
    reads: dict[str, Callable[[], Any]] = {
        "events": lambda: store.light_events("demo", 20),
        "older events": lambda: store.light_events("demo", 20, before=2000),
        "new events": lambda: store.light_events("demo", 20, after=2000),
        "tasks": lambda: store.tasks_by_number("demo", range(100, 120)),
        "tasks by id": lambda: store.tasks_by_key("demo", [f"t{k}" for k in range(100, 120)]),
        "leases": lambda: store.leases("demo", ids=ids),
        "open leases": lambda: store.leases("demo", open=True, limit=10),
        "comments": lambda: store.leases("demo", commented=True, limit=10),
        "comments of a worker": lambda: store.leases("demo", commented=True, worker="w7", limit=10),
        "leases of tasks": lambda: store.leases("demo", range(100, 120)),
        "imports": lambda: imports_of(store, "demo", 1),
        "page of tasks": lambda: store.tasks("demo", 1000, 50),
        "page of events": lambda: store.events("demo", 1000, 50),
    }
    for name, read in reads.items():
        seen.clear()
        read()
        statements = list(seen)
        assert statements, name
        for statement in statements:
            plan = plan_of(store, statement)
            assert is_indexed(store, plan), (name, statement, plan)
    event.remove(store.engine, "before_cursor_execute", keep)
