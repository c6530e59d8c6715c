"""Rows are held against the events: whatever is damaged is found and repaired, and a campaign that runs is right."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
import sqlalchemy as sa

from nextlabel.application.service import CampaignService
from nextlabel.cli.app import run
from nextlabel.errors import ConflictError
from nextlabel.store import verify
from nextlabel.store.sql import SqlStore
from nextlabel.store.tables import metadata
from stores import KINDS, Clock, everything, opened, service_of_store, simple


@pytest.fixture(params=KINDS)
def service(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[CampaignService]:
    with opened(request.param, tmp_path) as store:
        service = service_of_store(store, Clock())
        yield service
        service.table_cache.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SqlStore]:
    monkeypatch.setattr(verify, "SLICE", 5)
    monkeypatch.setattr(verify, "EVENTS", 40)
    with opened(request.param, tmp_path) as store:
        assert isinstance(store, SqlStore)
        yield store


def work(service: CampaignService, id: str, steps: int, seed: int = 0) -> None:
    random = Random(seed)
    for step in range(steps):
        service.clock.forward(2.0)  # type: ignore[attr-defined]
        lease = service[id].ask(f"w{seed}-{step % 7}")
        if lease and step % 6 == 1:
            service[lease.campaign].release(lease.id)
        elif lease and step % 6 != 3:
            service[lease.campaign].tell(lease.id, random.choice(["no", "yes"]))


def campaign(service: CampaignService, many: bool) -> str:
    tasks = [{"id": f"t{k}", "text": f"item {k}", **({"score": 0.2 + k / 200} if many else {})} for k in range(12)]
    id = service.create(simple(200, policy="okg", most_labels=6)).id
    service.add_tasks(id, tasks, batch="first")
    if many:
        service.add_tasks(id, [{"id": f"s{k}", "score": 0.1 + k / 100} for k in range(70)], batch="second")
    work(service, id, 60)
    return id


def stored(store: SqlStore) -> dict[str, list[Any]]:
    """Every row of the database."""
    with store.engine.connect() as connection:
        return {table.name: sorted(map(repr, connection.execute(sa.select(table)))) for table in metadata.sorted_tables}


def damage(store: SqlStore, *statements: str) -> None:
    with store.write() as connection:
        for statement in statements:
            connection.execute(sa.text(statement))


DAMAGE = {
    "workers": ["UPDATE workers SET labels = labels + 3, seconds = 0"],
    "leases": [
        "UPDATE leases SET label = 1 - label, expires_at = 5 WHERE label >= 0",
        "DELETE FROM leases WHERE task = 3",
        "UPDATE leases SET task = task + 100 WHERE worker = 2",
    ],
    "tasks": [
        "UPDATE tasks SET node = 1, labels = 5, closed = 9 WHERE number IN (1, 5, 7)",
        "DELETE FROM tasks WHERE number = 2",
        "UPDATE tasks SET place = 0.5, last = 0 WHERE number IN (4, 8)",
    ],
    "batches": ["UPDATE batches SET tasks = 1"],
    "classes": ["UPDATE classes SET prior = '{}'"],
    "campaigns": ['UPDATE campaigns SET spent = 1, data = \'{"rho": 3.0, "late": 4, "work_s": 7.0}\''],
}


@pytest.mark.parametrize("many", [False, True], ids=["groups", "ranked"])
def test_damage_is_found_and_repaired(database: SqlStore, many: bool) -> None:
    service = service_of_store(database, Clock())
    id = campaign(service, many)
    before, log = everything(database, id), database.events(id, 0, 10_000)
    assert service[id].verify().right
    for statements in DAMAGE.values():
        damage(database, *statements)
    damaged = stored(database)
    found = service[id].verify()
    assert set(found.differing) == set(DAMAGE) and not found.repaired and found.events == len(log)
    assert found.differing["leases"] >= 30 and found.differing["tasks"] >= 6
    assert stored(database) == damaged  # nothing was written
    again = service[id].verify(repair=True)
    assert again.repaired and set(again.differing) == set(DAMAGE)
    after = everything(database, id)
    rebuilt = database.events(id, len(log), 10_000)
    assert {event.kind for event in rebuilt} == {"rebuilt"}
    assert after.pop("row") == replace(before.pop("row"), seq=len(log) + len(rebuilt))
    assert after == before
    assert service[id].verify().right
    work(service, id, 10, 1)
    assert service[id].verify().right
    service.table_cache.close()


def test_a_counter_of_events_that_is_wrong_is_repaired_first(database: SqlStore) -> None:
    service = service_of_store(database, Clock())
    id = campaign(service, False)
    before = everything(database, id)
    damage(database, "UPDATE campaigns SET seq = seq - 3", "UPDATE workers SET labels = 0")
    assert service[id].verify().differing.keys() == {"workers", "campaigns"}
    service[id].verify(repair=True)
    after = everything(database, id)
    assert after["workers"] == before["workers"] and after["row"].spent == before["row"].spent
    assert service[id].verify().right
    service.table_cache.close()


def test_an_event_that_is_missing_is_named(database: SqlStore) -> None:
    service = service_of_store(database, Clock())
    id = campaign(service, False)
    damage(database, "DELETE FROM events WHERE seq = 12")
    with pytest.raises(ConflictError, match="event 12 of campaign"):
        service[id].verify(repair=True)
    service.table_cache.close()


def test_a_name_that_is_missing_is_said(database: SqlStore) -> None:
    """Names of workers stand in no other table."""
    service = service_of_store(database, Clock())
    id = campaign(service, False)
    damage(database, "DELETE FROM workers WHERE worker = 'w0-1'")
    for read in (database.events, lambda id: service[id].verify()):
        with pytest.raises(ConflictError, match="the name of worker 1 is missing"):
            read(id)
    service.table_cache.close()


def test_a_campaign_that_runs_is_right(database: SqlStore) -> None:
    """Compared with counters that were read before or after, it would not be."""
    service, other = service_of_store(database, Clock()), SqlStore(database.url)
    id = campaign(service, False)
    running, seed, failed = service_of_store(other, Clock()), iter(range(1, 10_000)), []
    running.clock = service.clock
    stop = threading.Event()

    def work_on() -> None:
        try:
            while not stop.is_set():
                work(running, id, 3, next(seed))
        except Exception as error:
            failed.append(error)

    thread = threading.Thread(target=work_on)
    thread.start()
    try:
        for repair in (False, True):
            found = verify.verify(database, id, repair, lambda fraction: work(service, id, 2, next(seed)))
            assert found.right and found.events > 60
    finally:
        stop.set()
        thread.join()
    assert not failed
    assert service[id].verify().right
    assert not any(event.kind == "rebuilt" for event in database.events(id, 0, 10_000))
    service.table_cache.close()
    running.close()


def test_what_runs_meanwhile_is_repaired_too(database: SqlStore) -> None:
    service = service_of_store(database, Clock())
    id = campaign(service, False)
    damage(database, "UPDATE tasks SET labels = labels + 2", "UPDATE workers SET labels = labels + 1",
           "UPDATE leases SET leased_at = leased_at - 100", "UPDATE campaigns SET reserved = 50")  # fmt: skip
    seeds = iter(range(1, 100))
    assert verify.verify(database, id, True, lambda fraction: work(service, id, 3, next(seeds))).repaired
    assert service[id].verify().right
    service.table_cache.close()


def test_a_running_service_does_not_write_its_stale_rows_back(database: SqlStore) -> None:
    service, other = service_of_store(database, Clock()), SqlStore(database.url)
    running = service_of_store(other, Clock())
    id = campaign(service, False)
    running.clock = service.clock
    damage(database, "UPDATE tasks SET labels = labels + 2", "UPDATE workers SET labels = labels + 1")
    work(running, id, 1, 1)  # has read the wrong rows
    assert service[id].verify(repair=True).repaired
    work(running, id, 5, 2)
    assert service[id].verify().right
    service.table_cache.close()
    running.close()


def test_nothing_is_written_where_nothing_differs(service: CampaignService) -> None:
    id = campaign(service, True)
    before = everything(service.store, id)
    assert service[id].verify().right and service[id].verify(repair=True).right
    assert everything(service.store, id) == before


def test_the_memory_store_compares_everything_too() -> None:
    with opened("memory", Path()) as store:
        service = service_of_store(store, Clock())
        id = campaign(service, False)
        before = everything(store, id)
        damage(store, "UPDATE workers SET labels = labels + 3 WHERE worker = 'w0-1'",
               "UPDATE leases SET expires_at = 5 WHERE number = 3")  # fmt: skip
        assert service[id].verify().differing == {"leases": 1, "workers": 1}
        assert service[id].verify(repair=True).repaired
        after = everything(store, id)
        assert after.pop("row").seq == before.pop("row").seq + 2 and after == before
        service.table_cache.close()


def test_the_command_checks_and_rebuilds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with opened("sqlite", tmp_path) as store:
        assert isinstance(store, SqlStore)
        service = service_of_store(store, Clock())
        id = campaign(service, False)
        service.table_cache.close()
        damage(store, "UPDATE workers SET labels = labels + 1", "UPDATE leases SET seq = 5 WHERE task = 3")
        damaged = stored(store)
        words = ["campaign", "verify", id, "--db", "labels.db"]
        assert run(words) == 1
        said = capsys.readouterr().err
        assert "7 workers' tallies" in said and "Nothing was written" in said
        assert stored(store) == damaged
        assert run([*words, "--repair"]) == 0 and "All of it was rebuilt" in capsys.readouterr().err
        assert run([*words, "--json"]) == 0
        assert '"unchanged": true' in capsys.readouterr().out
