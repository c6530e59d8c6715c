"""What a requester does about a worker: standing, labels left out and taken in again, pay and skill, on every store."""

from __future__ import annotations

import csv
import io

import pytest

import nextlabel as nl
from nextlabel.application import worker_reports
from nextlabel.application.service import CampaignService
from nextlabel.application.worker_reports import COLUMNS, cells, wilson
from nextlabel.campaign import worker_commands
from nextlabel.errors import ConflictError, InputError, NotFoundError
from nextlabel.files.write import export_text
from stores import Clock, everything, simple


def start(service: CampaignService, tasks: int = 4, **settings: object) -> str:
    return service.create(simple(**settings), tasks=[{"id": f"t{k}", "text": "x"} for k in range(tasks)]).id


def label(service: CampaignService, id: str, worker: str, answer: str = "yes") -> str:
    lease = service[id].ask(worker)
    assert lease, lease
    service[lease.campaign].tell(lease.id, answer)
    return lease.task


def follows(service: CampaignService, id: str) -> None:
    """Every row follows from the log."""
    before = everything(service.store, id)
    assert service[id].verify().right
    service[id].rebuild()
    assert everything(service.store, id) == before


def test_a_blocked_worker_holds_nothing_and_nothing_of_theirs_counts_any_more(service: CampaignService) -> None:
    id = start(service)
    label(service, id, "eve")
    held = service[id].ask("eve")
    assert held and service[id].set_standing("eve", "blocked", " guesses ").reason == "guesses"
    row = service.store.row(id)
    assert (row.spent, row.reserved, row.released) == (1, 0, 0)
    assert service[id].ask("eve").reason == "worker_blocked"  # type: ignore[union-attr]
    told = service[held.campaign].tell(held.id, "yes")
    assert (told.status, told.counted) == ("late", False)
    assert service.store.row(id).spent == 1
    with pytest.raises(ConflictError):
        service[held.campaign].renew(held.id)
    service[id].set_standing("eve", "blocked", "guesses")  # again: nothing happens
    service[id].set_standing("eve", "active")
    assert service[id].ask("eve")
    kinds = [event.kind for event in service.store.events(id)]
    assert kinds.count("worker_blocked") == kinds.count("worker_restored") == 1
    follows(service, id)


def test_a_blocked_worker_undoes_nothing(service: CampaignService) -> None:
    id = start(service)
    lease = service[id].ask("eve")
    assert lease
    service[lease.campaign].tell(lease.id, "yes")
    service[id].set_standing("eve", "blocked")
    with pytest.raises(ConflictError, match="blocked"):
        service[id].undo(lease)
    service[id].set_standing("eve", "active")
    service[id].drop_labels("eve")
    with pytest.raises(ConflictError, match="dropped"):
        service[id].undo(lease)


def test_a_paused_worker_finishes_what_they_hold(service: CampaignService) -> None:
    id = start(service)
    held = service[id].ask("ann")
    assert held
    service[id].set_standing("ann", "paused", "lunch")
    assert service[id].ask("ann") == held
    assert service[held.campaign].tell(held.id, "yes").counted
    refused = service[id].ask("ann")
    assert not refused and (refused.reason, refused.retry_after) == ("worker_paused", 30)
    assert service[id].ask("bob")


def test_dropped_labels_leave_the_results_stay_spent_and_come_back(
    service: CampaignService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_commands, "AT_ONCE", 2)  # in several steps
    id = start(service, tasks=3, budget=9, most_labels=2)
    mine = [label(service, id, "eve") for _ in range(3)]
    before = everything(service.store, id)
    done = service[id].drop_labels("eve", "guesses")
    assert (done.changed, done.left) == (3, 0)
    row = service.store.row(id)
    assert (row.spent, row.left) == (3, 6)
    assert [(r.labels, r.probability) for r in service[id].results()] == [(0, 0.5)] * 3
    assert list(service[id].labels()) == []
    assert [one.dropped for one in service[id].labels(dropped=True)] == [True] * 3
    follows(service, id)
    assert service[id].restore_labels("eve").changed == 3
    after = everything(service.store, id)
    for one in (before, after):
        one["row"].seq = 0  # the number of the last event
    assert after == before
    service[id].drop_labels("eve")
    for worker in ("ann", "bob"):
        for _ in range(3):
            label(service, id, worker, "no")
    row = service.store.row(id)
    assert (row.closed_reason, row.full, row.spent) == ("budget_spent", 3, 9)
    done = service[id].restore_labels("eve")
    assert (done.changed, done.left) == (0, 3)  # their places were taken
    assert sorted(mine) == ["t0", "t1", "t2"]
    follows(service, id)


