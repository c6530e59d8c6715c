"""Visits of platforms' workers (``campaign.visits``) in memory."""

from __future__ import annotations

from dataclasses import replace
from threading import Lock

from nextlabel.campaign.visits import Visit


class MemoryVisits:
    """The visits of a store that keeps nothing."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._visits: dict[tuple[str, str, str], Visit] = {}

    def add(self, visit: Visit) -> Visit:
        """A visit begins, unless it has before."""
        with self._lock:
            return self._visits.setdefault(_key(visit), visit)

    def find(self, platform: str, id: str) -> list[Visit]:
        """The visits with that id, oldest first."""
        with self._lock:
            found = [one for one in self._visits.values() if (one.platform, one.id) == (platform, id)]
        return sorted(found, key=_order)

    def of(self, campaign: str, platform: str | None = None, worker: str | None = None) -> list[Visit]:
        """The visits to a campaign."""
        with self._lock:
            found = [one for one in self._visits.values() if one.campaign == campaign]
        some = [one for one in found if platform in (None, one.platform) and worker in (None, one.worker)]
        return sorted(some, key=_order)

    def set_status(self, visit: Visit, status: str, at: float) -> bool:
        """Keep what the platform said, unless it has said something later."""
        with self._lock:
            known = self._visits.get(_key(visit))
            if known is None or (known.status_at is not None and known.status_at > at):
                return False
            self._visits[_key(visit)] = replace(known, status=status, status_at=at)
            return True

    def forget(self, campaign: str) -> None:
        """The campaign was deleted."""
        with self._lock:
            self._visits = {key: one for key, one in self._visits.items() if one.campaign != campaign}


def _key(visit: Visit) -> tuple[str, str, str]:
    return visit.platform, visit.id, visit.campaign


def _order(visit: Visit) -> tuple[float, str]:
    return visit.begun_at, visit.id
