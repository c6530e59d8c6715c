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
from threading import Event, Thread
from types import FrameType
from typing import Any, TypeVar

from nextlabel.application.imports import Progress
from nextlabel.application.service import CampaignService
from nextlabel.application.worker_reports import MOST_WORKERS
from nextlabel.campaign.records import Activity, ImportRow
from nextlabel.campaign.rows import ERASED
from nextlabel.campaign.states import PREFIX
from nextlabel.errors import NextlabelError, UnavailableError
from nextlabel.service.logs import request_log

T = TypeVar("T")

#: Seconds between two looks for imports without a process.
INTERVAL_S = 15.0
#: And for people who have not worked for long.
HOUR_S = 3600.0


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


@contextmanager
def repeated(
    name: str,
    step: Callable[[], object],
    stop: Callable[[], None],
    wake: Event | None = None,
    every: float = INTERVAL_S,
) -> Iterator[None]:
    """Take a step in a thread every so many seconds, and when ``wake`` is set, until the end of the block."""
    ended, called = Event(), wake or Event()

    def work() -> None:
        while True:
            called.clear()
            if ended.is_set():
                return
            try:
                step()
            except UnavailableError:  # tried again
                pass
            except Exception as error:
                request_log.warning("the thread %s could not do its work", name, exc_info=error)
            called.wait(every)

    thread = Thread(target=work, name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        stop()
        called.set()
        thread.join(INTERVAL_S)


def erase_old(service: CampaignService, days: float) -> None:
    """Erase people who have not worked for so many days, and forget who changed what before that."""
    before = service.clock() - days * 86_400
    for row in service.store.campaigns():
        for one in service.store.workers(row.id, MOST_WORKERS):
            if one.last_at < before and not one.worker.startswith((PREFIX, ERASED)):
                service[row.id].erase_worker(one.worker)
    service.store.records.forget(Activity, before)


@contextmanager
def at_signals(stop: Callable[[], None]) -> Iterator[None]:
    """Stop at the signal itself: the server waits for all requests before it ends the application."""
    before: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGINT):
            before[number] = signal.getsignal(number)

            def stopped(caught: int, frame: FrameType | None) -> None:
                stop()
                before[caught](caught, frame)

            if callable(before[number]):
                signal.signal(number, stopped)
    try:
        yield
    finally:
        for caught, handler in before.items():
            if callable(handler):
                signal.signal(caught, handler)
