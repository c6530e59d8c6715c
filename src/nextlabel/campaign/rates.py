"""Arrival and completion rates, learnt as a campaign runs, with fading memory.

====== =============================== ===============================================================
symbol code                            meaning
====== =============================== ===============================================================
r      arrivals / arrival_s            workers per second who get a lease, pauses left out
mu     completions / work_s            labels per second that a lease is out: the maximum-likelihood rate of
                                       an exponential time, leases that end without a label being censored
====== =============================== ===============================================================

Workers expected before a deadline are counted by the hour of the day (``with_arrival``, ``rates_by_hour``).
Each new observation takes 1/rate_memory off the weight of the old ones, so that rates follow a changing crowd.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from nextlabel.model.problem import PiecewiseRate

if TYPE_CHECKING:
    from nextlabel.campaign.rows import CampaignRow

#: Observations that new campaigns remember (``CampaignRow.rate_memory``), and how many rates must rest on.
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
HOUR: Final = 3600.0
COUNT: Final = 24

#: Days that are remembered, and days of a gap between two arrivals that are looked at.
DAYS, LONGEST_DAYS = 7.0, 14

#: What a may be, in doublings.
STRENGTHS: Final = tuple(2.0**k for k in range(-1, 13))

#: Digits of a second, and of a worker, that the log's reader keeps: numbers stay short.
DIGITS: Final = 4

#: Mean times after which a label is in.
LONGEST_LABEL: Final = 30.0

#: Workers of each hour, then seconds of each hour.
Hours = tuple[float, ...]
NOTHING_SEEN: Final[Hours] = (0.0,) * (2 * COUNT)


def observe_arrival(row: CampaignRow, at: float) -> None:
    """A worker got a lease."""
    row.hours = with_arrival(row.hours, row.last_arrival, at)
    if row.last_arrival is not None:
        fade = 1.0 - 1.0 / row.rate_memory
        row.arrivals = row.arrivals * fade + 1.0
        row.arrival_s = row.arrival_s * fade + max(at - row.last_arrival, 0.0)
    row.last_arrival = at


def observe_turned_away(row: CampaignRow, at: float) -> None:
    """A worker came and got none; the time between leases goes on."""
    row.arrivals += 1.0
    row.hours = with_turned_away(row.hours, at)


def observe_end(row: CampaignRow, seconds: float, completed: bool) -> None:
    """A lease ended after ``seconds``, with a label or without."""
    fade = 1.0 - 1.0 / row.rate_memory
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
    if row.config.lease_seconds is not None:
        return row.config.lease_seconds
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
    hours = row.hours
    return None if workers_seen(hours) < ENOUGH else rates_by_hour(hours)


def rate_before_deadline(row: CampaignRow, now: float) -> float | PiecewiseRate | None:
    """Workers per second from ``now`` to the deadline, by the hour where that is known."""
    hourly = hourly_rates(row)
    if hourly is None or row.deadline is None or not now < row.deadline <= now + LONGEST_AHEAD_S:
        return arrival_rate(row)
    return rate_from(hourly, now)


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


def hour_of(at: float) -> int:
    """The hour of the day of a time, in UTC."""
    return int(at // HOUR) % COUNT


def by_hour(begin: float, end: float) -> Iterator[tuple[float, float, int]]:
    """The parts of a time by the hour: begin, end and the hour of the day of each."""
    while begin < end:
        until = min((begin // HOUR + 1.0) * HOUR, end)
        until = until if until > begin else end  # the hour's end is too near to tell apart
        yield begin, until, hour_of(begin)
        begin = until


def with_arrival(hours: Hours, since: float | None, at: float) -> Hours:
    """After a worker who came ``at``, the one before having come ``since``."""
    if since is None or at <= since:
        return hours
    h = hour_of(at)
    if at // HOUR == since // HOUR:  # of most arrivals
        seconds = COUNT + h
        came, waited = round(hours[h] + 1.0, DIGITS), round(hours[seconds] + at - since, DIGITS)
        return (*hours[:h], came, *hours[h + 1 : seconds], waited, *hours[seconds + 1 :])
    seen = list(hours)
    for begin, end, passed in by_hour(max(since, at - LONGEST_DAYS * COUNT * HOUR), at):
        seen[COUNT + passed] = round(seen[COUNT + passed] + end - begin, DIGITS)
        if end % HOUR == 0.0:
            _fade(seen, hour_of(end))
    seen[h] = round(seen[h] + 1.0, DIGITS)
    return tuple(seen)


def with_turned_away(hours: Hours, at: float) -> Hours:
    """After a worker who came and got nothing; the time since the last lease goes on."""
    h = hour_of(at)
    return (*hours[:h], round(hours[h] + 1.0, DIGITS), *hours[h + 1 :])


def _fade(seen: list[float], h: int) -> None:
    keep = 1.0 - 1.0 / DAYS
    seen[h], seen[COUNT + h] = round(keep * seen[h], DIGITS), round(keep * seen[COUNT + h], DIGITS)


def workers_seen(hours: Hours) -> float:
    """Workers that the rates rest on."""
    return sum(hours[:COUNT])


@lru_cache(maxsize=256)
def rates_by_hour(hours: Hours) -> tuple[float, ...] | None:
    """Workers per second in each hour of the day; None before anybody came."""
    arrivals, seconds = hours[:COUNT], hours[COUNT:]
    total, exposure = sum(arrivals), sum(seconds)
    if total <= 0 or exposure <= 0:
        return None
    mean = total / exposure
    seen = [(n, e) for n, e in zip(arrivals, seconds, strict=True) if e > 0 or n > 0]
    strength = max(STRENGTHS, key=lambda a: (_likelihood(a, mean, seen), a))
    return tuple((strength + n) / (strength / mean + e) for n, e in zip(arrivals, seconds, strict=True))


def _likelihood(a: float, mean: float, seen: list[tuple[float, float]]) -> float:
    """Logarithm of the chance of the counts, up to what does not depend on a."""
    b = a / mean
    each = a * math.log(b) - math.lgamma(a)
    return sum(each + math.lgamma(a + n) - (a + n) * math.log(b + e) for n, e in seen)


def rate_from(rates: tuple[float, ...], now: float) -> PiecewiseRate:
    """The rates from ``now`` on, time counted from now; they come again every 24 hours."""
    day = by_hour(now, now + COUNT * HOUR)
    return PiecewiseRate(tuple((begin - now, rates[h]) for begin, _, h in day), COUNT * HOUR)


def expected_between(rates: tuple[float, ...], now: float, end: float) -> float:
    """Workers expected from ``now`` to ``end``."""
    days = max((end - now) // (COUNT * HOUR), 0.0)
    rest = by_hour(now + days * COUNT * HOUR, end)
    return days * HOUR * sum(rates) + sum(rates[h] * (until - begin) for begin, until, h in rest)


def expected_late(rates: tuple[float, ...], now: float, end: float, mu: float) -> float:
    """Workers expected from ``now`` to ``end`` whose labels, which take 1/mu on average, come in after ``end``."""
    last = by_hour(max(now, end - LONGEST_LABEL / mu), end)
    return sum(
        rates[h] * (math.exp(-mu * (end - until)) - math.exp(-mu * (end - begin))) / mu for begin, until, h in last
    )
