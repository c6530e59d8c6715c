"""One thread a process through which all commands go: those that wait together are committed together.

A commit waits for the disk once, however many commands it makes durable. Nobody hears of a command before it is. A
command that is refused fails alone. If anything else goes wrong, nothing of the transaction stands, and its commands
are tried one at a time, so that each gets its own error.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Any, NamedTuple, TypeVar

from nextlabel.campaign.commands import Commands
from nextlabel.campaigns.service import CampaignService
from nextlabel.errors import NextlabelError
from nextlabel.service.pending_tables import NonBlockingTableCache

T = TypeVar("T")
#: Commands of one transaction at most.
MOST = 64


class _Job(NamedTuple):
    campaign: str
    command: Callable[[Commands], Any]
    future: asyncio.Future[Any]
    loop: asyncio.AbstractEventLoop


#: How a command ended.
_End = tuple[_Job, Any, BaseException | None]


class Writer:
    """Runs commands of ``campaign.commands`` in the order in which they come, by campaign."""

    def __init__(self, campaign_service: CampaignService, committed: Callable[[int], None] | None = None) -> None:
        self._office, self._committed = campaign_service, committed
        self._desk = NonBlockingTableCache(campaign_service.table_cache)
        self._queue: SimpleQueue[_Job | None] = SimpleQueue()
        self._lock = Lock()
        self._thread: Thread | None = None

    async def run(self, campaign: str, command: Callable[[Commands], T]) -> T:
        """What a command returns, when it is durable; who stops waiting does not stop it."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._queue.put(_Job(campaign, command, future, loop))
        if self._thread is None:
            self._start()
        return await future

    def close(self) -> None:
        """Run what waits, then end the thread; another command would start it again."""
        with self._lock:
            thread = self._thread
        if thread is not None:
            self._queue.put(None)
            thread.join()
            with self._lock:
                self._thread = None
            if not self._queue.empty():  # it came after the end
                self._start()

    def _start(self) -> None:
        with self._lock:
            if self._thread is None:
                self._thread = Thread(target=self._work, name="writer", daemon=True)
                self._thread.start()

    def _work(self) -> None:
        over = False
        while not over:
            jobs: list[_Job] = []
            job = self._queue.get()
            try:
                while True:
                    if job is None:
                        over = True
                        break
                    jobs.append(job)
                    if len(jobs) == MOST:
                        break
                    job = self._queue.get_nowait()
            except Empty:
                pass
            for campaign in sorted({job.campaign for job in jobs}):
                self._group(campaign, [job for job in jobs if job.campaign == campaign])

    def _group(self, campaign: str, jobs: Sequence[_Job]) -> None:
        try:
            ends = self._transaction(campaign, jobs)
        except Exception as error:
            if len(jobs) > 1:
                for job in jobs:
                    self._group(campaign, [job])
                return
            ends = [(job, None, error) for job in jobs]
        else:
            if self._committed is not None:
                self._committed(len(jobs))
        for loop in {end[0].loop for end in ends}:
            with suppress(RuntimeError):  # nobody is there any more
                loop.call_soon_threadsafe(_tell, [end for end in ends if end[0].loop is loop])

    def _transaction(self, campaign: str, jobs: Sequence[_Job]) -> list[_End]:
        ends: list[_End] = []
        with self._office.store.transaction(campaign) as ledger:
            for job in jobs:
                try:
                    value = job.command(Commands(ledger, self._desk, self._office.clock()))
                except NextlabelError as error:
                    ends.append((job, None, error))
                else:
                    ends.append((job, value, None))
        return ends


def _tell(ends: Sequence[_End]) -> None:
    """Those who wait hear of it, all in one turn of their loop."""
    for job, value, error in ends:
        if job.future.done():
            continue
        if error is None:
            job.future.set_result(value)
        else:
            job.future.set_exception(error)
