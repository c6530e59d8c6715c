"""Things that take too long for a request: worked out in a thread, the last answer is shown meanwhile.

An answer that took t seconds is renewed after PATIENCE t seconds at the earliest, and only if somebody looks.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Lock
from typing import Generic, TypeVar

T = TypeVar("T")
PATIENCE = 5.0
_log = logging.getLogger("nextlabel.web")


@dataclass(frozen=True, slots=True)
class CachedValue(Generic[T]):
    """The last answer for a campaign, worked out after event ``seq``; ``version`` counts answers."""

    value: T
    seq: int
    version: int
    at: float
    seconds: float


class Background(Generic[T]):
    """The last answers to one question, by campaign; ``work`` gets the campaign's id."""

    def __init__(self, pool: ThreadPoolExecutor, work: Callable[[str], T], failed: T, least_s: float = 1.0) -> None:
        self._pool, self._work, self._failed, self._least = pool, work, failed, least_s
        self._known: dict[str, CachedValue[T]] = {}
        self._under_way: set[str] = set()
        self._lock = Lock()

    def look(self, id: str, seq: int, again_s: float | None = None) -> CachedValue[T] | None:
        """The last answer; a new one is asked for if events came since, or ``again_s`` seconds have passed."""
        known = self._known.get(id)
        if known is None:
            stale = True
        else:
            age = time.monotonic() - known.at
            rested = age > max(self._least, PATIENCE * known.seconds)
            stale = rested and (known.seq != seq or (again_s is not None and age > again_s))
        if stale:
            with self._lock:
                if id not in self._under_way:
                    self._under_way.add(id)
                    self._pool.submit(self._run, id, seq)
        return known

    def now(self, id: str, seq: int) -> CachedValue[T]:
        """The answer, worked out here unless it is there."""
        known = self._known.get(id)
        if known is None or known.seq != seq:
            self._run(id, seq)
            known = self._known[id]
        return known

    def _run(self, id: str, seq: int) -> None:
        begin = time.monotonic()
        try:
            value = self._work(id)
        except Exception as error:
            _log.warning("not worked out for %s", id, exc_info=error)
            value = self._failed
        end = time.monotonic()
        with self._lock:
            before = self._known.get(id)
            version = 1 if before is None else before.version + (before.value != value)
            self._known[id] = CachedValue(value, seq, version, end, end - begin)
            self._under_way.discard(id)
