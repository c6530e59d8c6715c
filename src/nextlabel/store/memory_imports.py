"""Imports of tasks (``campaign.imports``) in memory."""

from __future__ import annotations

from dataclasses import replace
from threading import RLock

from nextlabel.campaign.imports import ImportRow


class MemoryImports:
    """The imports of one process."""

    def __init__(self, lock: RLock) -> None:
        self._lock = lock
        self._rows: dict[str, ImportRow] = {}
        self._chunks: dict[str, dict[int, str]] = {}

    def begin(self, row: ImportRow) -> bool:
        """A new import."""
        with self._lock:
            if self.importing(row.campaign):
                return False
            self._rows[row.id], self._chunks[row.id] = replace(row), {}
            return True

    def importing(self, campaign: str) -> bool:
        """Whether the campaign has an active import."""
        with self._lock:
            return any(row.active and row.campaign == campaign for row in self._rows.values())

    def save(self, row: ImportRow) -> None:
        """An import that has changed."""
        with self._lock:
            self._rows[row.id] = replace(row)

    def claim(self, row: ImportRow, owner: str, now: float) -> bool:
        """Take an import over."""
        with self._lock:
            if self._rows.get(row.id) != row:
                return False
            row.owner, row.beat_at = owner, now
            self._rows[row.id] = replace(row)
            return True

    def find(self, id: str) -> ImportRow | None:
        """An import by id."""
        with self._lock:
            return replace(self._rows[id]) if id in self._rows else None

    def active(self) -> list[ImportRow]:
        """All imports that have not ended."""
        with self._lock:
            return [replace(row) for row in self._rows.values() if row.active]

    def of_campaign(self, campaign: str, limit: int) -> list[ImportRow]:
        """The imports of a campaign."""
        with self._lock:
            rows = [replace(row) for row in self._rows.values() if row.campaign == campaign]
        return sorted(rows, key=lambda row: (-row.started_at, row.id))[:limit]

    def stage(self, row: ImportRow, first: int, data: str) -> None:
        """Set a chunk of tasks aside."""
        with self._lock:
            self._chunks[row.id][first] = data
            self.save(row)

    def staged(self, id: str, first: int) -> str | None:
        """A chunk that was set aside."""
        with self._lock:
            return self._chunks.get(id, {}).get(first)

    def clear(self, id: str, below: int, many: int) -> int:
        """Throw chunks away."""
        with self._lock:
            chunks = self._chunks.get(id, {})
            gone = [first for first in sorted(chunks) if first < below][:many]
            for first in gone:
                del chunks[first]
            return len(gone)

    def forget(self, before: float) -> None:
        """Forget old imports."""
        with self._lock:
            for id in [id for id, row in self._rows.items() if not row.active and row.beat_at < before]:
                del self._rows[id], self._chunks[id]
