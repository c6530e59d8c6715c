"""Workers expected before a deadline, by one rate and by the hour of the day, in virtual time.

    python -m benchmarks.live.hours [campaigns]

Workers come to a live campaign as a Poisson process, 30 an hour from 8 to 20 o'clock and 2 an hour at night. From the
second day on, every three hours, the campaign says how many it expects before its deadline at noon of the fourth
day. Beside it stand the truth of the process and what one learnt rate, as in logs of earlier versions, would say.
"""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np

from nextlabel.application.service import CampaignService
from nextlabel.campaign.rates import COUNT, HOUR, expected_arrivals, expected_between
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.store.sql import open_store

MIDNIGHT, DEADLINE = 1_800_057_600.0, 84
RATES = tuple((30.0 if 8 <= h < 20 else 2.0) / HOUR for h in range(COUNT))
#: Hours after the beginning at which the campaign is asked.
ASKED = tuple(range(24, 79, 3))


class VirtualClock:
    """A clock that stands still until it is told."""

    now = MIDNIGHT

    def __call__(self) -> float:
        return self.now


def play(seed: int) -> list[tuple[float, float, float]]:
    """(truth, one rate, by the hour) each time it was asked."""
    clock, random = VirtualClock(), np.random.default_rng(seed)
    service = CampaignService(open_store("memory:"), clock)
    deadline = MIDNIGHT + DEADLINE * HOUR
    config = CampaignSettings(
        budget=5000, labels=("no", "yes"), policy="uniform", deadline=deadline, lease_seconds=3600.0
    )
    id = service.create(config, tasks=[{"id": str(x)} for x in range(300)]).id
    out, asked, number = [], list(ASKED), 0
    for hour in range(ASKED[-1] + 1):
        if asked and asked[0] == hour:
            asked.pop(0)
            row, now = service.store.row(id), MIDNIGHT + hour * HOUR
            one = expected_arrivals(replace(row, hours=()), now)
            hourly = expected_arrivals(row, now)
            assert one is not None and hourly is not None
            out.append((expected_between(RATES, now, deadline), one, hourly))
        for at in np.sort(random.random(random.poisson(RATES[hour % COUNT] * HOUR))):
            clock.now = MIDNIGHT + (hour + float(at)) * HOUR
            lease = service[id].ask(f"w{number}")
            number += 1
            if lease:
                service[lease.campaign].tell(lease.id, "yes")
    service.table_cache.close()
    return out


def main() -> None:
    """Play and print."""
    campaigns = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    found = np.array([play(seed) for seed in range(campaigns)])
    off = np.abs(found[:, :, 1:] / found[:, :, :1] - 1.0)
    print(f"{campaigns} campaigns, asked {len(ASKED)} times each; workers expected before the deadline, mean")
    print("| hours since midnight | truth | one rate | by the hour |")
    print("|---|---|---|---|")
    for k, hour in list(enumerate(ASKED))[::3]:
        truth, one, hourly = found[:, k].mean(axis=0)
        print(f"| {hour} | {truth:.0f} | {one:.0f} | {hourly:.0f} |")
    print(f"mean error: {off[:, :, 0].mean():.0%} by one rate, {off[:, :, 1].mean():.0%} by the hour")


if __name__ == "__main__":
    main()
