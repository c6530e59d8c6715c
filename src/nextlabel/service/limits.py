"""Limits on what one worker or one address may do in a short time, in the memory of each process.

====================== ============================== ====================================================
limit                  setting                        on what
====================== ============================== ====================================================
worker_moves           worker_moves_per_minute        a worker's renewals, releases and undos: they write to
                                                      the log and buy nothing; asks and answers are limited
                                                      by the budget
new_workers            new_workers_per_hour           names under which one address joins a campaign by the
                                                      platforms' link: each can hold a task
failed_sign_ins        failed_sign_ins_per_minute     wrong tokens of one address
====================== ============================== ====================================================

Several processes count separately. A refusal is a 429 with Retry-After and is counted in the metrics.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from ipaddress import IPv6Address, ip_address
from typing import Generic, TypeVar

from starlette.types import Scope

from nextlabel.errors import TooManyRequestsError
from nextlabel.service.settings import PREFIX, ServiceSettings

#: Workers and addresses that are remembered; the one that was seen longest ago is forgotten first.
REMEMBERED = 50_000

Clock = Callable[[], float]
Count = Callable[[str], None]
V = TypeVar("V")


class RequestLimits:
    """The limits of one process; ``count`` is called with the name of a limit when somebody exceeds it."""

    def __init__(self, settings: ServiceSettings, count: Count, clock: Clock = time.monotonic) -> None:
        self._count = count
        self._moves = Bucket(settings.worker_moves_per_minute, 60.0, clock)
        self._sign_ins = Bucket(settings.failed_sign_ins_per_minute, 60.0, clock)
        self._names = DistinctNames(settings.new_workers_per_hour, 3600.0, clock)
        self._settings = settings

    def check_move(self, campaign: str, worker: str) -> None:
        """A worker renews, releases or undoes."""
        self._check(
            "worker_moves", self._moves.take(f"{campaign} {worker}"),
            f"more than {self._settings.worker_moves_per_minute} renewals, releases and undos in a minute.",
            "Wait a moment.",
        )  # fmt: skip

    def check_join(self, address: str, campaign: str, worker: str) -> None:
        """Somebody enters a campaign by the platforms' link."""
        self._check(
            "new_workers", self._names.take(f"{address} {campaign}", worker),
            f"{self._settings.new_workers_per_hour} workers have joined from the address {address} within an hour.",
            f"Wait, or have {PREFIX}NEW_WORKERS_PER_HOUR raised; if this is the address of a proxy, have it named "
            f"in {PREFIX}TRUSTED_PROXIES.",
        )  # fmt: skip

    def failed_sign_in(self, address: str) -> None:
        """Somebody has tried a token that is wrong; valid tokens are never refused because of it."""
        self._check(
            "failed_sign_ins", self._sign_ins.take(address),
            f"more than {self._settings.failed_sign_ins_per_minute} wrong tokens from this address in a minute.",
            "Wait, and check the token.",
        )  # fmt: skip

    def _check(self, limit: str, wait: float | None, message: str, hint: str) -> None:
        if wait is not None:
            self._count(limit)
            raise TooManyRequestsError(message, hint, max(1, math.ceil(wait)))


class _Recent(Generic[V]):
    """Values by key, those that were used longest ago forgotten first."""

    def __init__(self, make: Callable[[], V]) -> None:
        self._make = make
        self._values: OrderedDict[str, V] = OrderedDict()

    def get(self, key: str) -> V:
        if key in self._values:
            self._values.move_to_end(key)
        else:
            self._values[key] = self._make()
            if len(self._values) > REMEMBERED:
                self._values.popitem(last=False)
        return self._values[key]


class Bucket:
    """At most ``most`` in a burst, and ``most`` in each period in the long run."""

    def __init__(self, most: int, period_s: float, clock: Clock) -> None:
        self._most, self._rate, self._clock = most, most / period_s, clock
        self._left: _Recent[list[float]] = _Recent(lambda: [float(most), clock()])

    def take(self, key: str) -> float | None:
        """Take one; the seconds to wait if there is none."""
        entry, now = self._left.get(key), self._clock()
        left = min(self._most, entry[0] + (now - entry[1]) * self._rate)
        entry[:] = [left - 1.0 if left >= 1.0 else left, now]
        return None if left >= 1.0 else (1.0 - left) / self._rate


class DistinctNames:
    """At most ``most`` different names in each period; names that are known do not count again."""

    def __init__(self, most: int, period_s: float, clock: Clock) -> None:
        self._most, self._period_s, self._clock = most, period_s, clock
        self._names: _Recent[dict[str, float]] = _Recent(dict)

    def take(self, key: str, name: str) -> float | None:
        """Use a name; the seconds to wait if there are too many."""
        names, now = self._names.get(key), self._clock()
        for old in [one for one, at in names.items() if now - at >= self._period_s]:
            del names[old]
        if name not in names and len(names) >= self._most:
            return min(names.values()) + self._period_s - now
        names.setdefault(name, now)
        return None


def address_of(scope: Scope) -> str:
    """The network address of a request's sender; of IPv6 the first half, since one customer has all of the rest."""
    client = scope.get("client")
    host = client[0] if client else "unknown"
    try:
        parsed = ip_address(host)
    except ValueError:
        return str(host)
    if isinstance(parsed, IPv6Address):
        return str(parsed.ipv4_mapped or f"{IPv6Address(int(parsed) >> 64 << 64)}/64")
    return str(parsed)
