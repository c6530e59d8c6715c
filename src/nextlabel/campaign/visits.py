"""Visits of workers whom a platform sends: one for each submission (Prolific) or assignment (Mechanical Turk).

A platform knows a worker's work by an id of its own, and speaks of that id later: a submission was returned, a bonus is
paid for an assignment. The records say whose it was, in which campaign, and what the platform said of it last. They are
beside the log; what a status does to leases and labels is in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Visit:
    """One submission or assignment: ``id`` is the platform's, ``study`` the study or HIT that it belongs to.

    ``labels_before`` is what the worker had given in the campaign when the visit began; ``status`` is empty until the
    platform says something, which it did at ``status_at``.
    """

    campaign: str
    platform: str
    id: str
    worker: str
    study: str
    begun_at: float
    labels_before: int
    status: str = ""
    status_at: float | None = None


class VisitRecords(Protocol):
    """The records of one store."""

    def add(self, visit: Visit) -> Visit:
        """A visit begins; the one that is there already if it has begun before."""
        ...

    def find(self, platform: str, id: str) -> list[Visit]:
        """The visits with that id, in whichever campaigns, oldest first."""
        ...

    def of(self, campaign: str, platform: str | None = None, worker: str | None = None) -> list[Visit]:
        """The visits to a campaign, oldest first; those of one platform, and of one worker, if they are named."""
        ...

    def set_status(self, visit: Visit, status: str, at: float) -> bool:
        """Keep what the platform said at a time; False if it has said something later."""
        ...
