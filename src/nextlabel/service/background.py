"""What goes on behind the requests: imports, their recovery, and the removal of deleted campaigns.

Imports whose process has ended are finished or thrown away, at the start and from then on every few seconds.

When this process is told to end, its own imports end at the next chunk: their clients hear 503 and send them again.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace
from threading import Thread
from types import FrameType
from typing import Any, TypeVar

from nextlabel.campaign.records import ImportRow
from nextlabel.campaigns.deletions import Deletions
from nextlabel.campaigns.imports import Imports, Progress
from nextlabel.errors import NextlabelError, UnavailableError
from nextlabel.service.logs import request_log

T = TypeVar("T")

#: Seconds between two looks for imports without a process.
INTERVAL_S = 15.0


def in_background(take_in: Callable[[Progress], T]) -> ImportRow | T:
    """Run an import in a thread of its own; returns when it has its first chunk, or with its result if it is short."""
    result: Future[ImportRow | T] = Future()

    def begin(row: ImportRow, published: int) -> None:
        if not result.done():
            result.set_result(replace(row))

    def run() -> None:
        try:
            found = take_in(begin)
        except BaseException as error:
            if not result.done():
                result.set_exception(error)
            elif not isinstance(error, NextlabelError):
                request_log.error("an import was broken off", exc_info=error)
        else:
            if not result.done():
                result.set_result(found)

    Thread(target=run, name="import", daemon=True).start()
    return result.result()


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
