"""The tables of all campaigns of a process, made in the background (``campaigns.jobs``) and kept while memory allows.

``ready`` does not wait while there are tables near enough: those that are missing are made in the background, and the
nearest in load are used meanwhile. Each lease's event says which were used. Tables for more than MOST_RHO labels in
flight are those for MOST_RHO (``campaign.rates``).

Sets of tables are kept up to MEMORY bytes together; then any of them goes, by lot: whatever the order in which
campaigns are asked, some of the sets that are wanted are there. One that is wanted again is loaded from the store.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import cache
from pathlib import Path
from random import Random
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np

from nextlabel.application.jobs import GiveWay, Jobs, finished
from nextlabel.campaign.policy_tables import ARRIVALS, LABELS_PER_TASK, PolicyTables, TableLoad, as_load, table_problem
from nextlabel.campaign.rates import table_rho
from nextlabel.campaign.rows import CampaignRow
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.crowd.copying import find_copying
from nextlabel.crowd.fit import CrowdLabels, fit_crowd
from nextlabel.crowd.skill import accuracies
from nextlabel.errors import FileFormatError, TablesPendingError
from nextlabel.model.prior import Prior
from nextlabel.model.tables import prior_table, reward_table
from nextlabel.policies.allocation import Outlook
from nextlabel.policies.auto import Auto
from nextlabel.policies.crowd.allocator import GrowingCrowd
from nextlabel.policies.index import Index, solve_table
from nextlabel.policies.registry import make_policy
from nextlabel.policies.thompson import Thompson
from nextlabel.solve.index import FORMAT, IndexTable, sweep_size
from nextlabel.store.sql import SqlStore

if TYPE_CHECKING:
    from nextlabel.application.refits import BackgroundRefits

#: Bytes of tables that are kept; a set that is larger than that is kept alone.
MEMORY = 512 << 20

#: A log of more events than this is read outside of the transaction, if that is possible.
LONG_LOG = 5000

#: Seconds that tables take on an idle machine, roughly: for each state of an index's sweep, and for each prior of
#: other policies. Jobs are done in the order of their costs.
INDEX_SECONDS, OTHER_SECONDS, THOMPSON_SECONDS, AUTO_SECONDS = 2e-5, 0.03, 0.6, 0.5

#: How far the thread steps back behind those that answer workers.
NICE = 10

Key = tuple[str, int, int, tuple[object, ...], TableLoad]


class TableCache:
    """Policy tables by campaign settings, priors and load; one cache serves all campaigns of a process."""

    def __init__(self, store: SqlStore | None = None, memory: int = MEMORY) -> None:
        self._store = store
        self._tables: dict[Key, PolicyTables] = {}
        self._memory, self._kept = memory, 0
        self._lock = Lock()
        self._random = Random(0)
        self.jobs = Jobs("tables", nice=NICE)
        #: Stores what is made: the thread above would wait for the database's lock.
        self._writes = Jobs("table-store", nice=NICE)
        #: Refits of the policy ``crowd`` in the background, if there are any.
        self.refits: BackgroundRefits | None = None

    def ready(self, config: CampaignSettings, classes: Sequence[Prior], load: TableLoad | float) -> PolicyTables:
        """The tables for a load (rho alone for most policies), or the nearest that there are while those are made.

        A TablesPendingError if there are none.
        """
        key = _key(config, classes, load)
        tables = self._tables.get(key)
        if tables is not None:
            return tables
        with self._lock:
            near = [one for k, one in self._tables.items() if k[:-1] == key[:-1]]
        future = self.prepare(config, classes, load)
        if near:
            return min(near, key=lambda one: one.load.distance(key[-1]))
        if not future.done():
            raise TablesPendingError(future)
        return future.result()

    def has(self, config: CampaignSettings, classes: Sequence[Prior], load: TableLoad | float) -> bool:
        """Whether the tables are there; if not, they are made in the background."""
        return self.prepare(config, classes, load).done()

    def prepare(
        self, config: CampaignSettings, classes: Sequence[Prior], load: TableLoad | float
    ) -> Future[PolicyTables]:
        """The tables, made in the background if they are not there."""
        key, priors = _key(config, classes, load), tuple(classes)
        with self._lock:
            tables = self._tables.get(key)
        if tables is not None:
            return finished(tables)
        # The job counts for the campaign that it is for: campaigns with the same settings count as one.
        cost = work_of(config, priors, key[-1])
        return self.jobs.submit(key, lambda give_way: self._make(key, config, priors, give_way), config, cost)

    def crowd_ready(self, row: CampaignRow) -> None:
        """Return if a model of the campaign's crowd may be made here and now, else a TablesPendingError.

        Kernels have to be compiled, and a long log is read in the background, if anything is.
        """
        compiled = crowd_compiled()
        if not compiled.done():
            raise TablesPendingError(compiled)
        compiled.result()
        later = self.refit_later(row.id) if row.seq > LONG_LOG else None
        if later is not None:
            raise TablesPendingError(later)

    def refit_later(self, id: str) -> Future[None] | None:
        """The refit in the background, None if there are none (``refits``)."""
        return None if self.refits is None else self.refits.later(id)

    def close(self) -> None:
        """Stop making tables, and end the refit that is under way."""
        self.jobs.close()
        self._writes.close()
        if self.refits is not None:
            self.refits.close()

    def _make(self, key: Key, config: CampaignSettings, classes: Sequence[Prior], give_way: GiveWay) -> PolicyTables:
        tables, solved = make_tables(config, classes, key[-1], self._store, give_way)
        with self._lock:
            while self._tables and self._kept + tables.nbytes > self._memory:
                self._kept -= self._tables.pop(self._random.choice(list(self._tables))).nbytes
            self._tables[key] = tables
            self._kept += tables.nbytes
        if self._store is not None and not self._writes.closed.is_set():
            put = self._store.put
            for name, data in solved.items():
                self._writes.submit(name, lambda _, name=name, data=data: put(name, data))  # type: ignore[misc]
        return tables


def _key(config: CampaignSettings, classes: Sequence[Prior], load: TableLoad | float) -> Key:
    rules = (tuple(classes), config.threshold, config.reward, config.label_cost)
    at = as_load(load)
    at = at if config.follows_load else TableLoad(table_rho(at.rho))
    return config.policy, config.most_labels, config.most_in_flight, rules, at


def work_of(config: CampaignSettings, classes: Sequence[Prior], load: TableLoad | float) -> float:
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
    config: CampaignSettings, classes: Sequence[Prior], load: TableLoad, store: SqlStore | None, give_way: GiveWay
) -> tuple[PolicyTables, dict[str, bytes]]:
    """The tables for a load, and those of the index that are new, as ``load_or_solve_index`` returns them.

    ``give_way`` is called between two slices of the work: a few dozen sweeps of an index, or the tables of one prior.
    The tables of a policy of the user's own are made in one piece.
    """
    solved: dict[str, bytes] = {}
    policy = make_policy(config.policy)
    if isinstance(policy, Index):
        table, solved = load_or_solve_index(config, classes, load.rho, store, give_way)
        policy = Index(table)
    elif isinstance(policy, Auto):
        policy = Auto(lambda _: give_way())
    return PolicyTables.of(config, classes, load, policy, give_way), solved


def load_or_solve_index(
    config: CampaignSettings,
    classes: Sequence[Prior],
    rho: float,
    store: SqlStore | None = None,
    give_way: GiveWay = lambda: None,
) -> tuple[IndexTable, dict[str, bytes]]:
    """The index of every class, loaded or solved, and the tables that are new and should be stored, by name.

    Storing is left to the caller: whoever waits for the table may be in the transaction that storing would wait for.
    """
    solved: dict[str, bytes] = {}
    tables: list[IndexTable] = []
    for prior in classes:
        problem = table_problem(config, [prior], table_rho(rho))
        facts = [FORMAT, prior_table(prior), config.threshold, reward_table(config.reward), config.label_cost]
        text = json.dumps([*facts, table_rho(rho), ARRIVALS, LABELS_PER_TASK])
        name = hashlib.sha256(text.encode()).hexdigest()
        with tempfile.TemporaryDirectory() as folder:
            path, data = Path(folder) / "table.npz", None if store is None else store.get(name)
            table = None
            if data is not None:
                path.write_bytes(data)
                with suppress(FileFormatError):  # written by another version: solved again
                    table = IndexTable.load(path)
            if table is None:
                table = solve_table(problem, progress=lambda _: give_way())
                table.save(path)
                solved[name] = path.read_bytes()
        tables.append(table)
        give_way()
    every = tuple(one for table in tables for one in table.classes)
    return IndexTable(tables[0].tau, every, tables[0].budget, tables[0].left), solved


@cache
def crowd_compiled() -> Future[None]:
    """Done when the kernels are compiled; the first call begins with it."""
    jobs = Jobs("compile-crowd")
    compiled = jobs.submit("asks", lambda _: exercise())
    jobs.submit("reports", lambda _: exercise_reports())  # nobody who asks for a task waits for these
    return compiled


def exercise() -> None:
    """Take every step of a crowd once."""
    crowd = GrowingCrowd(np.array([0.5, 0.5]))
    crowd.add_tasks(np.zeros((2, 2)), 3, 3)
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
