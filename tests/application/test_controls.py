"""Control questions: hidden among the others, given at first and where they are worth it, outside of the budget."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nextlabel.application import imports
from nextlabel.application import service as campaigns_service
from nextlabel.application.service import CampaignService
from nextlabel.campaign import controls
from nextlabel.campaign.controls import FIRST, SPACING, START, worth_of_control
from nextlabel.campaign.records import ImportRow
from nextlabel.errors import ConflictError, InputError, NotFoundError
from nextlabel.store import sql
from stores import Clock, everything, opened, service_of_store, simple


def tasks(many: int, known: int) -> list[dict[str, Any]]:
    """The first ones have a known answer: odd ones are yes."""
    rows: list[dict[str, Any]] = [{"id": f"t{k}", "text": f"item {k}"} for k in range(many)]
    for k in range(known):
        rows[k]["gold"] = ("no", "yes")[k % 2]
    return rows


def test_controls_are_given_at_first_and_cost_nothing(service: CampaignService) -> None:
    id = service.create(simple(40), tasks=tasks(20, 6)).id
    row = service.store.row(id)
    assert (row.tasks, row.controls, sum(service.groups(id).values())) == (20, 6, 14)
    for worker in ("ann", "bob", "cy"):
        given = []
        for _ in range(FIRST + 4):
            lease = service[id].ask(worker)
            assert lease and set(lease.payload) == {"text"}
            given.append(int(lease.task[1:]) < 6)
            assert service[lease.campaign].tell(lease.id, "yes").counted
        assert sum(given[:FIRST]) == START and not any(given[FIRST:])
    row = service.store.row(id)
    assert (row.spent, row.kept, row.reserved) == (3 * (FIRST + 4 - START), 3 * (FIRST + 4), 0)
    results = list(service[id].results())
    assert [one.control for one in results] == [True] * 6 + [False] * 14
    assert [(one.label, one.probability) for one in results[:6]] == [("no", 1.0), ("yes", 1.0)] * 3
    report = {one.worker: one for one in service.worker_reports.of(id)}["ann"]
    assert report.labels == FIRST + 4 and report.bought == FIRST + 4 - START
    before = everything(service.store, id)
    assert service[id].verify().right
    service[id].rebuild()
    assert everything(service.store, id) == before


def test_controls_in_the_budget_if_asked(service: CampaignService) -> None:
    id = service.create(simple(4, gold_in_budget=True), tasks=tasks(8, 4)).id
    told = 0
    while lease := service[id].ask("ann"):
        service[lease.campaign].tell(lease.id, "no")
        told += 1
    assert told == service.store.row(id).spent == 4


def test_known_answers_that_come_later_and_are_corrected(service: CampaignService) -> None:
    id = service.create(simple(30, most_labels=1), tasks=tasks(3, 0)).id
    lease = service[id].ask("ann")
    assert lease
    service[lease.campaign].tell(lease.id, "yes")
    held = service[id].ask("bob")
    assert held
    assert service.store.row(id).full == 1
    assert service[id].set_gold({lease.task: "no", held.task: "yes"}) == 2
    row = service.store.row(id)
    assert (row.controls, row.full, row.spent, row.reserved) == (2, 0, 1, 1)
    assert service[id].set_gold({lease.task: "yes", held.task: "yes"}) == 1
    assert (
        service[held.campaign].tell(held.id, "yes").counted and service.store.row(id).spent == 2
    )  # it was leased as any other
    for answers, said in (({"nope": "yes"}, NotFoundError), ({lease.task: "maybe"}, InputError), ({}, InputError)):
        with pytest.raises(said):
            service[id].set_gold(answers)
    service[id].drop_labels("ann")
    assert service[id].restore_labels("ann").changed == 1
    while more := service[id].ask("cy"):
        service[more.campaign].tell(more.id, "yes")
    assert service.store.row(id).closed_reason == "finished"
    assert service[id].verify().right


def test_many_tasks_with_known_answers_are_imported(service: CampaignService, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaigns_service, "AT_ONCE", 0)
    monkeypatch.setattr(imports, "STEP", 2)
    id = service.create(simple(30), tasks=tasks(7, 3)).id
    row = service.store.row(id)
    assert (row.tasks, row.controls, sum(service.groups(id).values())) == (7, 3, 4)
    with pytest.raises(ConflictError):
        service.add_tasks(id, [{"id": "t0", "text": "item 0", "gold": "yes"}])  # it is known to be no
    assert service.add_tasks(id, [{"id": "t0", "text": "item 0"}]).known == 1
    with pytest.raises(InputError, match="gold answer of task 1"):
        service.add_tasks(id, [{"id": "x", "text": "x", "gold": "perhaps"}])
    assert service[id].verify().right


def test_a_campaign_goes_on_while_tasks_with_known_answers_are_imported(
    service: CampaignService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Controls that nobody can get yet do not make the tasks that are there look finished."""
    monkeypatch.setattr(campaigns_service, "AT_ONCE", 0)
    monkeypatch.setattr(imports, "STEP", 2)
    id = service.create(simple(30), tasks=[{"id": f"first {k}"} for k in range(2)]).id
    seen = []

    def look(row: ImportRow, published: int) -> None:
        lease = service[id].ask(f"ann {len(seen)}")
        assert lease
        service[lease.campaign].release(lease.id)
        seen.append(service.store.row(id).controls)

    service.add_tasks(id, tasks(7, 5), progress=look)
    assert len(seen) > 6 and not any(seen)
    row = service.store.row(id)
    assert (row.tasks, row.controls, row.state) == (9, 5, "open")
    assert "closed" not in {event.kind for event in service.store.events(id)}
    before = everything(service.store, id)
    assert service[id].verify().right
    service[id].rebuild()
    assert everything(service.store, id) == before


