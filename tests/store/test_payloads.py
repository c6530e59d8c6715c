"""A payload is stored once, and everybody reads it where it was: in the log, in tasks, and in what workers get."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from nextlabel.application import service as service_module
from nextlabel.application.service import CampaignService
from nextlabel.campaign.records import ImportRow
from nextlabel.errors import ConflictError
from nextlabel.store.sql import SqlStore, open_store
from nextlabel.store.tables import metadata
from stores import Clock, opened, service_of_store, simple

#: Texts that a database may write in several ways, and payloads that are no tables.
TEXTS: list[Any] = [
    "plain",
    'it\'s "quoted", {a: 1}',
    "Grüße, 你好 \u2028",
    "",
    None,
    0.1,
    [1, {"a": []}],
    {"text": {}},
]


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SqlStore]:
    with opened(request.param, tmp_path) as store:
        assert isinstance(store, SqlStore)
        yield store


def texts(first: int, many: int) -> list[dict[str, Any]]:
    return [{"id": f"t{k}", "text": f"a text that is like no other, number {k}."} for k in range(first, first + many)]


def fill(service: CampaignService, monkeypatch: pytest.MonkeyPatch) -> str:
    """A campaign with tasks that were added, tasks that were imported in steps, and some labels."""
    id = service.create(simple(100), "c").id
    service.add_tasks(id, [{"id": f"p{k}", "payload": text} for k, text in enumerate(TEXTS)])
    with monkeypatch.context() as patch:
        patch.setattr(service_module, "AT_ONCE", 5)
        service.add_tasks(id, texts(0, 12), batch="imported")
    for _ in range(8):
        lease = service[id].ask("ann")
        assert lease
        service[lease.campaign].tell(lease.id, "yes")
    return id


def occurrences(store: SqlStore, text: str) -> list[str]:
    """Where a text stands in the database: the table and the column, once for each time."""
    found: list[str] = []
    with store.engine.connect() as connection:
        for table in metadata.sorted_tables:
            for row in connection.execute(sa.select(table)).mappings():
                for name, value in row.items():
                    found += [f"{table.name}.{name}"] * str(value).count(text)
    return found


def test_it_is_stored_once(database: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    service = service_of_store(database, Clock())
    id = fill(service, monkeypatch)
    assert database.records.find(ImportRow, campaign=id, limit=1)[0].state == "done"
    for k in range(12):
        assert occurrences(database, f"like no other, number {k}.") == ["payloads.data"]
    with database.engine.execution_options(writes=True).begin() as connection:
        connection.execute(sa.text("DELETE FROM tasks WHERE number IN (9, 10)"))
        connection.execute(sa.text("UPDATE tasks SET place = 2.0 WHERE number = 11"))
    found = service[id].verify(repair=True)
    assert found.differing["tasks"] == 3 and service[id].verify().right
    assert occurrences(database, "like no other, number 3.") == ["payloads.data"]
    service.table_cache.close()


def test_the_log_is_read_as_it_was_recorded(database: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = open_store("memory:")
    logs = []
    for store in (memory, database):
        service = service_of_store(store, Clock())
        id = fill(service, monkeypatch)
        brought = [event for event in store.events(id) if event.kind.startswith("tasks_")]
        assert len(brought) == 3 and brought[1].data["hidden"]
        logs.append([json.dumps([event.kind, event.data]) for event in brought])
        assert service[id].verify().right
        service.table_cache.close()
    assert logs[0] == logs[1]
    assert [task.payload for task in database.tasks("c")] == [task.payload for task in memory.tasks("c")]
    for size in range(1, 3000, 250):  # pages end at the same events and tasks
        assert len(memory.events("c", 1, 100, size)) == len(database.events("c", 1, 100, size))
        assert len(memory.tasks("c", -1, 100, size)) == len(database.tasks("c", -1, 100, size))


def test_one_that_is_missing_is_named(database: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    service = service_of_store(database, Clock())
    id = fill(service, monkeypatch)
    with database.engine.execution_options(writes=True).begin() as connection:
        connection.execute(sa.text("DELETE FROM payloads WHERE number = 10"))
    for read in (database.events, database.tasks, lambda id: service[id].verify()):
        with pytest.raises(ConflictError, match="the payload of task 10 is missing"):
            read(id)
    service.table_cache.close()
