"""Campaigns in the memory of several processes: what others wrote is seen, and memory is given back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
import sqlalchemy as sa

from nextlabel.application.service import CampaignService
from nextlabel.errors import GoneError
from nextlabel.store import sql
from nextlabel.store.sql import SqlStore
from states import differences, different, loaded_state, resident_state
from stores import Clock, everything, opened, service_of_store, simple

WORKERS = tuple(f"w{k}" for k in range(7))


@pytest.fixture(params=["sqlite", "postgresql"])
def both(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[CampaignService, CampaignService]]:
    """Two processes, as it were, on one database."""
    with opened(request.param, tmp_path) as store:
        clock = Clock()
        services = service_of_store(store, clock), service_of_store(SqlStore(store.url), clock)
        yield services
        services[1].close()
        services[0].table_cache.close()


@pytest.mark.parametrize("many", [False, True], ids=["groups", "ranked"])
def test_what_another_process_writes_in_between_is_seen(
    both: tuple[CampaignService, CampaignService], many: bool
) -> None:
    random = Random(3)
    config = simple(90, policy="okg", lease_seconds=50.0)
    tasks = [{"id": f"t{k}", "text": "x", **({"score": 0.1 + k / 100} if many else {})} for k in range(75)]
    id = both[0].create(config, tasks=tasks[: 70 if many else 30]).id
    answered: list[tuple[str, str]] = []
    for step in range(150):
        service, worker = random.choice(both), random.choice(WORKERS)
        if step == 70:
            service.add_tasks(id, tasks[70:])
        lease = service[id].ask(worker)
        if not lease:
            continue
        other = random.choice(both)
        move = random.random()
        if move < 0.6:
            other[lease.campaign].tell(lease.id, random.choice(("no", "yes")))
            answered.append((lease.id, worker))
        elif move < 0.8:
            other[lease.campaign].release(lease.id)
        else:
            other.clock.forward(random.choice((1.0, 60.0)))  # type: ignore[attr-defined]  # one clock for both
    held = [(lease.task, lease.worker) for lease in both[0].store.leases(id, range(75))]
    assert len(held) == len(set(held)) > 60 and len(answered) > 30
    assert both[0][id].verify().right
    assert everything(both[0].store, id) == everything(both[1].store, id)
    assert [differences(service.store, id) for service in both] == [[], []]


def test_one_that_is_far_behind_catches_up(
    both: tuple[CampaignService, CampaignService], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Following goes on in steps, and a failure after it leaves what was followed."""
    monkeypatch.setattr(sql, "FOLLOWED", 7)
    one, other = both
    id = one.create(simple(90), tasks=["a", "b", "c"]).id
    assert other[id].ask("ann")
    for k in range(12):
        lease = one[id].ask(f"w{k}")
        assert lease
        one[lease.campaign].tell(lease.id, "yes")
    with pytest.raises(ZeroDivisionError), other.store.transaction(id) as state:
        assert state.row.seq == one.store.row(id).seq
        state.record(state.row.last_at, "paused", {})
        raise ZeroDivisionError
    assert differences(other.store, id) == [] == differences(one.store, id)


def test_repaired_tables_are_read_again_by_a_process_that_runs(both: tuple[CampaignService, CampaignService]) -> None:
    one, other = both
    id = one.create(simple(90), tasks=["a", "b", "c"]).id
    with one.store.write() as connection:
        connection.execute(sa.text("UPDATE tasks SET node = 4, labels = 2 WHERE number = 1"))
        connection.execute(sa.text("UPDATE campaigns SET reserved = 9"))
    wrong = resident_state(other.store, id)  # read from the damaged tables
    assert wrong.pool.tasks.labels[1] == 2
    assert one[id].verify(repair=True).repaired
    assert differences(other.store, id) == [] == differences(one.store, id)
    lease = other[id].ask("ann")
    assert lease and lease.id.split("-")[1] == "0"
    assert one[lease.campaign].tell(lease.id, "yes").counted and one[id].verify().right


def test_a_campaign_that_another_process_deletes_is_gone(both: tuple[CampaignService, CampaignService]) -> None:
    one, other = both
    id = one.create(simple(90), tasks=["a", "b", "c"]).id
    assert other[id].ask("ann")
    one.delete(id)
    with pytest.raises(GoneError):
        other[id].ask("ann")


def test_large_campaigns_are_read_before_the_lock(
    both: tuple[CampaignService, CampaignService], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are right all the same, whatever is written between reading and locking."""
    monkeypatch.setattr(sql, "LARGE_CAMPAIGN", 2)
    one, other = both
    id = one.create(simple(90), tasks=["a", "b", "c"]).id
    read = other.store._preloaded

    def and_then_somebody_asks(id: str) -> object:
        found = read(id)
        assert found is not None
        assert one[id].ask("ann")
        return found

    monkeypatch.setattr(other.store, "_preloaded", and_then_somebody_asks)
    lease = other[id].ask("bob")
    assert lease and lease.id.split("-")[1] == "1"
    assert differences(other.store, id) == []


def test_campaigns_in_memory_take_no_more_than_they_may(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that were used longest ago are given up, and read again when they are wanted."""
    monkeypatch.setattr(sql, "LOOK_S", 0.0)
    with opened("sqlite", tmp_path) as store:
        service = service_of_store(store, Clock())
        ids = [service.create(simple(60, policy="okg"), tasks=["a", "b", "c"]).id for _ in range(8)]
        one = resident_state(store, ids[0]).nbytes
        store.memory = 3 * one
        for turn in range(6):
            for id in ids:
                lease = service[id].ask(f"w{turn}")
                if lease and turn % 3:
                    service[lease.campaign].tell(lease.id, "yes")
                held = [id for id, resident in store._residents.items() if resident.state is not None]
                assert id in held and len(held) <= 4
        for id in ids:
            assert different(resident_state(store, id), loaded_state(store, id)) == []
        assert all(service[id].verify().right for id in ids)


def test_what_a_program_does_with_a_payload_is_not_seen_by_others(tmp_path: Path) -> None:
    with opened("sqlite", tmp_path) as store:
        service = service_of_store(store, Clock())
        id = service.create(simple(60, policy="okg"), tasks=[{"id": "t", "text": "x", "more": {"a": [1]}}]).id
        first = service[id].ask("ann")
        assert first
        first.payload["more"]["a"].append(2)
        second = service[id].ask("ben")
        assert second and second.task == "t" and second.payload["more"] == {"a": [1]}
