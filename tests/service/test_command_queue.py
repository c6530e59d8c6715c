"""The command queue: commands that wait together are committed together, errors stay with their commands."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from nextlabel.application.service import CampaignService
from nextlabel.campaign.commands import Commands
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.errors import BusyError, ConflictError, InputError, NotFoundError, TablesPendingError
from nextlabel.service.command_queue import MAX_BATCH, CommandQueue
from nextlabel.store.engine import busy
from nextlabel.store.sql import open_store
from service_fixtures import QUICK

CONFIG = CampaignSettings(budget=1000, labels=("no", "yes"), policy=str(QUICK["policy"]))


@pytest.fixture(params=["sqlite", "memory"])
def campaign_service(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[CampaignService]:
    made = CampaignService(open_store("memory:" if request.param == "memory" else f"sqlite:///{tmp_path / 'a.db'}"))
    for id in ("one", "two"):
        made.create(CONFIG, id)
        made.add_tasks(id, [{"id": f"t{k}"} for k in range(200)])
    made.table_cache.prepare(CONFIG, [CONFIG.default_prior], CONFIG.rho).result()
    yield made
    made.close()


@contextmanager
def queue_of(campaign_service: CampaignService) -> Iterator[tuple[CommandQueue, list[int]]]:
    commits: list[int] = []
    queue = CommandQueue(campaign_service, commits.append)
    try:
        yield queue, commits
    finally:
        queue.close()


def ask(worker: str) -> Callable[[Commands], Any]:
    return lambda commands: commands.ask(worker)


async def blocked(queue: CommandQueue) -> tuple[asyncio.Future[Any], threading.Event]:
    """A command that is running now and ends when the event is set."""
    running, door = threading.Event(), threading.Event()

    def command(_: Commands) -> None:
        running.set()
        door.wait()

    future = asyncio.ensure_future(queue.run("one", command))
    await asyncio.to_thread(running.wait)
    return future, door


async def behind_a_door(queue: CommandQueue, calls: list[tuple[str, Callable[[Commands], Any]]]) -> list[Any]:
    """All calls made while the queue is busy with something else, so that they wait together."""
    first, door = await blocked(queue)
    waiting = [asyncio.ensure_future(queue.run(id, command)) for id, command in calls]
    await asyncio.sleep(0)  # every call is in the queue after its first step
    door.set()
    await first
    return await asyncio.gather(*waiting, return_exceptions=True)


def test_commands_that_wait_together_are_committed_together(campaign_service: CampaignService) -> None:
    calls = [(("one", "two")[k % 2], ask(f"w{k}")) for k in range(50)]
    with queue_of(campaign_service) as (queue, commits):
        leases = asyncio.run(behind_a_door(queue, calls))
    assert len({lease.id for lease in leases}) == 50
    assert commits == [1, 50]
    assert [campaign_service.store.row(id).reserved for id in ("one", "two")] == [25, 25]


def test_a_campaign_that_is_not_there_keeps_nobody_from_a_common_commit(campaign_service: CampaignService) -> None:
    calls = [(("one", "none", "two", "nothing")[k % 4], ask(f"w{k}")) for k in range(20)]
    with queue_of(campaign_service) as (queue, commits):
        found = asyncio.run(behind_a_door(queue, calls))
    assert [isinstance(one, NotFoundError) for one in found] == [False, True] * 10
    assert commits == [1, 10]


def test_no_more_than_so_many_at_once(campaign_service: CampaignService) -> None:
    with queue_of(campaign_service) as (queue, commits):
        asyncio.run(behind_a_door(queue, [("one", ask(f"w{k}")) for k in range(MAX_BATCH + 5)]))
    assert commits == [1, MAX_BATCH, 5]


def test_a_refused_command_fails_alone(campaign_service: CampaignService) -> None:
    lease = campaign_service["one"].ask("ann")
    assert lease
    calls: list[tuple[str, Callable[[Commands], Any]]] = [
        ("one", ask("bob")),
        ("one", lambda commands: commands.tell(lease.id, "maybe")),
        ("one", lambda commands: commands.undo("one-9-ab")),
        ("one", lambda commands: commands.tell(lease.id, "yes")),
        ("one", lambda commands: commands.tell(lease.id, "no")),
        ("nobody", ask("ann")),
    ]
    with queue_of(campaign_service) as (queue, _):
        bob, maybe, missing, told, other, nobody = asyncio.run(behind_a_door(queue, calls))
    assert bob.worker == "bob"
    assert type(maybe) is InputError
    assert isinstance(missing, NotFoundError)
    assert told.counted
    assert isinstance(other, ConflictError)
    assert isinstance(nobody, NotFoundError)
    row = campaign_service.store.row("one")
    assert (row.spent, row.reserved) == (1, 1)


def test_a_broken_command_takes_nobody_with_it(campaign_service: CampaignService) -> None:
    def broken(commands: Commands) -> None:
        commands.ask("eve")  # written, then undone with the transaction
        raise ZeroDivisionError

    calls: list[tuple[str, Callable[[Commands], Any]]] = [("one", ask("ann")), ("one", broken), ("one", ask("bob"))]
    with queue_of(campaign_service) as (queue, commits):
        ann, error, bob = asyncio.run(behind_a_door(queue, calls))
    assert (ann.worker, bob.worker) == ("ann", "bob")
    assert isinstance(error, ZeroDivisionError)
    assert commits == [1, 1, 1]
    assert campaign_service.store.row("one").given == 2
    assert [e.data["worker"] for e in campaign_service.store.events("one") if e.kind == "leased"] == ["ann", "bob"]


def test_nobody_hears_before_the_commit(campaign_service: CampaignService, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = campaign_service.store.transactions

    @contextmanager
    def failing(needs: Any) -> Iterator[Any]:
        with plain(needs) as ledgers:
            yield ledgers
            raise OSError("the disk is full")

    async def heard() -> list[Any]:
        return list(await asyncio.gather(queue.run("one", ask("ann")), return_exceptions=True))

    monkeypatch.setattr(campaign_service.store, "transactions", failing)
    with queue_of(campaign_service) as (queue, commits):
        (error,) = asyncio.run(heard())
    assert isinstance(error, OSError)
    assert commits == []
    assert campaign_service.store.row("one").given == 0


def test_a_busy_campaign_keeps_no_other_waiting(
    campaign_service: CampaignService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is left out of the transaction, and then waited for; its commands are refused together, not each in turn."""
    plain, tried = campaign_service.store.transactions, []

    @contextmanager
    def locked(needs: Any) -> Iterator[Any]:
        tried.append(sorted(needs))
        if list(needs) == ["two"]:
            raise busy()
        with plain({id: some for id, some in needs.items() if id != "two"}) as ledgers:
            yield ledgers

    monkeypatch.setattr(campaign_service.store, "transactions", locked)
    with queue_of(campaign_service) as (queue, commits):
        *refused, ann = asyncio.run(
            behind_a_door(queue, [*(("two", ask(f"w{k}")) for k in range(9)), ("one", ask("ann"))])
        )
    assert all(isinstance(error, BusyError) for error in refused) and len(refused) == 9
    assert ann.worker == "ann" and tried == [["one"], ["one", "two"], ["two"]] and commits == [1, 1]


def test_a_caller_that_stops_waiting_does_not_stop_the_queue(campaign_service: CampaignService) -> None:
    async def impatient(queue: CommandQueue) -> Any:
        slow, door = await blocked(queue)
        slow.cancel()
        door.set()
        return await queue.run("one", ask("ann"))

    with queue_of(campaign_service) as (queue, _):
        assert asyncio.run(impatient(queue)).worker == "ann"


def test_a_queue_can_be_closed_and_used_again(campaign_service: CampaignService) -> None:
    with queue_of(campaign_service) as (queue, _):
        for worker in ("ann", "bob"):
            assert asyncio.run(queue.run("one", ask(worker))).worker == worker
            queue.close()


def test_the_cache_does_not_wait() -> None:
    config = CampaignSettings(budget=1000, labels=("no", "yes"), policy="okg")
    campaign_service = CampaignService(open_store("memory:"))
    with pytest.raises(TablesPendingError) as caught:
        campaign_service.table_cache.ready(config, [config.default_prior], 0.25)
    tables_now = caught.value.future.result(300)
    assert campaign_service.table_cache.ready(config, [config.default_prior], 0.25) is tables_now
    campaign_service.close()