def test_many_answers_at_once(service: CampaignService, monkeypatch: pytest.MonkeyPatch) -> None:
    """More ids than a statement takes parameters (PostgreSQL: 65,535)."""
    id = service.create(simple(30), tasks=tasks(25, 0)).id
    with pytest.raises(NotFoundError, match="no task 't25'"):
        service[id].set_gold({f"t{k}": "no" for k in range(70_000)})
    monkeypatch.setattr(sql, "KEYS_AT_ONCE", 10)
    assert service[id].set_gold({f"t{k}": "no" for k in range(25)}) == 25
    assert service.store.row(id).controls == 25


def test_what_a_control_is_worth() -> None:
    """More for a stranger than for somebody known, nothing if nothing is left to do, never less than nothing."""
    share, rng = np.array([0.5, 0.5]), np.random.default_rng(1)
    beliefs = rng.dirichlet([2.0, 2.0], 50)
    vague, known = np.array([[4.0, 2.0], [2.0, 4.0]]), np.array([[400.0, 100.0], [100.0, 400.0]])
    control, label = worth_of_control(vague, share, beliefs, 100)
    assert control > label > 0
    control, label = worth_of_control(known, share, beliefs, 100)
    assert control < label
    assert worth_of_control(vague, share, beliefs, 0)[0] == 0
    for _ in range(20):
        counts = rng.gamma(2.0, 2.0, (3, 3)) + 0.1
        control, label = worth_of_control(counts, np.full(3, 1 / 3), rng.dirichlet([1.0] * 3, 30), 10)
        assert control >= 0 and label >= 0


@pytest.mark.parametrize("later", [False, True])
def test_controls_tell_who_is_right_where_two_contradict_each_other(
    later: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing but controls can tell a good worker from one who says the opposite; at first two of six are enough."""
    monkeypatch.setattr(controls, "is_worth_it", lambda model, worker, left: later)
    with opened("memory", tmp_path) as store:
        service = service_of_store(store, Clock())
        settings = simple(160, policy="crowd", lease_seconds=None, most_labels=2)
        id = service.create(settings, tasks=tasks(60, 20)).id
        for _ in range(45):
            for worker in ("opposite", "good"):
                if lease := service[id].ask(worker):
                    right = int(lease.task[1:]) % 2
                    service[lease.campaign].tell(lease.id, ("no", "yes")[right if worker == "good" else 1 - right])
        crowd = service.crowd(store.row(id))
        assert crowd is not None
        skill = dict(zip(crowd.workers, np.einsum("c,wcc->w", crowd.shares, crowd.channels), strict=True))
        assert skill["good"] > 0.8 and skill["opposite"] < 0.3
        asked = [one for one in service[id].results() if not one.control and one.labels]
        assert [one.label for one in asked] == [("no", "yes")[int(one.task[1:]) % 2] for one in asked]
        for one in store.workers(id):  # later among others
            assert START + later <= one.tested <= (START + one.given / SPACING if later else START)
        service.table_cache.close()
