"""The writer: what waits together is committed together, errors stay with their commands, nobody hears too early."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from nextlabel.campaign.commands import Commands
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.campaigns.service import CampaignService
from nextlabel.errors import ConflictError, InputError, NotFoundError
from nextlabel.service.pending_tables import NonBlockingTableCache, TablesPendingError
from nextlabel.service.writer import MOST, Writer
from nextlabel.store.open import open_store
from service_fixtures import QUICK

CONFIG = CampaignSettings(budget=1000, labels=("no", "yes"), policy=str(QUICK["policy"]))


@pytest.fixture(params=["sqlite", "memory"])
def campaign_service(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[CampaignService]:
    made = CampaignService(open_store("memory:" if request.param == "memory" else f"sqlite:///{tmp_path / 'a.db'}"))
    for id in ("one", "two"):
        made.create(CONFIG, id)
        made.add_tasks(id, [{"id": f"t{k}"} for k in range(200)])
    made.table_cache.wait(CONFIG, [CONFIG.default_prior], CONFIG.rho)
    yield made
    made.close()


@contextmanager
def writer_of(campaign_service: CampaignService) -> Iterator[tuple[Writer, list[int]]]:
    commits: list[int] = []
    writer = Writer(campaign_service, commits.append)
    try:
        yield writer, commits
    finally:
        writer.close()


def ask(worker: str) -> Callable[[Commands], Any]:
    return lambda commands: commands.ask(worker)


async def behind_a_door(writer: Writer, calls: list[tuple[str, Callable[[Commands], Any]]]) -> list[Any]:
    """All calls made while the writer is busy with something else, so that they wait together."""
    door = threading.Event()
    first = asyncio.ensure_future(writer.run("one", lambda commands: door.wait(10)))
    await asyncio.sleep(0.05)
    waiting = [asyncio.ensure_future(writer.run(id, command)) for id, command in calls]
    await asyncio.sleep(0.05)
    door.set()
    await first
    return await asyncio.gather(*waiting, return_exceptions=True)


def test_commands_that_wait_together_are_committed_together(campaign_service: CampaignService) -> None:
    calls = [(("one", "two")[k % 2], ask(f"w{k}")) for k in range(50)]
    with writer_of(campaign_service) as (writer, commits):
        leases = asyncio.run(behind_a_door(writer, calls))
    assert len({lease.id for lease in leases}) == 50
    assert commits == [1, 25, 25]
    assert [campaign_service.store.row(id).reserved for id in ("one", "two")] == [25, 25]


def test_no_more_than_so_many_at_once(campaign_service: CampaignService) -> None:
    with writer_of(campaign_service) as (writer, commits):
        asyncio.run(behind_a_door(writer, [("one", ask(f"w{k}")) for k in range(MOST + 5)]))
    assert commits == [1, MOST, 5]


def test_a_refused_command_fails_alone(campaign_service: CampaignService) -> None:
    lease = campaign_service.ask("one", "ann")
    assert lease
    calls: list[tuple[str, Callable[[Commands], Any]]] = [
        ("one", ask("bob")),
        ("one", lambda commands: commands.tell(lease.id, "maybe")),
        ("one", lambda commands: commands.undo("one-9-ab")),
        ("one", lambda commands: commands.tell(lease.id, "yes")),
        ("one", lambda commands: commands.tell(lease.id, "no")),
        ("nobody", ask("ann")),
    ]
    with writer_of(campaign_service) as (writer, _):
        bob, maybe, missing, told, other, nobody = asyncio.run(behind_a_door(writer, calls))
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
    with writer_of(campaign_service) as (writer, commits):
        ann, error, bob = asyncio.run(behind_a_door(writer, calls))
    assert (ann.worker, bob.worker) == ("ann", "bob")
    assert isinstance(error, ZeroDivisionError)
    assert commits == [1, 1, 1]
    assert campaign_service.store.row("one").given == 2
    assert [e.data["worker"] for e in campaign_service.store.events("one") if e.kind == "leased"] == ["ann", "bob"]


def test_nobody_hears_before_the_commit(campaign_service: CampaignService, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = campaign_service.store.transaction

    @contextmanager
    def failing(id: str) -> Iterator[Any]:
        with plain(id) as ledger:
            yield ledger
            raise OSError("the disk is full")

    async def heard() -> list[Any]:
        return list(await asyncio.gather(writer.run("one", ask("ann")), return_exceptions=True))

    monkeypatch.setattr(campaign_service.store, "transaction", failing)
    with writer_of(campaign_service) as (writer, commits):
        (error,) = asyncio.run(heard())
    assert isinstance(error, OSError)
    assert commits == []
    assert campaign_service.store.row("one").given == 0


def test_who_stops_waiting_does_not_stop_the_writer(campaign_service: CampaignService) -> None:
    async def impatient(writer: Writer) -> Any:
        door = threading.Event()
        slow = asyncio.ensure_future(writer.run("one", lambda commands: door.wait(10)))
        await asyncio.sleep(0.05)
        slow.cancel()
        door.set()
        return await writer.run("one", ask("ann"))

    with writer_of(campaign_service) as (writer, _):
        assert asyncio.run(impatient(writer)).worker == "ann"


def test_a_writer_can_be_closed_and_used_again(campaign_service: CampaignService) -> None:
    with writer_of(campaign_service) as (writer, _):
        for worker in ("ann", "bob"):
            assert asyncio.run(writer.run("one", ask(worker))).worker == worker
            writer.close()


def test_the_hasty_desk_does_not_wait() -> None:
    config = CONFIG.changed(policy="okg")
    campaign_service = CampaignService(open_store("memory:"))
    hasty = NonBlockingTableCache(campaign_service.table_cache)
    with pytest.raises(TablesPendingError) as caught:
        hasty.ready(config, [config.default_prior], 0.25)
    tables_now = caught.value.future.result(120)
    assert hasty.ready(config, [config.default_prior], 0.25) is tables_now
    assert campaign_service.table_cache.ready(config, [config.default_prior], 0.25) is tables_now
    campaign_service.close()
