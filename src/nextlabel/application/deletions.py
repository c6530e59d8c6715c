"""Deleting a campaign: at once for everybody, and its rows bit by bit.

One short transaction makes the campaign disappear, with its links and whatever workers hold of it: from then on every
request about it is told that it was deleted. Its rows are removed after that, some at a time, so that other campaigns
wait for a fraction of a second at most. A process that ends meanwhile leaves rows that nobody sees; any service on
the database, and the next command that deletes a campaign, carries on with them.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from threading import Event

from nextlabel.campaign.records import Deletion
from nextlabel.errors import UnavailableError
from nextlabel.store.sql import SqlStore

#: Rows that are removed at once, at first and at most; seconds that this may take before fewer, or more, are removed.
FEW, MOST = 50, 2000
SLOW_S, QUICK_S = 0.2, 0.05
#: Seconds that a command waits for a busy database before it leaves the rest to others.
PATIENCE_S = 60.0

Progress = Callable[[float], None]
_log = logging.getLogger("nextlabel.application")


class Deletions:
    """The deletions of one store; ``wanted`` is set when there are rows to be removed."""

    def __init__(self, store: SqlStore) -> None:
        self._store = store
        self._stopping = Event()
        self.wanted = Event()

    def begin(self, id: str) -> Deletion:
        """Make a campaign disappear; its rows are left for ``finish``."""
        deletion = self._store.records.delete(id, self._store.clock())
        self.wanted.set()
        return deletion

    def stop(self) -> None:
        """End ``finish`` after the rows that are being removed."""
        self._stopping.set()
        self.wanted.set()

    def finish(self, progress: Progress | None = None) -> int:
        """Remove the rows of all campaigns that were deleted; returns how many."""
        removed = 0
        for deletion in self._store.records.unfinished():
            removed += self._clear(deletion, progress or (lambda fraction: None))
        if removed:
            _log.info("%d rows of deleted campaigns were removed", removed)
        return removed

    def _clear(self, deletion: Deletion, progress: Progress) -> int:
        removed, many, end = 0, FEW, time.monotonic() + PATIENCE_S
        while not self._stopping.is_set():
            begun = time.monotonic()
            try:
                some = self._store.records.clear(deletion, many)
            except UnavailableError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.1)
                continue
            if some == 0:
                break
            removed, end = removed + some, time.monotonic() + PATIENCE_S
            progress(min(removed / max(deletion.rows, 1), 1.0))
            took = time.monotonic() - begun
            many = max(many // 2, FEW) if took > SLOW_S else min(2 * many, MOST) if took < QUICK_S else many
            time.sleep(took)  # others have the database for at least as long
        return removed
