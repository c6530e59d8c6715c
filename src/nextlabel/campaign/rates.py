"""Arrival and completion rates, learnt as a campaign runs, with fading memory.

====== =============================== ===============================================================
symbol code                            meaning
====== =============================== ===============================================================
r      arrivals / arrival_s            workers per second who get a lease, pauses left out
mu     completions / work_s            labels per second that a lease is out: the maximum-likelihood rate of
                                       an exponential time, leases that end without a label being censored
====== =============================== ===============================================================

Workers expected before a deadline are counted by the hour of the day (``campaign.hours``).
Each new observation takes 1/rate_memory off the weight of the old ones, so that rates follow a changing crowd.
"""

from __future__ import annotations

import math
from dataclasses import replace

from nextlabel.campaign.hours import (
    expected_between,
    expected_late,
    rate_until,
    rates_by_hour,
    with_arrival,
    with_turned_away,
    workers_seen,
)
from nextlabel.campaign.rows import CampaignRow
from nextlabel.problem.rates import PiecewiseRate

#: Observations that new campaigns remember (``Rules.rate_memory``), and how many must be there before rates are used.
RATE_MEMORY, ENOUGH = 500, 20
#: A lease lasts so many mean completion times: e^-6 = 0.25% of exponential times are longer. Before that is known:
LEASE_MEANS, FIRST_LEASE_S, SHORTEST_LEASE_S, LONGEST_LEASE_S = 6.0, 900.0, 30.0, 86_400.0
#: Tables are for rho = 2^k; they change when the rho that was learnt is further than that from theirs (in doublings).
BAND, LEAST_RHO, MOST_RHO = 0.75, 0.25, 32.0
#: Asks that are expected for each label that is left, where no deadline says more.
ASKS_PER_LABEL = 2.0
#: Policies that follow the load have tables for any rho from the least on, in steps of half a doubling.
FINE_BAND, FINE_STEPS = 0.4, 2
#: With more labels left than this times rho the index does not depend on rho any more (tables settle after 45 rho or
#: so), and tables for the rho that was learnt are not worth their time yet.
FAR = 64
#: A deadline further away than this is met at one rate: a hundred days.
LONGEST_AHEAD_S = 8_640_000.0


def observe_arrival(row: CampaignRow, at: float) -> None:
    """A worker got a lease."""
    row.rules = replace(row.rules, hours=with_arrival(row.rules.hours, row.last_arrival, at))
    if row.last_arrival is not None:
        fade = 1.0 - 1.0 / row.rules.rate_memory
        row.arrivals = row.arrivals * fade + 1.0
        row.arrival_s = row.arrival_s * fade + max(at - row.last_arrival, 0.0)
    row.last_arrival = at


def observe_turned_away(row: CampaignRow, at: float) -> None:
    """A worker came and got none; the time between leases goes on."""
    row.arrivals += 1.0
    row.rules = replace(row.rules, hours=with_turned_away(row.rules.hours, at))


def observe_end(row: CampaignRow, seconds: float, completed: bool) -> None:
    """A lease ended after ``seconds``, with a label or without."""
    fade = 1.0 - 1.0 / row.rules.rate_memory
    row.completions = row.completions * fade + (1.0 if completed else 0.0)
    row.work_s = row.work_s * fade + max(seconds, 0.0)


def arrival_rate(row: CampaignRow) -> float | None:
    """r in workers per second, once enough is known."""
    return row.arrivals / row.arrival_s if row.arrivals >= ENOUGH and row.arrival_s > 0 else None


def completion_rate(row: CampaignRow) -> float | None:
    """mu in labels per second of work, once enough is known."""
    return row.completions / row.work_s if row.completions >= ENOUGH and row.work_s > 0 else None


def lease_seconds(row: CampaignRow) -> float:
    """How long the next lease lasts."""
    if row.lease_seconds is not None:
        return row.lease_seconds
    mu = completion_rate(row)
    return FIRST_LEASE_S if mu is None else min(max(LEASE_MEANS / mu, SHORTEST_LEASE_S), LONGEST_LEASE_S)


def wanted_rho(row: CampaignRow) -> float:
    """The rho that the tables should be for: theirs, unless what was learnt is out of its band and matters by now."""
    r, mu = arrival_rate(row), completion_rate(row)
    if r is None or mu is None:
        return row.rho
    fine = row.config.follows_load
    learnt = min(max(r / mu, LEAST_RHO), math.inf if fine else MOST_RHO)
    band, steps = (FINE_BAND, FINE_STEPS) if fine else (BAND, 1)
    if row.left > FAR * max(learnt, row.rho, 1.0) or abs(math.log2(learnt / row.rho)) <= band:
        return row.rho
    return float(2.0 ** (round(steps * math.log2(learnt)) / steps))


def table_rho(rho: float) -> float:
    """The rho whose tables serve a campaign with ``rho`` labels in flight."""
    return min(rho, MOST_RHO)


def labels_before_deadline(row: CampaignRow, now: float) -> int:
    """Labels that will still be given out: what is left, or the workers expected before the deadline."""
    come = expected_arrivals(row, now)
    return row.left if come is None else max(min(row.left, math.ceil(come)), 1)


def expected_arrivals(row: CampaignRow, now: float) -> float | None:
    """Workers expected before the deadline, None where none is set or their rate is not known."""
    if row.deadline is None:
        return None
    if now >= row.deadline:
        return 0.0
    hourly, rate = hourly_rates(row), arrival_rate(row)
    if hourly is not None:
        return expected_between(hourly, now, row.deadline)
    return None if rate is None else rate * (row.deadline - now)


def hourly_rates(row: CampaignRow) -> tuple[float, ...] | None:
    """Workers per second in each hour of the day; None before enough is known."""
    hours = row.rules.hours
    return None if workers_seen(hours) < ENOUGH else rates_by_hour(hours)


def rate_before_deadline(row: CampaignRow, now: float) -> float | PiecewiseRate | None:
    """Workers per second from ``now`` to the deadline, by the hour where that is known."""
    hourly = hourly_rates(row)
    if hourly is None or row.deadline is None or not now < row.deadline <= now + LONGEST_AHEAD_S:
        return arrival_rate(row)
    return rate_until(hourly, now, row.deadline)


def labels_in_time(row: CampaignRow, now: float) -> float | None:
    """Labels of those workers that are expected to come in before the deadline: the last ones are too late."""
    come, mu = expected_arrivals(row, now), completion_rate(row)
    if come is None or mu is None or row.deadline is None or now >= row.deadline:
        return come
    hourly = hourly_rates(row)
    if hourly is not None:
        return max(come - expected_late(hourly, now, row.deadline, mu), 0.0)
    lifetimes = mu * (row.deadline - now)
    return come * (1.0 + math.expm1(-lifetimes) / lifetimes)


def expected_asks(row: CampaignRow, now: float) -> float | None:
    """Asks that are expected until the end, if all of them were served; None where nobody is turned away."""
    if not row.config.turn_away:
        return None
    come = expected_arrivals(row, now)
    return ASKS_PER_LABEL * row.left if come is None else float(math.ceil(come))
