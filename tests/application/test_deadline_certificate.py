"""What a certificate says of a campaign with a deadline, in virtual time."""

from __future__ import annotations

from itertools import pairwise

import pytest

from nextlabel.application.certificate import Certificate
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.store.sql import open_store
from stores import START as BEGIN
from stores import Clock, service_of_store

MINUTE = 60.0


def certified(workers: int, priors: int = 1) -> Certificate:
    """A worker a minute, each of whom takes ten; the deadline is after 120 of them, the budget 200."""
    clock = Clock()
    service = service_of_store(open_store("memory:"), clock)
    config = CampaignSettings(
        budget=200, labels=("no", "yes"), policy="uniform", deadline=BEGIN + 120 * MINUTE, lease_seconds=3600.0
    )
    tasks = [{"id": f"t{x}", "prior": [1, 1 + x % priors]} for x in range(40)]
    id = service.create(config, tasks=tasks).id
    out: list[tuple[float, str]] = []
    for number in range(workers):
        clock.now = BEGIN + number * MINUTE
        while out and out[0][0] <= clock.now:
            service[id].tell(out.pop(0)[1], "yes" if number % 3 else "no")
        lease = service[id].ask(f"w{number}")
        assert lease
        out.append((clock.now + 10 * MINUTE, lease.id))
    service.table_cache.close()
    return service.certificates.of(id)


def test_it_counts_what_is_lost_at_the_deadline() -> None:
    found = certified(60)
    assert found.arrivals == pytest.approx(61, abs=2)
    assert found.upper is not None and found.now < found.upper < 1
    assert found.assumes.startswith("This holds if workers are alike and the prior is right. It takes workers to ask")
    assert "60 times an hour on average, by the hour of the day, and take 10 minutes" in found.assumes
    assert "is lost; labels whose lease has lapsed may still come" in found.assumes
    labels = [extra for extra, _ in found.curve]
    values = [value for _, value in found.curve]
    assert values[labels.index(0)] == pytest.approx(found.upper, abs=1e-9)
    assert all(b >= a - 1e-9 for a, b in pairwise(values))
    # Hardly any worker comes for more labels than are left.
    assert found.price is not None and found.price < 1e-3 and found.more[0].gain < 1e-3


def test_before_rates_are_known_it_says_so() -> None:
    found = certified(5)
    assert found.arrivals is None
    assert found.assumes.endswith("is known after about 20 labels.")


def test_with_many_priors_it_falls_back_and_says_so() -> None:
    found = certified(60, priors=20)
    assert found.upper is not None and found.now < found.upper
    assert (
        "is not counted as lost, because the tasks have 20 different priors: the true limit is lower." in found.assumes
    )
