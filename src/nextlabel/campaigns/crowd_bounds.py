"""The most that any rule can still do with the workers of a campaign, computed in the background and kept.

A bound takes up to a minute (``solve.crowd.from_labels``), so it is made for small campaigns, one at a time, and again
when a fifth more labels are in. It is shown with the number of labels that it was computed from, and only with what it
assumes beside it.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from threading import Lock, Thread

import numpy as np

from nextlabel.campaign.crowd_snapshot import CrowdSnapshot
from nextlabel.solve.crowd.from_labels import bound_from_crowd_labels

#: The largest campaign that is bounded: tasks, labels, workers. The fewest labels that a bound is made from.
MOST_TASKS, MOST_LABELS, MOST_WORKERS, FEWEST_LABELS = 1000, 5000, 100, 30
#: One crowd in so many of the sample is bounded.
EVERY = 10
#: A bound is made again after this share of labels more.
AGAIN = 0.2
_log = logging.getLogger("nextlabel.campaigns")


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
        self._under_way: set[str] = set()
        self._lock = Lock()

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
        with self._lock:
            if self._under_way:  # one at a time, for all campaigns
                return
            self._under_way.add(id)
        Thread(target=self._compute, args=(id, budget, left, crowd, in_time), name="crowd-bound", daemon=True).start()

    def _compute(self, id: str, budget: int, left: int, crowd: CrowdSnapshot, in_time: float | None) -> None:
        try:
            labels, unknown = crowd.answers, np.full(len(crowd.beliefs), -1, dtype=np.int64)
            found = bound_from_crowd_labels(labels, unknown, left, arrivals=left, every=EVERY)
            upper = found.per_task if found.converged else None
            self._last[id] = CrowdBound(budget, len(labels.task), upper, in_time)
        except Exception as error:
            _log.warning("no bound for %s", id, exc_info=error)
            self._last[id] = CrowdBound(budget, int(crowd.labels.sum()), None)
        finally:
            with self._lock:
                self._under_way.discard(id)
