"""Deleting a campaign, on every store: gone at once for everybody, its rows bit by bit, whatever ends in between."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select

import nextlabel as nl
from nextlabel.application import deletions, imports
from nextlabel.application.service import CampaignService
from nextlabel.campaign.crowd_model import new_model
from nextlabel.campaign.new_tasks import read_tasks
from nextlabel.campaign.records import ACTIVE, ImportRow
from nextlabel.errors import ConflictError, GoneError, InputError, NotFoundError
from nextlabel.store.sql import SqlStore
from nextlabel.store.tables import campaigns, deleted_campaigns, metadata
from stores import Clock, everything, opened, service_of_store, simple


def start(service: CampaignService, id: str, tasks: int = 30) -> str:
    """A campaign with a bit of everything."""
    rows = [{"id": f"t{k}", "text": "x", **({"gold": "yes"} if k == 0 else {})} for k in range(tasks)]
    service.create(simple(budget=20), id, rows)
    for worker in ("ann", "bob"):
        for _ in range(3):
            lease = service[id].ask(worker)
            assert lease
            service[lease.campaign].tell(lease.id, "yes")
    service[id].set_standing("bob", "blocked", "guesses")
    service[id].draw_audit(3)
    return id


def rows_left(store: SqlStore) -> dict[str, int]:
    """Tables that have any rows of campaigns."""
    tables = [table for table in metadata.sorted_tables if "campaign" in table.c] + [campaigns]
    with store.engine.connect() as connection:
        found = {
            table.name: connection.execute(select(func.count()).select_from(table)).scalar_one() for table in tables
        }
    return {name: rows for name, rows in found.items() if rows}


def test_a_deleted_campaign_is_gone_for_everybody_and_leaves_no_row(service: CampaignService) -> None:
    id = start(service, "first")
    held = service[id].ask("ann")
    assert held
    service.store.records.revoke_link(id, "ann")
    service.delete(id)
    for attempt in (
        lambda: service[id].ask("ann"),
        lambda: service[held.campaign].tell(held.id, "yes"),
        lambda: service[held.campaign].renew(held.id),
        lambda: service.store.row(id),
        lambda: list(service[id].results()),
        lambda: service[id].change(budget=30),
        lambda: service.delete(id),
    ):
        with pytest.raises(GoneError, match="deleted"):
            attempt()
    assert service.store.campaigns() == [] and service.store.records.link_versions() == {}
    assert service.store.records.deleted_at(id) is not None and service.store.records.unfinished() == []
    if isinstance(service.store, SqlStore):
        assert rows_left(service.store) == {}


def test_what_never_was_is_not_deleted_and_an_id_is_not_given_twice(service: CampaignService) -> None:
    with pytest.raises(NotFoundError) as found:
        service.delete("never")
    assert not isinstance(found.value, GoneError)
    start(service, "once")
    service.delete("once")
    with pytest.raises(ConflictError, match="deleted"):
        service.create(simple(), "once")
    with pytest.raises(ConflictError, match="deleted"):
        service.create(simple(), "once", [{"text": "x"}] * 3000)
    assert service.store.campaigns() == [] and not service.store.records.find(ImportRow, state=ACTIVE)


def test_others_stay_as_they_are(service: CampaignService) -> None:
    for id in ("one", "two", "three"):
        start(service, id)
    before = {id: (everything(service.store, id), service.store.events(id)) for id in ("one", "three")}
    service.delete("two")
    assert {id: (everything(service.store, id), service.store.events(id)) for id in ("one", "three")} == before
    assert all(service[id].verify().right for id in ("one", "three"))
    start(service, "four")  # its number may be that of the deleted one
    assert service["four"].verify().right


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_wherever_a_process_ends_nothing_is_seen_and_the_next_one_carries_on(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deletions, "FEW", 7)
    monkeypatch.setattr(deletions, "MOST", 7)
    with opened(kind, tmp_path) as store:
        assert isinstance(store, SqlStore)
        service = service_of_store(store, Clock())
        start(service, "kept")
        before, left = everything(store, "kept"), rows_left(store)
        steps = 0
        start(service, "gone")
        service.deletions.begin("gone")
        while store.records.unfinished():
            # A process that ends after each step: another one sees nothing of the campaign.
            other = SqlStore(store.url, create=False)
            try:
                assert [row.id for row in other.campaigns()] == ["kept"]
                with pytest.raises(GoneError):
                    other.row("gone")
                (deletion,) = other.records.unfinished()
                store.records.clear(deletion, 7)
            finally:
                other.close()
            steps += 1
        assert steps > 5
        assert everything(store, "kept") == before and rows_left(store) == left
        service.deletions.finish()
        assert rows_left(store) == left


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_who_is_late_at_clearing_takes_nothing_of_a_campaign_that_got_the_number(kind: str, tmp_path: Path) -> None:
    with opened(kind, tmp_path) as store:
        assert isinstance(store, SqlStore)
        service = service_of_store(store, Clock())
        start(service, "old")
        late = service.deletions.begin("old")
        service.deletions.finish()
        start(service, "new")
        before = rows_left(store)
        assert store.records.clear(late, 1000) == 0
        assert rows_left(store) == before and service["new"].verify().right
        with store.engine.connect() as connection:
            assert connection.execute(select(deleted_campaigns.c.number)).scalar() is None


def test_an_import_into_a_deleted_campaign_ends(service: CampaignService, monkeypatch: pytest.MonkeyPatch) -> None:
    id = start(service, "busy")
    monkeypatch.setattr(imports, "STEP", 10)
    publish = imports.Imports._publish_chunk

    def deleted_meanwhile(self: imports.Imports, row: imports.ImportRow, hidden: int) -> None:
        publish(self, row, hidden)
        if hidden == 10:
            service.deletions.begin(id)

    monkeypatch.setattr(imports.Imports, "_publish_chunk", deleted_meanwhile)
    tasks = read_tasks(simple(), [{"id": f"n{k}", "text": "x"} for k in range(50)])
    with pytest.raises(GoneError):
        service.imports.add(id, tasks)
    (recovered,) = service.imports.recover()
    assert recovered.state == "failed" and "deleted" in (recovered.error or "")
    service.deletions.finish()
    assert service.store.records.find(ImportRow, state=ACTIVE) == []
    if isinstance(service.store, SqlStore):
        assert rows_left(service.store) == {}


def test_from_python(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'labels.db'}"
    with nl.Campaign.create(url, tasks=["a", "b"], budget=4, id="mine") as campaign:
        campaign.delete()
        with pytest.raises(nl.errors.GoneError):
            campaign.ask("ann")
    with pytest.raises(InputError):
        nl.Campaign.open(url)


@pytest.mark.parametrize("settings", [{}, {"answer": "pair"}])
def test_what_reads_the_log_beside_a_deletion_ends(tmp_path: Path, settings: Any) -> None:
    """A model that follows a log is told that there is none, and does not wait for events that never come."""
    items = [{"id": f"t{k}", "text": "x"} for k in range(4)]
    with nl.Campaign.create(f"sqlite:///{tmp_path / 'x.db'}", tasks=items, budget=9, **settings) as campaign:
        lease = campaign.ask("ann")
        assert lease
        with campaign._service.store.transaction(campaign.id) as state:
            view, all_tasks = state.copy_for_reading(), state.row.tasks
        campaign.delete()
        with pytest.raises(GoneError):
            new_model(view)
        data = {"tasks": all_tasks, "version": 1, "given": 1, "left": 8}
        if settings:
            with pytest.raises(GoneError):
                new_model(view).learn(view, data)
