"""Values that take too long to compute within a request: computed in a thread while the last one is shown.

A value that took t seconds is computed again after PATIENCE t seconds at the earliest, and only if somebody looks; but
no value is left for longer than OLDEST_S seconds because it took long: the first one may have waited for the compiler.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Lock
from typing import Generic, TypeVar

from nextlabel.errors import GoneError

T = TypeVar("T")
PATIENCE, OLDEST_S = 5.0, 60.0
_log = logging.getLogger("nextlabel.web")


@dataclass(frozen=True, slots=True)
class CachedValue(Generic[T]):
    """A value for a campaign, computed after event ``seq``; ``version`` counts different values."""

    value: T
    seq: int
    version: int
    at: float
    seconds: float


class BackgroundCache(Generic[T]):
    """The latest value of one kind for each campaign; ``compute`` takes the campaign's id."""

    def __init__(
        self, pool: ThreadPoolExecutor, compute: Callable[[str], T], on_error: T, interval_s: float = 1.0
    ) -> None:
        self._pool, self._compute, self._on_error, self._interval_s = pool, compute, on_error, interval_s
        self._known: dict[str, CachedValue[T]] = {}
        self._computing: set[str] = set()
        self._lock = Lock()

    def latest(self, id: str, seq: int, max_age_s: float | None = None) -> CachedValue[T] | None:
        """The latest value; if there were events since, or it is too old, a new one is computed in the background."""
        known = self._known.get(id)
        if known is None:
            stale = True
        else:
            age = time.monotonic() - known.at
            rested = age > max(self._interval_s, min(PATIENCE * known.seconds, OLDEST_S))
            stale = rested and (known.seq != seq or (max_age_s is not None and age > max_age_s))
        if stale:
            with self._lock:
                if id not in self._computing:
                    self._computing.add(id)
                    self._pool.submit(self._run, id, seq)
        return known

    def current(self, id: str, seq: int) -> CachedValue[T]:
        """The value after event ``seq``, computed at once if need be."""
        known = self._known.get(id)
        if known is None or known.seq != seq:
            self._run(id, seq)
            known = self._known[id]
        return known

    def _run(self, id: str, seq: int) -> None:
        begin = time.monotonic()
        try:
            value = self._compute(id)
        except GoneError:  # deleted meanwhile: nobody will look
            value = self._on_error
        except Exception as error:
            _log.warning("a value of campaign %s could not be computed", id, exc_info=error)
            value = self._on_error
        end = time.monotonic()
        with self._lock:
            before = self._known.get(id)
            version = 1 if before is None else before.version + (before.value != value)
            self._known[id] = CachedValue(value, seq, version, end, end - begin)
            self._computing.discard(id)
