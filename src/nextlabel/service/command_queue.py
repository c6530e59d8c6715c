"""One thread per process that runs all commands: commands that wait together are committed together.

A commit waits for the disk once, however many commands it makes durable and to whichever campaigns, and no caller hears
of a command before it is durable. Commands run one after the other, so that each sees what those before it have
decided, and what they change is written at once. A command that is refused fails alone: commands decide before they
change anything. If the database does not answer, all commands of the transaction fail. If anything else goes wrong, the
transaction is undone and its commands are run campaign by campaign, and then one by one, so that each gets its own
error.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Any, NamedTuple, TypeVar

from nextlabel.application.service import CampaignService
from nextlabel.campaign.commands import Commands
from nextlabel.errors import NextlabelError, UnavailableError
from nextlabel.tracing import here, span

T = TypeVar("T")
#: The most commands in one transaction.
MAX_BATCH = 64


class _Job(NamedTuple):
    campaign: str
    command: Callable[[Commands], Any]
    future: asyncio.Future[Any]
    loop: asyncio.AbstractEventLoop
    cause: Any


#: A job with its result or its error.
_Outcome = tuple[_Job, Any, BaseException | None]


class CommandQueue:
    """Runs commands (``campaign.commands``), those of one campaign in the order in which they arrive."""

    def __init__(self, campaign_service: CampaignService, on_commit: Callable[[float], None] | None = None) -> None:
        self._service, self._on_commit = campaign_service, on_commit
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._lock = Lock()
        self._thread: Thread | None = None

    async def run(self, campaign: str, command: Callable[[Commands], T]) -> T:
        """The result of a command once it is durable; a caller that stops waiting does not stop the command."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._jobs.put(_Job(campaign, command, future, loop, here()))
        if self._thread is None:
            self._start()
        return await future

    def close(self) -> None:
        """Run what is waiting, then end the thread; a later command starts it again."""
        if self._thread is not None:
            self._jobs.put(None)
            self._thread.join()
            self._thread = None
            if not self._jobs.empty():  # a command arrived after the end
                self._start()

    def _start(self) -> None:
        with self._lock:
            if self._thread is None:
                self._thread = Thread(target=self._work, name="command-queue", daemon=True)
                self._thread.start()

    def _work(self) -> None:
        """Run the commands that wait together, until ``close``."""
        job = self._jobs.get()
        while job is not None:
            jobs = [job]
            with suppress(Empty):
                while len(jobs) < MAX_BATCH and (job := self._jobs.get_nowait()) is not None:
                    jobs.append(job)
            self._run_group(jobs)
            job = None if job is None else self._jobs.get()

    def _run_group(self, jobs: Sequence[_Job]) -> None:
        """Run jobs in one transaction; those of campaigns that another process has locked wait for it afterwards."""
        by_campaign: dict[str, list[_Job]] = {}
        for job in jobs:
            by_campaign.setdefault(job.campaign, []).append(job)
        left_out: list[list[_Job]] = []
        try:
            outcomes, left_out = self._commit(by_campaign)
        except Exception as error:
            # A database that does not answer would keep each of them waiting in turn, and everybody behind them.
            if len(jobs) > 1 and not isinstance(error, UnavailableError):
                parts = list(by_campaign.values()) if len(by_campaign) > 1 else [[job] for job in jobs]
                for part in parts:
                    self._run_group(part)
                return
            outcomes = [(job, None, error) for job in jobs]
        else:
            if self._on_commit is not None and outcomes:
                self._on_commit(len(outcomes))
        for loop in {outcome[0].loop for outcome in outcomes}:
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(_resolve, [outcome for outcome in outcomes if outcome[0].loop is loop])
        for part in left_out:
            self._run_group(part)

    def _commit(self, by_campaign: dict[str, list[_Job]]) -> tuple[list[_Outcome], list[list[_Job]]]:
        """What came of the jobs, and the jobs of campaigns that could not be had."""
        outcomes: list[_Outcome] = []
        causes = [job.cause for jobs in by_campaign.values() for job in jobs if job.cause is not None]
        with (
            span("commands", causes, campaigns=list(by_campaign)),
            self._service.store.transactions(by_campaign) as states,
        ):
            for campaign, state in states.items():
                for job in by_campaign[campaign]:
                    try:
                        value = job.command(Commands(state, self._service.table_cache, self._service.clock()))
                    except NextlabelError as error:
                        outcomes.append((job, None, error))
                    else:
                        outcomes.append((job, value, None))
        return outcomes, [jobs for campaign, jobs in by_campaign.items() if campaign not in states]


def _resolve(outcomes: Sequence[_Outcome]) -> None:
    """Wake all callers on one event loop together."""
    for job, value, error in outcomes:
        if job.future.done():
            continue
        if error is None:
            job.future.set_result(value)
        else:
            job.future.set_exception(error)
