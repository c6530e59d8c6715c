"""The tables of all campaigns of a process, made in the background (``table_maker``) and kept while memory allows.

``ready`` does not wait while there are tables near enough: those that are missing are made in the background, and the
nearest in load are used meanwhile. Each lease's event says which were used. Tables for more than MOST_RHO labels in
flight are those for MOST_RHO (``campaign.rates``).

Sets of tables are kept up to MEMORY bytes together; then any of them goes, by lot: whatever the order in which
campaigns are asked, some of the sets that are wanted are there. One that is wanted again is loaded from the store.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import threading
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from threading import Lock, Thread
from typing import Any, Protocol, TypeVar

import numpy as np

from nextlabel.beliefs.prior import Prior
from nextlabel.campaign.policy_tables import ARRIVALS, LABELS_PER_TASK, Load, PolicyTables, as_load, table_problem
from nextlabel.campaign.rates import table_rho
from nextlabel.campaign.rows import CampaignRow
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.crowd.copying import find_copying
from nextlabel.crowd.fit import CrowdLabels, fit_crowd
from nextlabel.crowd.skill import accuracies
from nextlabel.errors import FileFormatError, TablesPendingError, UnavailableError
from nextlabel.policies.allocation import Outlook
from nextlabel.policies.auto import Auto
from nextlabel.policies.crowd.allocator import GrowingCrowd
from nextlabel.policies.index import Index, solve_table
from nextlabel.policies.registry import make_policy
from nextlabel.policies.thompson import Thompson
from nextlabel.problem.tables import prior_table, reward_table
from nextlabel.solve.index import FORMAT, IndexTable, sweep_size

#: Bytes of tables that are kept; a set that is larger than that is kept alone.
MEMORY = 512 << 20

#: A log of more events than this is read outside of the transaction, if that is possible.
LONG_LOG = 5000

#: Seconds that tables take on an idle machine, roughly: for each state of an index's sweep, and for each prior of
#: other policies. Orders are made in the order of their costs (``table_maker``).
INDEX_SECONDS, OTHER_SECONDS, THOMPSON_SECONDS, AUTO_SECONDS = 2e-5, 0.03, 0.6, 0.5
T = TypeVar("T")

#: How far the thread steps back behind those that answer workers.
NICE = 10

#: Called between two slices of an order.
GiveWay = Callable[[], None]
_lock = Lock()
_compiled: list[Future[None]] = []


class Refits(Protocol):
    """Refits in the background (``campaigns.refits``)."""

    def later(self, id: str) -> Future[None]:
        """Refit a campaign if that is due."""
        ...

    def close(self) -> None:
        """End what is under way."""
        ...


Key = tuple[str, int, int, tuple[object, ...], Load]


class TableCache:
    """Policy tables by campaign settings, priors and load; one cache serves all campaigns of a process."""

    def __init__(self, table_store: TableStore | None = None, memory: int = MEMORY) -> None:
        self._table_store = table_store if table_store is not None else NoTableStore()
        self._tables: dict[Key, PolicyTables] = {}
        self._under_way: dict[Key, Future[PolicyTables]] = {}
        self._memory, self._kept = memory, 0
        self._lock = Lock()
        self._lot = Random(0)
        self._maker = TableMaker()
        #: Refits of the policy ``crowd`` in the background, if there are any.
        self.refits: Refits | None = None

    def ready(self, config: CampaignSettings, classes: Sequence[Prior], load: Load | float) -> PolicyTables:
        """The tables for a load (rho alone for most policies), or the nearest that there are while those are made."""
        key = _key(config, classes, load)
        tables = self._tables.get(key)
        if tables is not None:
            return tables
        with self._lock:
            near = [one for k, one in self._tables.items() if k[:-1] == key[:-1]]
        self.prepare(config, classes, load)
        if near:
            return min(near, key=lambda one: one.load.distance(key[-1]))
        return self.wait(config, classes, load)

    def has(self, config: CampaignSettings, classes: Sequence[Prior], load: Load | float) -> bool:
        """Whether the tables are there; if not, they are made in the background."""
        with self._lock:
            if _key(config, classes, load) in self._tables:
                return True
        self.prepare(config, classes, load)
        return False

    def prepare(self, config: CampaignSettings, classes: Sequence[Prior], load: Load | float) -> None:
        """Make tables in the background."""
        self.pending(config, classes, load)

    def wait(self, config: CampaignSettings, classes: Sequence[Prior], load: Load | float) -> PolicyTables:
        """The tables, made now if they are not there."""
        tables = self.pending(config, classes, load)
        return tables.result() if isinstance(tables, Future) else tables

    def pending(
        self, config: CampaignSettings, classes: Sequence[Prior], load: Load | float
    ) -> PolicyTables | Future[PolicyTables]:
        """The tables, or the future that will have them."""
        key, some = _key(config, classes, load), tuple(classes)
        with self._lock:
            found = self._tables.get(key) or self._under_way.get(key)
            if found is not None:
                return found
            # The campaign that the order counts for: campaigns with the same settings count as one.
            owner, cost = config, work_of(config, some, key[-1])
            future = self._maker.order(owner, cost, lambda give_way: self._make(key, config, some, give_way))
            self._under_way[key] = future
            return future

    def crowd_ready(self) -> None:
        """Return once the policy ``crowd`` is compiled."""
        crowd_compiled().result()

    def crowd_loaded(self, row: CampaignRow) -> None:
        """Return: whoever has this cache may wait for a log to be read."""

    def refit_later(self, id: str) -> Future[None] | None:
        """The refit in the background, None if there are none (``refits``)."""
        return None if self.refits is None else self.refits.later(id)

    def close(self) -> None:
        """Stop making tables, and end the refit that is under way."""
        self._maker.close()
        if self.refits is not None:
            self.refits.close()

    def _make(self, key: Key, config: CampaignSettings, classes: Sequence[Prior], give_way: GiveWay) -> PolicyTables:
        try:
            tables, solved = make_tables(config, classes, key[-1], self._table_store, give_way)
        except BaseException:
            with self._lock:
                self._under_way.pop(key, None)
            raise
        with self._lock:
            self._make_room(tables.nbytes)
            self._tables[key] = tables
            self._kept += tables.nbytes
            self._under_way.pop(key, None)
        for name, data in solved.items():
            self._maker.write(self._table_store.put, name, data)
        return tables

    def _make_room(self, wanted: int) -> None:
        while self._tables and self._kept + wanted > self._memory:
            self._kept -= self._tables.pop(self._lot.choice(list(self._tables))).nbytes


def _key(config: CampaignSettings, classes: Sequence[Prior], load: Load | float) -> Key:
    rules = (tuple(classes), config.threshold, config.reward, config.label_cost)
    at = as_load(load)
    at = at if config.follows_load else Load(table_rho(at.rho))
    return config.policy, config.most_labels, config.most_in_flight, rules, at


class TableStore(Protocol):
    """Stores tables as bytes, by name."""

    def get(self, name: str) -> bytes | None:
        """The table of that name, if it is stored."""
        ...

    def put(self, name: str, data: bytes) -> bool:
        """Store a table, unless another process was first."""
        ...


class NoTableStore:
    """Stores nothing."""

    def get(self, name: str) -> bytes | None:
        """Nothing is stored."""
        return None

    def put(self, name: str, data: bytes) -> bool:
        """Nothing happens."""
        return False


def no_other_work() -> None:
    """Nothing is done between two slices."""


def work_of(config: CampaignSettings, classes: Sequence[Prior], load: Load | float) -> float:
    """What the tables will cost, in seconds of an idle machine, or so."""
    each = OTHER_SECONDS
    if config.policy == Index.name:
        each = INDEX_SECONDS * sweep_size(table_problem(config, classes[:1], table_rho(as_load(load).rho)))
    elif config.policy == Thompson.name:
        each = THOMPSON_SECONDS
    elif config.policy == Auto.name:
        each = AUTO_SECONDS
    return each * len(classes)


def make_tables(
    config: CampaignSettings, classes: Sequence[Prior], load: Load, table_store: TableStore, give_way: GiveWay
) -> tuple[PolicyTables, dict[str, bytes]]:
    """The tables for a load, and those of the index that are new, as ``load_or_solve_index`` returns them.

    ``give_way`` is called between two slices of the work: a few dozen sweeps of an index, or the tables of one prior.
    The tables of a policy of the user's own are made in one piece.
    """
    solved: dict[str, bytes] = {}
    policy = make_policy(config.policy)
    if isinstance(policy, Index):
        table, solved = load_or_solve_index(config, classes, load.rho, table_store, give_way)
        policy = Index(table)
    elif isinstance(policy, Auto):
        policy = Auto(lambda _: give_way())
    return PolicyTables.of(config, classes, load, policy, give_way), solved


def load_or_solve_index(
    config: CampaignSettings,
    classes: Sequence[Prior],
    rho: float,
    table_store: TableStore,
    give_way: GiveWay = no_other_work,
) -> tuple[IndexTable, dict[str, bytes]]:
    """The index of every class, loaded or solved, and the tables that are new and should be stored, by name.

    Storing is left to the caller: whoever waits for the table may be in the transaction that storing would wait for.
    """
    solved: dict[str, bytes] = {}
    tables: list[IndexTable] = []
    for prior in classes:
        tables.append(_of_class(config, prior, table_rho(rho), table_store, solved, give_way))
        give_way()
    first = tables[0]
    every = tuple(one for table in tables for one in table.classes)
    return IndexTable(first.tau, every, first.budget, first.left), solved


def _of_class(
    config: CampaignSettings,
    prior: Prior,
    rho: float,
    table_store: TableStore,
    solved: dict[str, bytes],
    give_way: GiveWay,
) -> IndexTable:
    described = [FORMAT, prior_table(prior), config.threshold, reward_table(config.reward), config.label_cost, rho]
    name = hashlib.sha256(json.dumps([*described, ARRIVALS, LABELS_PER_TASK]).encode()).hexdigest()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.npz"
        data = table_store.get(name)
        if data is not None:
            path.write_bytes(data)
            try:
                return IndexTable.load(path)
            except FileFormatError:
                pass  # written by another version: solved again below
        table = solve_table(table_problem(config, [prior], rho), progress=lambda _: give_way())
        table.save(path)
        solved[name] = path.read_bytes()
    return table


class NonBlockingTableCache(TableCache):
    """Shares the tables of another cache; where that one waits, this one raises TablesPendingError."""

    def __init__(self, table_cache: TableCache) -> None:
        self.__dict__ = table_cache.__dict__  # one set of tables, one lock

    def crowd_ready(self) -> None:
        """Return if the policy ``crowd`` is compiled."""
        found = crowd_compiled()
        if not found.done():
            raise TablesPendingError(found)
        found.result()

    def crowd_loaded(self, row: CampaignRow) -> None:
        """Return if the log is short, or must be read here because nothing goes on in the background."""
        later = self.refit_later(row.id) if row.seq > LONG_LOG else None
        if later is not None:
            raise TablesPendingError(later)

    def wait(self, config: CampaignSettings, classes: Sequence[Prior], load: Load | float) -> PolicyTables:
        """The tables if they are ready."""
        found = self.pending(config, classes, load)
        if isinstance(found, Future):
            raise TablesPendingError(found)
        return found


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

    def write(self, write: Callable[..., object], *arguments: Any) -> None:
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


def crowd_compiled() -> Future[None]:
    """Done when the kernels are compiled; the first call begins with it, in a thread of its own."""
    with _lock:
        if not _compiled:
            _compiled.append(Future())
            Thread(target=_compile, args=(_compiled[0],), name="compile-crowd", daemon=True).start()
        return _compiled[0]


def _compile(done: Future[None]) -> None:
    try:
        exercise()
    except BaseException as error:
        done.set_exception(error)
    else:
        done.set_result(None)
        exercise_reports()  # nobody who asks for a task waits for these


def exercise() -> None:
    """Take every step of a crowd once."""
    crowd = GrowingCrowd(np.array([0.5, 0.5]))
    limit = np.full(2, 3)
    crowd.add_tasks(np.zeros((2, 2)), limit, limit)
    worker = crowd.add_worker()
    for entry, task in enumerate((0, 1)):
        crowd.learn(entry + 1, entry, 2)
        crowd.choose(worker, Outlook(entry, 2))
        crowd.assign(entry, task, worker)
        crowd.complete(entry, 1)
    crowd.reopen(1)
    crowd.cancel(1)
    crowd.complete(1, 0)
    crowd.learn(3, 2, 2)


def exercise_reports() -> None:
    """Learn a tiny crowd as the reports on workers do (``campaigns.worker_reports``)."""
    pair = np.array([0, 1])
    labels = CrowdLabels(np.repeat(pair, 2), np.tile(pair, 2), np.repeat(pair, 2), 2, 2, 2)
    fit = fit_crowd(labels, np.full(2, -1))
    accuracies(labels, fit)
    find_copying(labels, fit)
