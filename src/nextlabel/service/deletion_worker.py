"""Rows of campaigns that were deleted are removed in the background, whichever process has deleted them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from nextlabel.campaigns.deletions import Deletions
from nextlabel.errors import UnavailableError
from nextlabel.service.logs import request_log

#: Seconds between two looks for rows that another process has left.
INTERVAL_S = 15.0


class DeletionWorker:
    """A thread that removes the rows of deleted campaigns."""

    def __init__(self, deletions: Deletions) -> None:
        self._deletions = deletions
        self._ended = threading.Event()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Remove rows until the end of the block."""
        thread = threading.Thread(target=self._work, name="deletion-worker", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._ended.set()
            self._deletions.stop()
            thread.join(INTERVAL_S)

    def _work(self) -> None:
        while not self._ended.is_set():
            self._deletions.wanted.clear()
            try:
                removed = self._deletions.finish()
                if removed:
                    request_log.info("%d rows of deleted campaigns were removed", removed)
            except UnavailableError:  # tried again
                pass
            except Exception as error:
                request_log.warning("rows of a deleted campaign could not be removed", exc_info=error)
            self._deletions.wanted.wait(INTERVAL_S)
