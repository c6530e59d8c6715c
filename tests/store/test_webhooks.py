"""Webhooks in every store: what is due, one owner at a time, progress, removal with their campaign."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from nextlabel.application.service import CampaignService
from nextlabel.application.webhooks import Webhooks
from nextlabel.campaign.webhooks import Webhook
from nextlabel.errors import ConflictError, NotFoundError
from stores import KINDS, Clock, opened, service_of_store, simple


@pytest.fixture(params=KINDS)
def service(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[CampaignService]:
    with opened(request.param, tmp_path) as store:
        service = service_of_store(store, Clock())
        yield service
        service.table_cache.close()


def test_the_life_of_a_webhook(service: CampaignService) -> None:
    id, records = service.create(simple()).id, service.store.records
    webhooks = Webhooks(service.store, clock=lambda: 1000.0)
    made = webhooks.add(id, "https://example.org/", ["task.closed", "label.created"])
    assert made.types == ("label.created", "task.closed")
    assert records.find(Webhook, campaign=id) == [made] and records.due(1000.0) == []
    with pytest.raises(NotFoundError):
        webhooks.add("none", "https://example.org/")
    service[id].pause()
    assert records.due(1000.0) == [made]
    assert records.claim_webhook(made, "a", 1000.0, 1030.0)
    assert not records.claim_webhook(made, "b", 1000.0, 1030.0) and records.due(1000.0) == []
    told = replace(made, position=made.position + 1, delivered=3, last_at=1001.0, last_reply="status 204")
    assert not records.save_webhook(told, "b", 0.0)
    assert records.save_webhook(told, "a", 0.0) and records.find(Webhook, campaign=id) == [told]
    assert records.due(1000.0) == [] and not records.claim_webhook(made, "b", 1000.0, 1030.0)  # it has moved on
    service[id].resume()
    failing = replace(told, failures=2, first_failed_at=1002.0, next_at=1040.0)
    assert records.save_webhook(failing, "a", 0.0)
    assert records.due(1039.0) == [] and records.due(1040.0) == [failing]
    assert records.save_webhook(replace(failing, disabled="It is gone."), "a", 0.0) and records.due(2000.0) == []
    assert webhooks.enable(id, made.id) == told and records.due(1000.0) == [told]
    with pytest.raises(NotFoundError):
        webhooks.enable(id, "none")
    with pytest.raises(NotFoundError):
        webhooks.remove(id, "none")
    other = webhooks.add(id, "https://example.org/other", from_start=True)
    webhooks.remove(id, made.id)
    assert other.position == 0 and records.due(1000.0) == [other]
    service.delete(id)
    assert records.due(1000.0) == []


def test_there_are_not_too_many(service: CampaignService) -> None:
    id, webhooks = service.create(simple()).id, Webhooks(service.store)
    for _ in range(20):
        webhooks.add(id, "https://example.org/")
    with pytest.raises(ConflictError, match="has 20 webhooks"):
        webhooks.add(id, "https://example.org/")
