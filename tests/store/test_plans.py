"""What a requester looks at is read through indexes: the plans of the statements themselves, on both databases."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event, insert, text

from nextlabel.campaigns.import_status import imports_of
from nextlabel.store import questions
from nextlabel.store.sql import SqlStore
from nextlabel.store.tables import events, leases, payloads, tasks
from stores import START, Clock, opened, service_of_store, simple

#: Rows of each table, so that a planner with statistics has a reason to use an index.
ROWS = 5000
#: Tables that grow with tasks and labels.
LARGE = "tasks|leases|events"
Statement = tuple[str, Any]


def fill(store: SqlStore) -> None:
    """Rows as a campaign with many labels has them, in two campaigns."""
    lease = {"status": "labelled", "leased_at": START, "expires_at": START + 60, "ended_at": START + 5, "counted": True}
    task = {"klass": 0, "w": 0, "labels": 1}
    with store.engine.execution_options(writes=True).begin() as connection:
        for campaign in (1, 2):
            where = {"campaign": campaign}
            rows = [
                {**where, **task, "number": k, "key": f"t{k}", "lot": k / ROWS, "node": 1 + k % 50} for k in range(ROWS)
            ]
            connection.execute(insert(tasks), rows)
            connection.execute(insert(payloads), [{**where, "number": k, "data": '"text"'} for k in range(ROWS)])
            held = [
                {
                    **where, **lease, "id": f"{campaign}.{k}", "task": k, "worker": f"w{k % 500}", "seq": k + 2,
                    "label": None if k < 3 else 1, "status": "leased" if k < 3 else "labelled",
                    "ended_at": None if k < 3 else START + 5, "counted": None if k < 3 else True,
                }
                for k in range(ROWS)
            ]  # fmt: skip
            connection.execute(insert(leases), held)
            log = [
                {**where, "seq": k + 2, "at": START, "kind": "leased", "data": '{"lease": "x"}'} for k in range(ROWS)
            ]
            connection.execute(insert(events), log)
        connection.execute(text("UPDATE campaigns SET seq = 5001, tasks = 5000"))
        connection.execute(text("ANALYZE") if store.kind == "postgresql" else text("SELECT 1"))


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SqlStore]:
    with opened(request.param, tmp_path) as made:
        assert isinstance(made, SqlStore)
        service = service_of_store(made, Clock())
        for id in ("demo", "other"):
            service.create(simple(), id)
        fill(made)
        yield made
        service.table_cache.close()


def plan_of(store: SqlStore, statement: Statement) -> list[str]:
    explain = "EXPLAIN QUERY PLAN" if store.kind == "sqlite" else "EXPLAIN"
    with store.engine.connect() as connection:
        found = connection.exec_driver_sql(f"{explain} {statement[0]}", statement[1])
        return [str(row[-1]) for row in found]


def is_indexed(store: SqlStore, plan: list[str]) -> bool:
    """Whether no large table is read through, or read as far as its campaign goes."""
    if store.kind == "postgresql":
        return not any(re.search(rf"Seq Scan on ({LARGE})\b", step) for step in plan)
    whole = rf"SCAN ({LARGE})\b|SEARCH ({LARGE}) USING .*\(campaign=\?\)$"
    served = ("ix_leases_expiring", "ix_leases_open")  # in their order, and stopped at the limit
    return not any(re.search(whole, step) and not any(name in step for name in served) for step in plan)


def test_what_a_requester_looks_at(store: SqlStore) -> None:
    seen: list[Statement] = []

    @event.listens_for(store.engine, "before_cursor_execute")
    def keep(connection: Any, cursor: Any, statement: str, parameters: Any, context: Any, executemany: bool) -> None:
        if statement.lstrip().startswith("SELECT"):
            seen.append((statement, parameters))

    overview = store.overview
    reads = {
        "events": lambda: overview.events_before("demo", None, 20),
        "older events": lambda: overview.events_before("demo", 2000, 20),
        "tasks of a group": lambda: overview.tasks_in("demo", [(0, 7, 0), (0, 8, 0)], 10),
        "tasks": lambda: overview.tasks_numbered("demo", range(100, 120)),
        "leases": lambda: overview.leases_named("demo", [f"1.{k}" for k in range(100, 120)]),
        "open leases": lambda: overview.open_leases("demo", 10),
        "answers": lambda: overview.recent_answers("demo", "w7", 200),
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


def test_a_search_reads_no_more_tasks_than_it_may_examine(store: SqlStore) -> None:
    """PostgreSQL says how many rows it has read; for SQLite ``test_long_searches`` counts the steps as well."""
    searches = {
        questions.window_from(store.kind): "ix_tasks_state",
        questions.best_window(store.kind): "ix_tasks_score",
    }
    if store.kind == "postgresql":
        with store.engine.execution_options(writes=True).begin() as connection:
            connection.execute(text("UPDATE tasks SET score = lot, node = 7 WHERE campaign = 1"))
            connection.execute(text("UPDATE leases SET worker = 'greedy' WHERE campaign = 1"))
        with store.engine.execution_options(isolation_level="AUTOCOMMIT").connect() as connection:
            connection.execute(text("VACUUM ANALYZE tasks"))
    for question, index in searches.items():
        if store.kind == "sqlite":
            plan = plan_of(store, (question.text, WHICH))
            assert any(index in step for step in plan) and not any("TEMP B-TREE" in step for step in plan), plan
            continue
        plan = plan_of(store, (f"(ANALYZE, COSTS OFF, TIMING OFF) {question.text}", WHICH))
        read = [float(rows) for step in plan if " on tasks" in step for rows in re.findall(r"rows=([\d.]+)", step)]
        assert read and max(read) <= WHICH["examined"], plan
        assert not any("Rows Removed by Filter" in step and int(step.split(":")[1]) > 30 for step in plan), plan


WHICH = {
    "campaign": 1, "klass": 0, "node": 7, "w": 0, "start": 0.2, "end": 1.0, "worker": "greedy", "many": 1,
    "examined": 30, "score": 0.9, "place": 0.9, "least": 0.1, "least_place": 0.1,
}  # fmt: skip
