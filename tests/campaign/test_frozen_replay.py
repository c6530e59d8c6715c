"""What a log means does not depend on constants of the code, and adding tasks never closes those that are there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from nextlabel.application.service import CampaignService
from nextlabel.campaign import commands, policy_tables, rates, scoring, settings
from stores import DATABASES, Clock, everything, opened, service_of_store, simple


@pytest.fixture(params=DATABASES)
def service(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[CampaignService]:
    with opened(request.param, tmp_path) as store:
        service = service_of_store(store, Clock())
        yield service
        service.table_cache.close()


def scored(count: int) -> list[dict[str, Any]]:
    return [{"id": f"s{k}", "score": round(0.2 + 0.005 * k, 4)} for k in range(count)]


def work(service: CampaignService, id: str, labels: int, seed: int) -> int:
    """So many asks of new workers, answered at once; returns the labels that counted."""
    random, counted = Random(seed), 0
    for k in range(labels):
        service.clock.forward(5.0)  # type: ignore[attr-defined]
        lease = service[id].ask(f"w{seed}-{k}")
        if lease:
            counted += bool(service[id].tell(lease.id, random.choice(["no", "yes"])).counted)
    return counted


def test_constants_of_the_code_do_not_change_what_a_log_means(
    service: CampaignService, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = service.create(simple(200, policy="okg", most_labels=9), tasks=["a", "b", "c"]).id
    work(service, id, 25, 1)
    service.add_tasks(id, scored(70))
    work(service, id, 40, 2)
    before = everything(service.store, id)
    assert before["row"].ranked and before["row"].full > 0
    monkeypatch.setattr(scoring, "FEW_CLASSES", 3)
    monkeypatch.setattr(scoring, "LEVELS", 14)
    monkeypatch.setattr(scoring, "GRID", 20)
    monkeypatch.setattr(rates, "RATE_MEMORY", 7)
    monkeypatch.setattr(commands, "RATE_MEMORY", 7)
    monkeypatch.setattr(settings, "MOST_LABELS", 4)
    monkeypatch.setattr(policy_tables, "chance", lambda seed, what, number: 0.5)
    monkeypatch.setattr(commands, "starting_place", lambda seed, lease: 0.5)
    forget_scores()
    service[id].rebuild()
    after = everything(service.store, id)
    forget_scores()
    assert after == before


def forget_scores() -> None:
    for kept in (scoring.score_of_state, scoring.score_grid, scoring.facts_of):
        kept.cache_clear()


def test_a_ranked_campaign_finishes_when_every_task_has_its_own_limit(service: CampaignService) -> None:
    id = service.create(simple(1000, policy="uniform", most_labels=3), tasks=["a"]).id
    service.add_tasks(id, scored(65))
    work(service, id, 3 * 66, 1)
    row = service.store.row(id)
    assert (row.spent, row.full, row.closed_reason) == (198, 66, "finished")
    lease = max(service.store.leases(id, range(66)), key=lambda lease: lease.seq)
    service[id].undo(lease.id)
    assert service.store.row(id).full == 65 and service.store.row(id).state == "open"
    assert service[id].tell(lease.id, "no").counted and service.store.row(id).closed_reason == "finished"
