"""Imports whose process has ended are finished or thrown away, at the start and from then on every few seconds.

When this process is told to end, its own imports end at the next chunk: their clients hear 503 and send them again.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from nextlabel.campaigns.imports import Imports
from nextlabel.errors import UnavailableError
from nextlabel.service.logs import request_log

#: Seconds between two looks for imports without a process.
INTERVAL_S = 15.0


class ImportRecovery:
    """A thread that looks after the imports of a store."""

    def __init__(self, imports: Imports) -> None:
        self._imports = imports
        self._ended = threading.Event()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Look after imports until the end of the block."""
        threading.Thread(target=self._work, name="import-recovery", daemon=True).start()
        try:
            with self._stopped_by_signals():
                yield
        finally:
            self._stop()

    def _stop(self) -> None:
        self._ended.set()
        self._imports.stop()

    @contextmanager
    def _stopped_by_signals(self) -> Iterator[None]:
        """Stop at the signal itself: the server waits for all requests before it ends the application."""
        before: dict[int, Any] = {}
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                before[number] = signal.getsignal(number)

                def stop(caught: int, frame: FrameType | None) -> None:
                    self._stop()
                    if callable(before[caught]):
                        before[caught](caught, frame)

                if callable(before[number]):
                    signal.signal(number, stop)
        try:
            yield
        finally:
            for caught, handler in before.items():
                if callable(handler):
                    signal.signal(caught, handler)

    def _work(self) -> None:
        while True:
            try:
                for row in self._imports.recover():
                    request_log.info("import %s into %s recovered: %s", row.id, row.campaign, row.state)
            except UnavailableError:  # tried again
                pass
            except Exception as error:
                request_log.warning("an import could not be recovered", exc_info=error)
            if self._ended.wait(INTERVAL_S):
                return
