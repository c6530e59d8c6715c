"""The tables of all campaigns of a process, made in a background thread and kept.

``ready`` does not wait while there are tables near enough: those that are missing are made in the background, and the
nearest in rho are used meanwhile. Each lease's event says which were used. Cost: 0.1 s to a minute per set, once.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from threading import Lock

from nextlabel.beliefs.prior import Prior
from nextlabel.campaign.policy_tables import PolicyTables
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.campaigns.crowd_kernels import crowd_compiled
from nextlabel.campaigns.stored_tables import NoTableStore, TableStore, load_or_solve_index
from nextlabel.policies.index import Index
from nextlabel.policies.registry import make_policy

#: Sets of tables that are kept.
MOST_KEPT = 64
#: How far the thread that makes tables steps back.
NICE = 10

Key = tuple[str, int, int, tuple[object, ...], float]


class TableCache:
    """Policy tables by campaign settings, priors and rho; one cache serves all campaigns of a process."""

    def __init__(self, table_store: TableStore | None = None) -> None:
        self._table_store = table_store if table_store is not None else NoTableStore()
        self._tables: dict[Key, PolicyTables] = {}
        self._under_way: dict[Key, Future[PolicyTables]] = {}
        self._lock = Lock()
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="tables", initializer=_lower_priority)

    def ready(self, config: CampaignSettings, classes: Sequence[Prior], rho: float) -> PolicyTables:
        """The tables for ``rho``, or the nearest that there are while those are made."""
        key = _key(config, classes, rho)
        with self._lock:
            tables = self._tables.get(key)
            if tables is not None:
                return tables
            near = [one for k, one in self._tables.items() if k[:-1] == key[:-1]]
        self.prepare(config, classes, rho)
        if near:
            return min(near, key=lambda one: abs(math.log2(one.rho / rho)))
        return self.wait(config, classes, rho)

    def has(self, config: CampaignSettings, classes: Sequence[Prior], rho: float) -> bool:
        """Whether the tables are there; if not, they are made in the background."""
        with self._lock:
            if _key(config, classes, rho) in self._tables:
                return True
        self.prepare(config, classes, rho)
        return False

    def prepare(self, config: CampaignSettings, classes: Sequence[Prior], rho: float) -> None:
        """Make tables in the background."""
        key = _key(config, classes, rho)
        with self._lock:
            if key in self._tables or key in self._under_way:
                return
            self._under_way[key] = self._pool.submit(self._make, key, config, tuple(classes), rho)

    def wait(self, config: CampaignSettings, classes: Sequence[Prior], rho: float) -> PolicyTables:
        """The tables, made now if they are not there."""
        tables = self.pending(config, classes, rho)
        return tables.result() if isinstance(tables, Future) else tables

    def pending(
        self, config: CampaignSettings, classes: Sequence[Prior], rho: float
    ) -> PolicyTables | Future[PolicyTables]:
        """The tables, or the future that will have them."""
        self.prepare(config, classes, rho)
        key = _key(config, classes, rho)
        with self._lock:
            tables, future = self._tables.get(key), self._under_way.get(key)
        if tables is not None:
            return tables
        assert future is not None
        return future

    def crowd_ready(self) -> None:
        """Return once the policy ``crowd`` is compiled."""
        crowd_compiled().result()

    def close(self) -> None:
        """Stop making tables."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _make(self, key: Key, config: CampaignSettings, classes: Sequence[Prior], rho: float) -> PolicyTables:
        solved: dict[str, bytes] = {}
        try:
            policy = make_policy(config.policy)
            if isinstance(policy, Index):
                table, solved = load_or_solve_index(config, classes, rho, self._table_store)
                policy = Index(table)
            tables = PolicyTables.of(config, classes, rho, policy)
        except BaseException:
            with self._lock:
                self._under_way.pop(key, None)
            raise
        with self._lock:
            while len(self._tables) >= MOST_KEPT:
                self._tables.pop(next(iter(self._tables)))
            self._tables[key] = tables
            self._under_way.pop(key, None)
        for name, data in solved.items():
            self._pool.submit(self._table_store.save_table, name, data)  # not here: see ``load_or_solve_index``
        return tables


def _key(config: CampaignSettings, classes: Sequence[Prior], rho: float) -> Key:
    rules = (tuple(classes), config.threshold, config.reward, config.label_cost)
    return config.policy, config.most_labels, config.most_in_flight, rules, rho


def _lower_priority() -> None:
    """Let this thread's work wait for that of workers who ask, where the system has priorities of threads."""
    if hasattr(os, "setpriority"):
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)
