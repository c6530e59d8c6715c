"""A clock that is far off is refused, and what it did before anybody noticed is put right by a command."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from nextlabel.application.service import CampaignService
from nextlabel.campaign.commands import MOST_AHEAD_S, MOST_BEHIND_S
from nextlabel.cli.app import run
from nextlabel.errors import ClockError
from nextlabel.store.sql import ServerClock, SqlStore
from stores import DATABASES, START, Clock, everything, opened, service_of_store, simple

YEAR = 365 * 86_400.0


@pytest.fixture(params=DATABASES)
def service(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[CampaignService]:
    with opened(request.param, tmp_path) as store:
        service = service_of_store(store, Clock())
        yield service
        service.table_cache.close()


def set_clock(service: CampaignService, now: float) -> None:
    service.clock.now = now  # type: ignore[attr-defined]


def campaign(service: CampaignService, **settings: object) -> str:
    return service.create(simple(20, **settings), tasks=["a", "b", "c", "d"]).id


def jumped(service: CampaignService, id: str) -> None:
    """A clock that goes ahead by a year in steps that are small enough to pass."""
    for step in range(1, 14):
        set_clock(service, START + step * 28.1 * 86_400)
        service[id].ask(f"ahead-{step}")


def test_one_reading_a_year_ahead_changes_nothing(service: CampaignService) -> None:
    id = campaign(service, deadline=START + 3_600)
    lease = service[id].ask("ann")
    assert lease
    before = everything(service.store, id)
    set_clock(service, START + YEAR)
    with pytest.raises(ClockError, match=r"365 days after the last event .* --accept"):
        service[id].ask("bob")
    with pytest.raises(ClockError):
        service[lease.campaign].tell(lease.id, "yes")
    assert everything(service.store, id) == before
    set_clock(service, START + 10)
    assert service[id].ask("bob") and service[lease.campaign].tell(lease.id, "yes").status == "labelled"


def test_a_closed_campaign_says_so_at_any_time(service: CampaignService) -> None:
    id = campaign(service, deadline=START + 2 * MOST_AHEAD_S)
    lease = service[id].ask("ann")
    assert lease
    service[lease.campaign].tell(lease.id, "yes")
    service[id].change(budget=1)
    set_clock(service, START + YEAR)
    answer = service[id].ask("bob")
    assert not answer and answer.reason == "budget_spent"
    assert service[lease.campaign].tell(lease.id, "yes").counted  # the same answer again


def test_a_campaign_does_not_freeze_after_a_wrong_clock(service: CampaignService) -> None:
    """Leases and the deadline of a campaign that ran by a clock a year ahead, once the clock is right again."""
    id = campaign(service, deadline=START + 3_600)
    first = service[id].ask("ann")
    assert first
    jumped(service, id)
    assert service.store.row(id).closed_reason == "deadline_passed"
    set_clock(service, START + 100)
    with pytest.raises(ClockError, match="days before the last event"):
        service[id].ask("bob")
    assert service[id].accept_clock()
    row = service.store.row(id)
    assert (row.closed_reason, row.last_at, row.reserved) == (None, START + 100, 0)
    held = service[id].ask("bob")
    assert held and held.expires_at == START + 160
    set_clock(service, START + 161)
    assert service[id].ask("cy")
    assert service.store.row(id).expired == 2  # ann's and bob's
    assert service[first.campaign].tell(first.id, "yes").counted
    before = everything(service.store, id)
    service[id].rebuild()
    assert everything(service.store, id) == before


def test_leases_given_out_by_a_wrong_clock_end(service: CampaignService) -> None:
    id = campaign(service)
    jumped(service, id)
    told = service[id].ask("ann")
    assert told
    service[told.campaign].tell(told.id, "yes")
    held = service[id].ask("bob")
    assert held and held.expires_at > START + YEAR
    set_clock(service, START + 100)
    assert service[id].accept_clock() and not service[id].accept_clock()
    mine = {lease.id: lease for lease in everything(service.store, id)["leases"]}
    assert (mine[held.id].leased_at, mine[held.id].expires_at) == (START + 100, START + 160)
    assert mine[told.id].expires_at == START + 160
    set_clock(service, START + 130)
    assert service[held.campaign].tell(held.id, "no").status == "labelled"
    workers = {worker.worker: worker for worker in service.store.workers(id)}
    assert workers["bob"].seconds == 30.0
    set_clock(service, START + 100 + 61)
    assert service[id].ask("cy")
    assert service.store.row(id).reserved == 1
    before = everything(service.store, id)
    service[id].rebuild()
    assert everything(service.store, id) == before


def test_a_campaign_that_nobody_touched_for_long_goes_on_when_the_clock_is_accepted(service: CampaignService) -> None:
    id = campaign(service)
    set_clock(service, START + MOST_AHEAD_S + 1)
    with pytest.raises(ClockError):
        service[id].pause()
    assert service[id].accept_clock()
    lease = service[id].ask("ann")
    assert lease and lease.leased_at == START + MOST_AHEAD_S + 1


def test_a_clock_that_is_a_little_behind_waits_for_the_log(service: CampaignService) -> None:
    id = campaign(service)
    set_clock(service, START - MOST_BEHIND_S)
    lease = service[id].ask("ann")
    assert lease and lease.leased_at == START
    set_clock(service, START - MOST_BEHIND_S - 1)
    with pytest.raises(ClockError, match="61 seconds before"):
        service[id].ask("bob")


def test_postgresql_is_asked_for_the_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All processes go by the server's clock, whatever their own machines' say."""
    with opened("postgresql", tmp_path) as store:
        assert isinstance(store, SqlStore) and isinstance(store.clock, ServerClock)
        service = CampaignService(store)
        id = service.create(simple(20), tasks=["a"]).id
        with store.engine.connect() as connection:
            right = float(connection.execute(sa.text("SELECT extract(epoch FROM clock_timestamp())")).scalar_one())
        monkeypatch.setattr("time.time", lambda: right + YEAR)
        store.clock.hear(right + YEAR)  # as a process would that never heard the server
        lease = service[id].ask("ann")
        assert lease and right - 600 < lease.leased_at < right + 600
        service.table_cache.close()


def test_the_command_accepts_the_clock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with opened("sqlite", tmp_path) as store:
        ahead = CampaignService(store, lambda: store.clock() + 86_400.0)
        ahead.create(simple(20), "mine", tasks=["a"])
        ahead.close()
    flags = ["--db", "labels.db"]
    assert run(["campaign", "change", "mine", "--pause", *flags]) == 1
    assert "nextlabel campaign change mine --accept-clock" in capsys.readouterr().err
    assert run(["campaign", "change", "mine", "--accept-clock", "--pause", *flags]) == 0
    assert "mine is paused. It goes on by the clock." in capsys.readouterr().err
    assert run(["campaign", "change", "mine", "--accept-clock", *flags]) == 0
    assert "Nothing was wrong with its clock." in capsys.readouterr().err