def test_a_finished_campaign_opens_for_labels_in_place_of_dropped_ones(service: CampaignService) -> None:
    id = start(service, tasks=2, budget=6, most_labels=1)
    label(service, id, "eve"), label(service, id, "eve")
    assert service.store.row(id).closed_reason == "finished"
    service[id].drop_labels("eve")
    assert service.store.row(id).closed_reason is None
    assert service[id].ask("ann")
    service[id].restore_labels("eve")
    assert service.store.row(id).full == 1  # the item that ann holds has no room
    follows(service, id)


def test_nobody_gives_more_than_their_share(service: CampaignService) -> None:
    id = start(service, most_labels_per_worker=1)
    label(service, id, "ann")
    assert service[id].ask("ann").reason == "quota_reached"  # type: ignore[union-attr]
    service[id].change(most_labels_per_worker=2, pay_per_label=0.1)
    assert service.store.row(id).config.most_labels_per_worker == 2
    label(service, id, "ann")
    assert service[id].ask("ann").reason == "quota_reached"  # type: ignore[union-attr]
    service[id].change(most_labels_per_worker=None)
    assert service[id].ask("ann")
    with pytest.raises(InputError, match="most labels per worker 0 is not a whole number of at least 1"):
        service[id].change(most_labels_per_worker=0)
    with pytest.raises(InputError, match="pay per label"):
        service[id].change(pay_per_label=-1)
    follows(service, id)
    # the settings that it was created with are still the same campaign
    again = service.create(simple(most_labels_per_worker=1), id)
    assert service.store.row(again.id).config.pay_per_label == 0.1


def test_a_change_that_fails_changes_nothing(service: CampaignService) -> None:
    id = start(service)
    with pytest.raises(RuntimeError), service.store.transaction(id) as ledger:
        from nextlabel.campaign.commands import Commands

        Commands(ledger, service.table_cache, service.clock()).change(pay_per_label=3.0)
        raise RuntimeError
    assert service.store.row(id).config.pay_per_label == 0


def test_strangers_and_reasons_that_are_no_texts(service: CampaignService) -> None:
    id = start(service)
    with pytest.raises(NotFoundError, match="has had no task"):
        service[id].set_standing("nobody", "blocked")
    with pytest.raises(NotFoundError):
        service[id].drop_labels("nobody")
    label(service, id, "ann")
    with pytest.raises(InputError, match="500 characters"):
        service[id].set_standing("ann", "blocked", "x" * 501)


def test_the_list_of_payments_and_the_spammer_in_it() -> None:
    """Six people who look and one who does not: labels, time and amount of each, and who stands out."""
    from random import Random

    clock, random = Clock(), Random(4)
    texts = [{"id": f"t{k}", "text": "x"} for k in range(60)]
    settings = {"budget": 60 * 7, "labels": ["no", "yes"], "policy": "uniform", "pay_per_label": 0.05}
    with nl.Campaign.create("memory:", texts, clock=clock, **settings) as campaign:  # type: ignore[arg-type]
        for worker in ("a", "b", "c", "d", "e", "f", "spammer"):
            for _ in range(60):
                lease = campaign.ask(worker)
                assert lease
                clock.forward(2.0)
                right = int(lease.task[1:]) % 2 if random.random() < 0.9 else random.randrange(2)
                campaign.tell(lease, ("no", "yes")[1 if worker == "spammer" else right])
        reports = {one.worker: one for one in campaign.workers()}
        campaign.drop_labels("spammer")
    spammer, good = reports["spammer"], reports["a"]
    assert "always the same answer" in spammer.flags and not good.flags
    assert good.accuracy_low is not None and spammer.accuracy_high is not None
    assert good.accuracy_low > spammer.accuracy_high
    assert (good.labels, good.seconds, good.mean_seconds, good.amount) == (60, 120.0, 2.0, 3.0)
    rows = list(csv.DictReader(io.StringIO(export_text([COLUMNS, *(cells(one) for one in reports.values())]))))
    assert [row["amount"] for row in rows] == ["3.0"] * 7
    assert {row["worker"] for row in rows if row["flags"].endswith("always the same answer")} == {"spammer"}


def test_an_interval_of_a_share() -> None:
    assert wilson(0, 10) == pytest.approx((0.0, 0.0, 0.2775), abs=1e-4)  # Newcombe (1998), table I, method 3
    assert wilson(81, 263) == pytest.approx((0.3080, 0.2553, 0.3662), abs=1e-4)


def test_reports_on_a_closed_campaign_are_the_last(service: CampaignService, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_reports, "PATIENCE", 1e9)  # as if learning had taken very long
    id = start(service, 2, budget=4)
    label(service, id, "ann", "no")
    label(service, id, "bob", "yes")
    assert service.store.row(id).closed_seq is None
    before = {one.worker: one.agreement_low for one in service.worker_reports.of(id)}
    label(service, id, "ann", "yes")
    assert {one.worker: one.agreement_low for one in service.worker_reports.of(id)} == before
    label(service, id, "bob", "yes")
    assert service.store.row(id).closed_seq is not None
    assert {one.worker: one.agreement_low for one in service.worker_reports.of(id)} != before
