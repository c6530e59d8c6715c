"""Background jobs by key: tables, refits, certificates and bounds are computed in threads that nobody waits behind.

A key is under way once, and whoever submits it again gets the same future. Small jobs go first, those of an owner of
many wait behind the first of others, and a large job gives way between two of its slices: ``Jobs`` runs the job with
the least due time, which is the work done before it was submitted, or its owner's last due time, plus its own cost.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

from nextlabel.errors import UnavailableError

T = TypeVar("T")

#: Called by a job between two of its slices.
GiveWay = Callable[[], None]


@dataclass(frozen=True, slots=True, order=True)
class _Job:
    due: float
    number: int
    cost: float = field(compare=False)
    key: Hashable = field(compare=False)
    work: Callable[[GiveWay], Any] = field(compare=False)
    future: Future[Any] = field(compare=False)


class Jobs:
    """Jobs of one kind, in so many daemon threads; ``nice`` is how far they step back behind other threads."""

    def __init__(self, name: str, threads: int = 1, nice: int = 0) -> None:
        self._name, self._most, self._nice = name, threads, nice
        self._waiting: list[_Job] = []
        self._under_way: dict[Hashable, Future[Any]] = {}
        self._due: dict[Hashable, float] = {}
        self._done, self._count, self._threads = 0.0, 0, 0
        self._lock = threading.Lock()
        self.closed = threading.Event()

    def submit(
        self, key: Hashable, work: Callable[[GiveWay], T], owner: Hashable = None, cost: float = 0.0
    ) -> Future[T]:
        """The future of a key: of the job that is under way, else of a new one; ``cost`` is in seconds, roughly."""
        with self._lock:
            if key in self._under_way:
                return self._under_way[key]
            if self.closed.is_set():
                raise _ending(self._name)
            due = self._due[owner] = max(self._done, self._due.get(owner, 0.0)) + cost
            self._count += 1
            future: Future[T] = Future()
            future.set_running_or_notify_cancel()  # others may wait for it too: nobody can cancel it
            self._under_way[key] = future
            self._waiting.append(_Job(due, self._count, cost, key, work, future))
            if self._threads < self._most:
                self._threads += 1
                threading.Thread(target=self._run_all, name=self._name, daemon=True).start()
        return future

    def close(self, patience_s: float = 0.0) -> None:
        """Begin nothing more, and wait a while for what is being done, which ends with its slice."""
        with self._lock:
            self.closed.set()
            dropped, self._waiting = self._waiting, []
            for job in dropped:
                del self._under_way[job.key]
            running = list(self._under_way.values())
        for job in dropped:
            job.future.set_exception(_ending(self._name))
        wait(running, patience_s)

    def _run_all(self) -> None:
        if self._nice and hasattr(os, "setpriority"):
            with suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), self._nice)
        while (job := self._next(None)) is not None:
            self._run(job)

    def _next(self, in_hand: _Job | None) -> _Job | None:
        """The job that is due next; with another in hand only if that gives way to it."""
        with self._lock:
            fit = [j for j in self._waiting if in_hand is None or (2 * j.cost <= in_hand.cost and j < in_hand)]
            if fit:
                self._waiting.remove(min(fit))
                return min(fit)
            self._threads -= in_hand is None  # the thread ends
            return None

    def _run(self, job: _Job) -> None:
        result = failed = None
        try:
            result = job.work(lambda: self._give_way(job))
        except BaseException as error:
            failed = error
        with self._lock:
            self._under_way.pop(job.key, None)
            self._done += job.cost
            if not self._waiting:
                self._due = {owner: due for owner, due in self._due.items() if due > self._done}
        if failed is None:
            job.future.set_result(result)
        else:
            job.future.set_exception(failed)

    def _give_way(self, in_hand: _Job) -> None:
        if self.closed.is_set():
            raise _ending(self._name)
        while (job := self._next(in_hand)) is not None:
            self._run(job)


def finished(value: T) -> Future[T]:
    """A future of what is there already."""
    future: Future[T] = Future()
    future.set_result(value)
    return future


def _ending(name: str) -> UnavailableError:
    return UnavailableError(f"{name} are no longer made: the program is ending.", "Ask again when it runs.")
