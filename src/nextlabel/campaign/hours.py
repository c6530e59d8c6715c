"""Arrival rates by the hour of the day, learnt from a campaign's log.

====== ============== ==========================================================================================
symbol code           meaning
====== ============== ==========================================================================================
N_h    hours[h]       workers who came in hour h (UTC), with fading memory
E_h    hours[24 + h]  seconds of that hour in which they could have come, likewise; pauses left out
r      mean           sum of N_h by the sum of E_h
a      strength       how much hours are alike: the rate of an hour is Gamma with mean r and shape a
r_h    rates[h]       (a + N_h) / (a / r + E_h), its mean after what was seen
====== ============== ==========================================================================================

a is the value of a grid at which the counts are likeliest: N_h is then negative binomial. If workers come alike at all
hours a is large and all r_h are r; an hour that was never seen has the rate r. Whenever an hour of the day begins again
what is known of it loses 1/DAYS of its weight.
Guarantee: a function of the log alone. Cost: a few lines for each hour between two arrivals; 300 logarithms of the
gamma function for the rates, kept while nobody comes.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Final

from nextlabel.problem.rates import PiecewiseRate

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


def hour_of(at: float) -> int:
    """The hour of the day of a time, in UTC."""
    return int(at // HOUR) % COUNT


def with_arrival(hours: Hours, since: float | None, at: float) -> Hours:
    """After a worker who came ``at``, the one before having come ``since``."""
    if since is None or at <= since:
        return hours
    h = hour_of(at)
    if at // HOUR == since // HOUR:  # of most arrivals
        seconds = COUNT + h
        came, waited = round(hours[h] + 1.0, DIGITS), round(hours[seconds] + at - since, DIGITS)
        return (*hours[:h], came, *hours[h + 1 : seconds], waited, *hours[seconds + 1 :])
    seen, begin = list(hours), max(since, at - LONGEST_DAYS * COUNT * HOUR)
    while begin < at:
        end = min((begin // HOUR + 1.0) * HOUR, at)
        if end <= begin:  # the hour's end is too near to tell apart
            end = at
        passed = COUNT + hour_of(begin)
        seen[passed] = round(seen[passed] + end - begin, DIGITS)
        if end % HOUR == 0.0:
            _fade(seen, hour_of(end))
        begin = end
    seen[h] = round(seen[h] + 1.0, DIGITS)
    return tuple(seen)


def with_turned_away(hours: Hours, at: float) -> Hours:
    """After a worker who came and got nothing; the time since the last lease goes on."""
    h = hour_of(at)
    return (*hours[:h], round(hours[h] + 1.0, DIGITS), *hours[h + 1 :])


def _fade(seen: list[float], h: int) -> None:
    keep = 1.0 - 1.0 / DAYS
    seen[h], seen[COUNT + h] = round(keep * seen[h], DIGITS), round(keep * seen[COUNT + h], DIGITS)


def hours_to_json(hours: Hours) -> dict[str, tuple[float, float]]:
    """Workers and seconds of the hours in which there were any."""
    pairs = zip(hours[:COUNT], hours[COUNT:], strict=True)
    return {str(h): pair for h, pair in enumerate(pairs) if pair != (0.0, 0.0)}


def hours_from_json(table: dict[str, list[float]]) -> Hours:
    """The inverse."""
    seen = list(NOTHING_SEEN)
    for h, (came, waited) in table.items():
        seen[int(h)], seen[COUNT + int(h)] = came, waited
    return tuple(seen)


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


def rate_until(rates: tuple[float, ...], now: float, end: float) -> PiecewiseRate:
    """The rates from ``now`` to ``end``, time counted from now."""
    pieces = [(0.0, rates[hour_of(now)])]
    at = (now // HOUR + 1.0) * HOUR
    while at < end:
        pieces.append((at - now, rates[hour_of(at)]))
        at += HOUR
        if len(pieces) > COUNT:
            break
    return PiecewiseRate(tuple(pieces)) if at >= end else _daily(rates, now)


def _daily(rates: tuple[float, ...], now: float) -> PiecewiseRate:
    """More than a day: the rates come again every 24 hours."""
    first = (now // HOUR + 1.0) * HOUR - now
    pieces = [(0.0, rates[hour_of(now)])]
    pieces += [(first + k * HOUR, rates[hour_of(now + first + k * HOUR)]) for k in range(COUNT)]
    pieces = [piece for piece in pieces if piece[0] < COUNT * HOUR]
    return PiecewiseRate(tuple(pieces), COUNT * HOUR)


def expected_between(rates: tuple[float, ...], now: float, end: float) -> float:
    """Workers expected from ``now`` to ``end``."""
    if end <= now:
        return 0.0
    days = (end - now) // (COUNT * HOUR)
    at, total = now + days * COUNT * HOUR, days * HOUR * sum(rates)
    while at < end:
        until = min((at // HOUR + 1.0) * HOUR, end)
        if until <= at:
            break
        total += rates[hour_of(at)] * (until - at)
        at = until
    return total


def expected_late(rates: tuple[float, ...], now: float, end: float, mu: float) -> float:
    """Workers expected from ``now`` to ``end`` whose labels, which take 1/mu on average, come in after ``end``."""
    total, until = 0.0, end
    while until > now and mu * (end - until) < LONGEST_LABEL:
        begin = max((math.ceil(until / HOUR) - 1.0) * HOUR, now)
        if begin >= until:
            break
        total += rates[hour_of(begin)] * (math.exp(-mu * (end - until)) - math.exp(-mu * (end - begin))) / mu
        until = begin
    return total
