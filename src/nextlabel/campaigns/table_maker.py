"""The thread that makes tables for all campaigns of a process, fairly: a large order does not hold up a small one.

Every order has a cost, known before it is made, in any unit. The *work done* is the sum of the costs of the orders that
are finished. An order is *due* when the work done would reach its cost if the thread had worked for its owner alone:

    due = max(work done, due of the owner's order before) + cost.

The order that is due first is made next, so that small orders come first, and an owner who has many waits behind the
first orders of all others. Orders are made in slices: between two of them the order in hand gives way to every
waiting order that is due before it and costs at most half as much; it goes on afterwards.
Guarantee: an order of cost c lets orders that came after it go first for a total cost of at most c; until then those
that cost at most half as much wait for one slice of it. Nothing hangs on how fast the machine is.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from nextlabel.errors import UnavailableError

T = TypeVar("T")
#: How far the thread steps back behind those that answer workers.
NICE = 10
#: Called between two slices of an order.
GiveWay = Callable[[], None]


@dataclass(frozen=True, slots=True)
class _Order:
    due: float
    number: int
    cost: float
    make: Callable[[GiveWay], Any]
    future: Future[Any]

    def before(self, other: _Order) -> bool:
        return (self.due, self.number) < (other.due, other.number)


class TableMaker:
    """Makes what is ordered in one background thread of low priority."""

    def __init__(self) -> None:
        self._waiting: list[_Order] = []
        self._due: dict[Hashable, float] = {}
        self._done = 0.0
        self._count = 0
        self._lock = threading.Lock()
        self._closed = False
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="tables", initializer=_lower_priority)
        #: Writes what is made: not on the thread above, which would wait for the database's lock.
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="table-store", initializer=_lower_priority)

    def order(self, owner: Hashable, cost: float, make: Callable[[GiveWay], T]) -> Future[T]:
        """``make`` is called with a function that it should call between two slices of its work."""
        future: Future[T] = Future()
        with self._lock:
            if self._closed:
                raise _closed()
            due = max(self._done, self._due.get(owner, 0.0)) + cost
            self._due[owner] = due
            self._count += 1
            self._waiting.append(_Order(due, self._count, cost, make, future))
            self._thread.submit(self._make_next, None)
        return future

    def write(self, write: Callable[..., None], *arguments: Any) -> None:
        """Call ``write`` in the background."""
        with self._lock:
            if not self._closed:
                self._writer.submit(write, *arguments)

    def close(self) -> None:
        """Make nothing more; the order in hand ends with its slice."""
        with self._lock:
            self._closed = True
            given_up, self._waiting = self._waiting, []
        for order in given_up:
            order.future.set_exception(_closed())
        self._thread.shutdown(wait=False, cancel_futures=True)
        self._writer.shutdown(wait=False)

    def _make_next(self, in_hand: _Order | None) -> bool:
        """Make the order that is due next; with another in hand only if that gives way to it. Whether there was one."""
        order = self._take(in_hand)
        if order is None:
            return False
        try:
            made = order.make(lambda: self._give_way(order))
        except BaseException as error:
            self._finish(order)
            order.future.set_exception(error)
        else:
            self._finish(order)
            order.future.set_result(made)
        return True

    def _take(self, in_hand: _Order | None) -> _Order | None:
        with self._lock:
            fit = [o for o in self._waiting if in_hand is None or (2 * o.cost <= in_hand.cost and o.before(in_hand))]
            if not fit:
                return None
            order = min(fit, key=lambda one: (one.due, one.number))
            self._waiting.remove(order)
        return order

    def _give_way(self, in_hand: _Order) -> None:
        if self._closed:
            raise _closed()
        while self._make_next(in_hand):
            pass

    def _finish(self, order: _Order) -> None:
        with self._lock:
            self._done += order.cost
            if not self._waiting:
                self._due = {owner: due for owner, due in self._due.items() if due > self._done}


def _closed() -> UnavailableError:
    return UnavailableError("tables are no longer made: the program is ending.", "Ask again when it runs.")


def _lower_priority() -> None:
    """Let this thread's work wait for that of workers who ask, where the system has priorities of threads."""
    if hasattr(os, "setpriority"):
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)
