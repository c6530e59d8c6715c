"""What a process remembers of campaigns between transactions: never longer than it is true, and never too much."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from nextlabel.campaigns.service import CampaignService
from nextlabel.store import ledger_rows, remembered_campaigns
from nextlabel.store.sql import SqlStore
from nextlabel.store.sql_ledger import CachedRows
from stores import Clock, everything, opened, service_of_store, simple

WORKERS = tuple(f"w{k}" for k in range(7))


@pytest.fixture(params=["sqlite", "postgresql"])
def both(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[CampaignService, CampaignService]]:
    """Two processes, as it were, on one database."""
    with opened(request.param, tmp_path) as store:
        assert isinstance(store, SqlStore)
        clock = Clock()
        services = service_of_store(store, clock), service_of_store(SqlStore(store.url), clock)
        yield services
        services[1].close()
        services[0].table_cache.close()


def test_what_another_process_writes_in_between_is_seen(both: tuple[CampaignService, CampaignService]) -> None:
    random = Random(3)
    config = simple(90, policy="okg", lease_seconds=50.0)
    id = both[0].create(config, tasks=[{"id": f"t{k}", "text": "x"} for k in range(30)]).id
    answered: list[tuple[str, str]] = []
    for _ in range(150):
        service, worker = random.choice(both), random.choice(WORKERS)
        lease = service.ask(id, worker)
        if not lease:
            continue
        other = random.choice(both)
        move = random.random()
        if move < 0.6:
            other.tell(lease.id, random.choice(("no", "yes")))
            answered.append((lease.id, worker))
        elif move < 0.8:
            other.release(lease.id)
        else:
            other.clock.forward(random.choice((1.0, 60.0)))  # type: ignore[attr-defined]  # one clock for both
    held = [(lease.task, lease.worker) for lease in both[0].store.leases(id, range(30))]
    assert len(held) == len(set(held)) > 60 and len(answered) > 30
    assert both[0].verify(id).right
    assert everything(both[0].store, id) == everything(both[1].store, id)


def test_rows_that_are_remembered_are_few(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_rows, "MOST_KEPT", 8)
    monkeypatch.setattr(remembered_campaigns, "MOST_ROWS", 60)
    with opened("sqlite", tmp_path) as store:
        assert isinstance(store, SqlStore)
        service = service_of_store(store, Clock())
        tasks = [{"id": f"t{k}", "text": "long " * 300 if k % 2 else "short"} for k in range(12)]
        ids = [service.create(simple(60, policy="okg"), tasks=tasks).id for _ in range(8)]
        for turn in range(12):
            for id in ids:
                lease = service.ask(id, f"w{turn}")
                if lease and turn % 3:
                    service.tell(lease.id, "yes")
                remembered = [cached.rows for cached in store._remembered.campaigns.values() if cached.rows is not None]
                assert store._remembered.size == sum(rows.size for rows in remembered) <= 60
                assert all(len(rows.tasks) <= 8 and len(rows.workers) <= 8 for rows in remembered)
                for rows in remembered:
                    assert all(len(task.payload["text"]) < 1000 for task in rows.tasks.values())
        assert all(service.verify(id).right for id in ids)


def test_a_failed_transaction_leaves_nothing_behind(tmp_path: Path) -> None:
    with opened("sqlite", tmp_path) as store:
        service = service_of_store(store, Clock())
        id = service.create(simple(60, policy="okg"), tasks=["a", "b", "c"]).id
        first = service.ask(id, "ann")
        assert first
        for turn in range(2):
            with pytest.raises(RuntimeError, match="no"), store.transaction(id) as ledger:
                ledger.row.spent, ledger.worker("ann").labels = 7, 9
                ledger.task(0).labels = 5
                raise RuntimeError("no")
            assert store.row(id).spent == turn
            service.tell(first.id, "yes")
        assert service.verify(id).right


def test_what_a_program_does_with_a_payload_is_not_seen_by_others(tmp_path: Path) -> None:
    with opened("sqlite", tmp_path) as store:
        service = service_of_store(store, Clock())
        id = service.create(simple(60, policy="okg"), tasks=[{"id": "t", "text": "x", "more": {"a": [1]}}]).id
        first = service.ask(id, "ann")
        assert first
        first.payload["more"]["a"].append(2)
        second = service.ask(id, "ben")
        assert second and second.task == "t" and second.payload["more"] == {"a": [1]}


def test_what_a_later_transaction_left_is_not_replaced(tmp_path: Path) -> None:
    with opened("sqlite", tmp_path) as store:
        assert isinstance(store, SqlStore)
        service = service_of_store(store, Clock())
        id = service.create(simple(60, policy="okg"), tasks=["a", "b", "c"]).id
        service.ask(id, "ann")
        later = store._remembered.campaigns[id]
        store._remembered._keep(
            id, CachedRows(seq=later.seq - 1)
        )  # a thread that was stopped between its commit and this
        assert store._remembered.campaigns[id] is later
