"""The certificates of all campaigns: kept while they hold, computed in the background for those who only look."""

from __future__ import annotations

import logging
from collections import deque
from concurrent.futures import Future
from threading import Lock, Thread
from time import monotonic
from typing import TYPE_CHECKING

from nextlabel.campaigns.certificate import Certificate, compute_certificate
from nextlabel.campaigns.crowd_bounds import CrowdBounds
from nextlabel.errors import InputError, UnavailableError

if TYPE_CHECKING:
    from nextlabel.campaigns.service import CampaignService

#: A certificate that took t seconds is used for PATIENCE t seconds although labels came in, but not longer than for
#: OLDEST_S seconds (the first one may have waited for the compiler), and of an open campaign alone. After as long, one
#: that could not be computed is tried again.
PATIENCE, OLDEST_S = 10.0, 60.0
_log = logging.getLogger("nextlabel.campaigns")


class Certificates:
    """The last certificate of each campaign, computed anew when it no longer holds; one at a time."""

    def __init__(self, campaign_service: CampaignService) -> None:
        self._campaign_service = campaign_service
        self._last: dict[str, Certificate] = {}
        self._failed: dict[str, tuple[int, float]] = {}  # the event after which it could not be computed, and when
        self._under_way: dict[str, Future[Certificate]] = {}
        self._orders: deque[str] = deque()
        self._thread: Thread | None = None
        self._lock, self._starting = Lock(), Lock()
        self.bounds = CrowdBounds()
        #: Whether somebody looks at certificates again and again, so that slow bounds are worth their time.
        self.watched = False

    def of(self, id: str) -> Certificate:
        """A campaign's certificate, computed here if none holds; while another is computed, the last one."""
        last, holds = self._check(id)
        if last is not None and (holds or self._lock.locked()):
            return last
        with self._lock:
            last, holds = self._check(id)
            if last is None or not holds:
                last = self._last[id] = compute_certificate(self._campaign_service, id)
        return last

    def look(self, id: str) -> Certificate | None:
        """The last certificate, at once; if it no longer holds, the next one is computed in the background."""
        self.watched = True
        last, holds = self._check(id)
        row = self._campaign_service.store.row(id)
        if not holds and row.tasks and not self._has_just_failed(id, row.seq):
            self._begin(id)
        return last

    def soon(self, id: str) -> Future[Certificate]:
        """As ``of``, computed in the background: whoever waits may give up, and ask again later."""
        last, holds = self._check(id)
        if last is None or not (holds or self._lock.locked()):
            return self._begin(id)
        there: Future[Certificate] = Future()
        there.set_result(last)
        return there

    def _begin(self, id: str) -> Future[Certificate]:
        with self._starting:
            if id not in self._under_way:
                self._under_way[id] = Future()
                self._under_way[id].set_running_or_notify_cancel()  # others may wait for it too
                self._orders.append(id)
            if self._thread is None:
                self._thread = Thread(target=self._work, name="certificates", daemon=True)
                self._thread.start()
            return self._under_way[id]

    def _work(self) -> None:
        """One certificate after the other, until there are no orders."""
        while True:
            with self._starting:
                if not self._orders:
                    self._thread = None
                    return
                id = self._orders.popleft()
            try:
                found: Certificate | Exception = self._tried(id)
            except Exception as error:
                found = error
            with self._starting:
                future = self._under_way.pop(id)
            if isinstance(found, Exception):
                future.set_exception(found)
            else:
                future.set_result(found)

    def _tried(self, id: str) -> Certificate:
        seq = self._campaign_service.store.row(id).seq
        try:
            return self.of(id)
        except UnavailableError:
            raise  # the next request tries again
        except Exception as error:
            if not isinstance(error, InputError):
                _log.warning("no certificate for %s", id, exc_info=error)
            self._failed[id] = seq, monotonic()
            raise

    def _has_just_failed(self, id: str, seq: int) -> bool:
        """Whether it could not be computed a moment ago, and nothing has happened since."""
        failed, at = self._failed.get(id, (-1, 0.0))
        return failed == seq and monotonic() - at < OLDEST_S

    def _check(self, id: str) -> tuple[Certificate | None, bool]:
        """The last certificate and whether it still holds."""
        last, row = self._last.get(id), self._campaign_service.store.row(id)
        if last is None or last.budget != row.budget or last.tasks != row.tasks:
            return None, False
        bound = self.bounds.last(id, row.budget)
        if bound is not None and bound.assumes != last.assumes:
            return last, False
        age = self._campaign_service.clock() - last.at
        if row.seq == last.seq:
            return last, row.deadline is None or age <= OLDEST_S  # it has come nearer
        return last, row.closed_seq is None and age < min(PATIENCE * last.seconds, OLDEST_S)
