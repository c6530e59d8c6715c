"""The certificates of all campaigns: kept while they hold, computed in the background for those who only look."""

from __future__ import annotations

import logging
from concurrent.futures import Future
from dataclasses import dataclass
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING

import numpy as np

from nextlabel.campaign.crowd_snapshot import CrowdSnapshot
from nextlabel.campaigns.certificate import Certificate, compute_certificate
from nextlabel.campaigns.jobs import Jobs
from nextlabel.errors import InputError, UnavailableError
from nextlabel.solve.crowd.from_labels import bound_from_crowd_labels

if TYPE_CHECKING:
    from nextlabel.campaigns.service import CampaignService

#: A certificate that took t seconds is used for PATIENCE t seconds although labels came in, but not longer than for
#: OLDEST_S seconds (the first one may have waited for the compiler), and of an open campaign alone. After as long, one
#: that could not be computed is tried again.
PATIENCE, OLDEST_S = 10.0, 60.0
_log = logging.getLogger("nextlabel.campaigns")

#: The largest campaign that is bounded: tasks, labels, workers. The fewest labels that a bound is made from.
MOST_TASKS, MOST_LABELS, MOST_WORKERS, FEWEST_LABELS = 1000, 5000, 100, 30

#: One crowd in so many of the sample is bounded.
EVERY = 10

#: A bound is made again after this share of labels more.
AGAIN = 0.2


class Certificates:
    """The last certificate of each campaign, computed anew when it no longer holds; one at a time."""

    def __init__(self, campaign_service: CampaignService) -> None:
        self._campaign_service = campaign_service
        self._last: dict[str, Certificate] = {}
        self._failed: dict[str, tuple[int, float]] = {}  # the event after which it could not be computed, and when
        self._lock = Lock()
        self.jobs = Jobs("certificates")
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
        return self.jobs.submit(id, lambda _: self._tried(id))

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


@dataclass(frozen=True, slots=True)
class CrowdBound:
    """At most so much per task with that budget, as of ``labels`` labels; None if the chains did not agree."""

    budget: int
    labels: int
    upper: float | None
    in_time: float | None = None  # labels that are expected to come in before the deadline

    @property
    def assumes(self) -> str:
        """What it assumes, in a sentence."""
        before = ""
        if self.in_time is not None:
            before = f" Before the deadline {self.in_time:,.0f} more labels were expected to come in."
        return (
            "No rule can be expected to do better if each worker answers in a way of their own, independently of the "
            f"others, and the same workers keep coming as often as they did; as of {self.labels:,} labels. Real crowds "
            f"are not quite so, and an audit does not correct it.{before}"
        )


class CrowdBounds:
    """The last bound of each campaign."""

    def __init__(self) -> None:
        self._last: dict[str, CrowdBound] = {}
        self._jobs = Jobs("bounds")

    def last(self, id: str, budget: int) -> CrowdBound | None:
        """The last bound for that budget."""
        found = self._last.get(id)
        return found if found is not None and found.budget == budget and found.upper is not None else None

    def order(self, id: str, budget: int, left: int, crowd: CrowdSnapshot, in_time: float | None = None) -> None:
        """Have a bound computed, if the campaign is small and the last one is old.

        ``in_time``: labels that are expected to come in before the deadline, which ``left`` knows of already.
        """
        labels, last = int(crowd.labels.sum()), self._last.get(id)
        if left < 1 or not FEWEST_LABELS <= labels <= MOST_LABELS:
            return
        if len(crowd.beliefs) > MOST_TASKS or len(crowd.workers) > MOST_WORKERS:
            return
        if last is not None and last.budget == budget and labels < last.labels * (1.0 + AGAIN):
            return
        # One at a time, for all campaigns: others are ordered again with their next certificate.
        self._jobs.submit("bound", lambda _: self._compute(id, budget, left, crowd, in_time))

    def _compute(self, id: str, budget: int, left: int, crowd: CrowdSnapshot, in_time: float | None) -> None:
        try:
            labels, unknown = crowd.answers, np.full(len(crowd.beliefs), -1, dtype=np.int64)
            found = bound_from_crowd_labels(labels, unknown, left, arrivals=left, every=EVERY)
            upper = found.per_task if found.converged else None
            self._last[id] = CrowdBound(budget, len(labels.task), upper, in_time)
        except Exception as error:
            _log.warning("no bound for %s", id, exc_info=error)
            self._last[id] = CrowdBound(budget, int(crowd.labels.sum()), None)
