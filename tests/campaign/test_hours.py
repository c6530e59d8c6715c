"""Rates by the hour of the day: counted from the log, shrunk to their mean, and used before a deadline."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from nextlabel.campaign.rates import (
    COUNT,
    DAYS,
    HOUR,
    NOTHING_SEEN,
    expected_arrivals,
    expected_between,
    expected_late,
    labels_before_deadline,
    labels_in_time,
    rate_before_deadline,
    rate_from,
    rates_by_hour,
    with_arrival,
    with_turned_away,
    workers_seen,
)
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.campaign.state import new_campaign
from nextlabel.model.problem import PiecewiseRate
from nextlabel.store.sql import open_store
from stores import Clock, service_of_store, simple

#: Midnight, and workers per hour by day, from 8 to 20, and by night.
MIDNIGHT, DAY, NIGHT = 1_800_057_600.0, 20, 1


def test_a_gap_is_spent_in_the_hours_that_it_covers() -> None:
    seen = with_arrival(NOTHING_SEEN, MIDNIGHT + 50 * 60, MIDNIGHT + 130 * 60)
    assert seen[COUNT : COUNT + 4] == (600.0, 3600.0, 600.0, 0.0)
    assert seen[:4] == (0.0, 0.0, 1.0, 0.0)
    assert with_arrival(NOTHING_SEEN, None, MIDNIGHT) == NOTHING_SEEN
    assert with_turned_away(seen, MIDNIGHT + 10)[0] == 1.0


def test_days_before_lose_weight() -> None:
    seen = with_arrival(NOTHING_SEEN, MIDNIGHT, MIDNIGHT + 60)
    later = with_arrival(seen, MIDNIGHT + 60, MIDNIGHT + 24 * HOUR + 60)
    assert later[0] == pytest.approx(1 - 1 / DAYS + 1, abs=1e-3)
    assert later[COUNT] == pytest.approx((1 - 1 / DAYS) * HOUR + 60, abs=1e-3)
    ages = with_arrival(seen, MIDNIGHT + 60, MIDNIGHT + 1000 * 24 * HOUR)
    assert sum(ages[COUNT:]) < 15 * 24 * HOUR


def test_hours_that_are_alike_have_one_rate_and_others_their_own() -> None:
    alike = (10.0,) * COUNT + (HOUR,) * COUNT
    rates = rates_by_hour(alike)
    assert rates is not None and max(rates) < 1.001 * min(rates)
    unlike = tuple(40.0 if 8 <= h < 20 else 2.0 for h in range(COUNT)) + (2 * HOUR,) * COUNT
    rates = rates_by_hour(unlike)
    assert rates is not None
    assert 18 / HOUR < rates[12] < 20.5 / HOUR and 0.8 / HOUR < rates[3] < 3 / HOUR
    fresh = (*unlike[:23], 0.0, *unlike[COUNT:47], 0.0)
    known = rates_by_hour(fresh)
    assert known is not None  # an hour that was never seen has the mean of those that were
    assert known[23] == pytest.approx(sum(fresh[:COUNT]) / sum(fresh[COUNT:]))
    assert rates_by_hour(NOTHING_SEEN) is None


def test_what_is_expected_is_the_integral() -> None:
    rates = tuple((1.0 + h) / HOUR for h in range(COUNT))
    for now, hours in ((MIDNIGHT + 1234.5, 0.2), (MIDNIGHT + 40 * HOUR + 1, 7.3), (MIDNIGHT + 5 * HOUR, 61.0)):
        end = now + hours * HOUR
        assert expected_between(rates, now, end) == pytest.approx(rate_from(rates, now).mean_arrivals(end - now))
    flat = (0.01,) * COUNT
    assert expected_late(flat, MIDNIGHT, MIDNIGHT + 1e6, 0.001) == pytest.approx(0.01 / 0.001, rel=1e-6)
    assert expected_between(flat, MIDNIGHT, MIDNIGHT - 1) == 0.0


def test_before_a_deadline_night_is_night() -> None:
    """Two days of a campaign; in the evening the deadline is the next morning."""
    clock = Clock()
    service = service_of_store(open_store("memory:"), clock)
    deadline = MIDNIGHT + 56 * HOUR
    config = CampaignSettings(
        budget=2000, labels=("no", "yes"), policy="uniform", deadline=deadline, lease_seconds=600.0
    )
    clock.now = MIDNIGHT
    id = service.create(config, tasks=[{"id": str(x)} for x in range(100)]).id
    number = 0
    for hour in range(44):
        rate = DAY if 8 <= hour % 24 < 20 else NIGHT
        for k in range(rate):
            clock.now = MIDNIGHT + hour * HOUR + (k + 0.5) * HOUR / rate
            lease = service[id].ask(f"w{number}")
            assert lease
            clock.forward(30.0)
            service[lease.campaign].tell(lease.id, "yes")
            number += 1
    row, now = service.store.row(id), MIDNIGHT + 44 * HOUR
    truth = 12 * NIGHT
    by_hour = expected_arrivals(row, now)
    old = replace(row, hours=NOTHING_SEEN)
    one_rate = expected_arrivals(old, now)
    assert by_hour is not None and one_rate is not None
    assert 0.5 * truth < by_hour < 2.5 * truth
    assert one_rate > 8 * truth
    assert labels_before_deadline(row, now) < 31 < labels_before_deadline(old, now)
    in_time = labels_in_time(row, now)
    assert in_time is not None and by_hour - 1 < in_time < by_hour
    assert isinstance(rate_before_deadline(row, now), PiecewiseRate)
    assert isinstance(rate_before_deadline(old, now), float)
    assert workers_seen(row.hours) > 200
    certificate = service.certificates.of(id)
    assert "by the hour of the day" in certificate.assumes
    service.table_cache.close()


def test_hours_are_stored_with_the_rules(tmp_path: Path) -> None:
    assert new_campaign("c", simple(), 0.0).row.hours == NOTHING_SEEN
    clock = Clock()
    service = service_of_store(open_store(str(tmp_path / "hours.db")), clock)
    id = service.create(CampaignSettings(budget=9, policy="uniform"), tasks=["a", "b"]).id
    for worker in ("ann", "bob"):
        service[id].ask(worker)
        clock.forward(100.0)
    with service.store.transaction(id) as state:
        assert service.store.row(id) == state.row and workers_seen(state.row.hours) == 1
    service.close()
