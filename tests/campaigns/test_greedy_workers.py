"""Workers who have held every task, or all but full ones: an ask of theirs costs what that of others costs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from nextlabel.campaign.commands import Commands
from nextlabel.campaign.needs import Need
from nextlabel.campaigns.service import CampaignService
from nextlabel.store.questions import MOST_EXAMINED
from nextlabel.store.sql import SqlStore
from stores import Clock, opened, service_of_store, simple

#: Instructions of SQLite's machine between two calls of the counter.
EVERY = 10


@contextmanager
def steps_of(store: SqlStore) -> Iterator[list[int]]:
    """How many instructions SQLite runs: what statements cost, whatever the machine does beside."""
    steps = [0]

    def count() -> int:
        steps[0] += EVERY
        return 0

    def begin(driver: Any, record: Any, proxy: Any) -> None:
        driver.set_progress_handler(count, EVERY)

    def end(driver: Any, record: Any) -> None:
        driver.set_progress_handler(None, 0)

    sa.event.listen(store.engine, "checkout", begin)
    sa.event.listen(store.engine, "checkin", end)
    try:
        yield steps
    finally:
        sa.event.remove(store.engine, "checkout", begin)
        sa.event.remove(store.engine, "checkin", end)


def begin(service: CampaignService, tasks: int, spared: int) -> str:
    """A campaign in which ``greedy`` has held all tasks but ``spared`` ones, which are full."""
    id = service.create(simple(tasks, most_labels=1), tasks=[f"item {k}" for k in range(tasks)]).id
    for k in range(spared):
        service.tell(service.ask(id, f"ann{k}").id, "yes")  # type: ignore[union-attr]

    def hold_and_release(commands: Commands) -> None:
        for _ in range(200):
            lease = commands.ask("greedy")
            if not lease:
                break
            commands.release(lease.id)  # type: ignore[union-attr]

    for _ in range(1 + tasks // 200):
        service.run(id, hold_and_release)
    return id


def poll(service: CampaignService, id: str, worker: str) -> Any:
    """An ask as the command queue runs it beside another command."""
    needs = [Need(worker, asks=True), Need("nobody")]
    with service.store.transactions({id: needs}) as ledgers:
        return Commands(ledgers[id], service.table_cache, service.clock()).ask(worker)


@pytest.mark.parametrize("spared", [0, 1])
def test_the_cost_of_an_ask_does_not_grow_with_what_a_worker_has_held(spared: int, tmp_path: Path) -> None:
    costs = []
    for tasks in (2 * MOST_EXAMINED, 6 * MOST_EXAMINED):
        folder = tmp_path / str(tasks)
        folder.mkdir()
        with opened("sqlite", folder) as store:
            assert isinstance(store, SqlStore)
            service = service_of_store(store, Clock())
            id = begin(service, tasks, spared)
            assert poll(service, id, "greedy").reason == "nothing_left_for_you"  # counts, if it has to
            with steps_of(store) as steps:
                assert poll(service, id, "greedy").reason == "nothing_left_for_you"
            costs.append(steps[0])
            with steps_of(store) as steps:
                assert poll(service, id, "bob").worker == "bob"
            costs.append(steps[0])
            service.table_cache.close()
    small, bob, large, _ = costs
    assert large <= small + 2 * EVERY
    assert large < 2 * bob


def test_nor_with_the_number_of_such_workers(tmp_path: Path) -> None:
    """Ten thousand models that label everything: who moves a task looks at those who have held it."""
    with opened("sqlite", tmp_path) as store:
        assert isinstance(store, SqlStore)
        service = service_of_store(store, Clock())
        id = begin(service, 2 * MOST_EXAMINED, 0)
        poll(service, id, "greedy")
        costs = []
        for more in range(2):
            others = [{"worker": f"model {k}"} for k in range(more * 500)]
            with store.engine.execution_options(writes=True).begin() as connection:
                for other in others:
                    new = "SELECT campaign, :worker, klass, node, w, 1 FROM held_counts WHERE worker = 'greedy'"
                    connection.execute(sa.text(f"INSERT INTO held_counts {new}"), other)
            with steps_of(store) as steps:
                assert poll(service, id, f"bob {more}").worker == f"bob {more}"
                assert poll(service, id, "greedy").reason == "nothing_left_for_you"
            costs.append(steps[0])
        assert costs[1] < 1.1 * costs[0]
        service.table_cache.close()


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_worker_who_is_counted_gets_what_is_new_for_them(kind: str, tmp_path: Path) -> None:
    """Tasks that come, tasks that others move, and tasks that were full and are not any more."""
    with opened(kind, tmp_path) as store:
        assert isinstance(store, SqlStore)
        service = service_of_store(store, Clock())
        id = begin(service, MOST_EXAMINED + 20, spared=2)
        assert poll(service, id, "greedy").reason == "nothing_left_for_you"
        with store.engine.connect() as connection:
            assert connection.execute(sa.text("SELECT count(*) FROM held_counts WHERE count > 0")).scalar_one() == 1
        service.add_tasks(id, ["one more"])
        assert poll(service, id, "greedy").payload == "one more"
        service.release(poll(service, id, "greedy").id)
        assert poll(service, id, "greedy").reason == "nothing_left_for_you"
        told = next(lease for lease in store.leases(id, range(MOST_EXAMINED + 20)) if lease.worker == "ann0")
        service.undo(told.id)
        service.release(told.id)
        assert poll(service, id, "greedy").task == service.store.tasks(id)[told.task].key
        assert service.verify(id).right
        service.table_cache.close()


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_counts_that_are_wrong_are_found_and_repaired(kind: str, tmp_path: Path) -> None:
    """Wrong counts hide tasks from a worker: they are compared and rebuilt as all that follows from the log."""
    damages = [
        "UPDATE held_counts SET count = count + 7 WHERE node > 0", "UPDATE held_counts SET count = 0",
        "DELETE FROM held_counts WHERE node = 0", "UPDATE held_counts SET worker = 'bob', node = node + 1",
    ]  # fmt: skip
    with opened(kind, tmp_path) as store:
        assert isinstance(store, SqlStore)
        service = service_of_store(store, Clock())
        id = service.create(simple(500, most_labels=2), tasks=[f"item {k}" for k in range(30)]).id

        def hold_some(commands: Commands) -> None:
            for k in range(24):
                lease = commands.ask("greedy")
                commands.tell(lease.id, "yes") if k % 2 else commands.release(lease.id)  # type: ignore[union-attr]
            commands.ledger.write_rows()  # type: ignore[attr-defined]
            commands.ledger.held_counts.begin("greedy")  # type: ignore[attr-defined]

        service.run(id, hold_some)
        before = counts_in(store)
        assert len(before) > 1 and service.verify(id).right
        for damage in damages:
            with store.engine.execution_options(writes=True).begin() as connection:
                connection.execute(sa.text(damage))
            wrong = counts_in(store)
            assert service.verify(id).differing.keys() == {"held_counts"} and counts_in(store) == wrong
            assert service.verify(id, repair=True).repaired
            assert counts_in(store) == (before if "bob" not in damage else {})
            assert service.verify(id).right
        assert poll(service, id, "greedy").worker == "greedy" and service.verify(id).right
        service.table_cache.close()


def counts_in(store: SqlStore) -> dict[Any, int]:
    with store.engine.connect() as connection:
        found = connection.execute(sa.text("SELECT worker, klass, node, w, count FROM held_counts"))
        return {tuple(key): count for *key, count in found if count}
