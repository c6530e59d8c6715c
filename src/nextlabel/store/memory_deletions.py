"""Deleted campaigns (``campaign.deletions``) in memory, where nothing is left to be removed."""

from __future__ import annotations

from collections.abc import Callable
from threading import RLock

from nextlabel.campaign.deletions import Deletion


class MemoryDeletions:
    """The deletions of one process; ``remove`` throws a campaign away."""

    def __init__(self, lock: RLock, remove: Callable[[str], None]) -> None:
        self._lock, self._remove = lock, remove
        self._deleted: dict[str, float] = {}

    def begin(self, id: str, now: float) -> Deletion:
        """Make a campaign disappear."""
        with self._lock:
            self._remove(id)
            self._deleted[id] = now
        return Deletion(id, now, 0)

    def find(self, id: str) -> float | None:
        """When a campaign was deleted."""
        return self._deleted.get(id)

    def unfinished(self) -> list[Deletion]:
        """None has left rows."""
        return []

    def clear(self, deletion: Deletion, many: int) -> int:
        """There is nothing to remove."""
        return 0
