"""The policy at work: score tables for a campaign's classes, and the group that the next worker gets.

Tables depend on the policy, the priors and rho alone, not on the tasks or the budget, so that they are worked out once
and kept. ``ready`` never waits: tables that are missing are made in the background and those nearest in rho are used
meanwhile; what a lease was chosen by is written on it, so that every choice can be repeated.
Guarantee: the choice of ``kernels.choice``, which simulations use, for the same groups, n and uniforms.
Cost: a visit to each group that has tasks; tables 0.1 s to a minute, once.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Lock

import numpy as np

from nextlabel.arrays import Ints
from nextlabel.beliefs.prior import Prior
from nextlabel.campaign.chance import TIES, chance, draw_key
from nextlabel.campaign.rows import Group
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.campaign.stored_tables import NoTableStore, TableStore, load_or_solve_index, table_problem
from nextlabel.kernels.choice import Lookup, Tables, look_up
from nextlabel.kernels.choose import choose
from nextlabel.kernels.rollout import World
from nextlabel.policies.base import Setting
from nextlabel.policies.index import Index
from nextlabel.policies.registry import make_policy
from nextlabel.policies.rollout_arrays import make_tables, make_world

#: Sets of tables that are kept.
MOST_KEPT = 64
#: How far the thread that makes tables steps back.
NICE = 10
#: Answers of ``Seat.choose`` when it has no group.
NO_ROOM, BELOW_PRICE = "no room", "below price"

Key = tuple[str, int, int, tuple[object, ...], float]


@dataclass(slots=True)
class PolicyTables:
    """Tables of one policy for some classes at one rho."""

    rho: float
    world: World
    tables: Tables
    lookup: Lookup
    least: float
    start: Ints
    nodes: int
    members: Ints
    fresh: dict[str, bytes]  # worth keeping, by name
    lock: Lock = field(default_factory=Lock)

    @classmethod
    def of(
        cls, config: CampaignSettings, classes: Sequence[Prior], rho: float, table_store: TableStore
    ) -> PolicyTables:
        """Find or solve the tables."""
        problem = table_problem(config, classes, rho)
        setting = Setting.of(problem, config.most_labels, config.most_in_flight)
        policy = make_policy(config.policy)
        fresh: dict[str, bytes] = {}
        if isinstance(policy, Index):
            table, fresh = load_or_solve_index(config, classes, rho, table_store)
            policy = Index(table)
        world, tables = make_world(setting, True), make_tables(setting, policy)
        lookup = look_up(tables, world.level, world.limit, world.child)
        sizes = [view.nodes for view in setting.views]
        start = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
        least = config.label_cost - tables.tied if config.label_cost > 0 else -math.inf
        states = tables.static.shape[0] * tables.static.shape[1]
        return cls(rho, world, tables, lookup, least, start, int(sum(sizes)), np.zeros(states, dtype=np.int64), fresh)

    def choose(
        self, groups: Mapping[Group, int], barred: Iterable[Group], n: int, ell: int, seed: int, number: int
    ) -> Group | str:
        """The group that lease ``number`` goes to; ``n`` labels are left and ``ell`` were given out before."""
        shut = set(barred)
        flight = self.tables.static.shape[0] - 1  # a task may hold more after an answer was taken back: no room there
        some = [(g, count) for g, count in groups.items() if count > 0 and g[2] < flight and g not in shut]
        if not some:
            return NO_ROOM
        table = np.array([group for group, _ in some], dtype=np.int64)
        states = table[:, 2] * self.nodes + self.start[table[:, 0]] + table[:, 1]
        order = np.argsort(states)  # one order, whatever order the groups came in
        active = np.append(states[order], len(some))
        u = chance(seed, TIES, number)
        with self.lock:
            self.members[states] = [count for _, count in some]
            found = choose(
                self.tables, self.lookup, self.world.level, self.world.child, active, self.members, n, ell,
                draw_key(seed), u, self.least, np.zeros(self.tables.planned.shape[1]),
                np.zeros(len(active)),
            )  # fmt: skip
            self.members[states] = 0
        if found < 0:
            return NO_ROOM if found == -1 else BELOW_PRICE
        return some[int(np.flatnonzero(states == found)[0])][0]


class TableCache:
    """Seats by what they are for; one desk serves all campaigns of a process."""

    def __init__(self, table_store: TableStore | None = None) -> None:
        self._shelf = table_store if table_store is not None else NoTableStore()
        self._seats: dict[Key, PolicyTables] = {}
        self._under_way: dict[Key, Future[PolicyTables]] = {}
        self._lock = Lock()
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="tables", initializer=_step_back)

    def ready(self, config: CampaignSettings, classes: Sequence[Prior], rho: float) -> PolicyTables:
        """The seat for ``rho``, or the nearest one that is there while it is made."""
        key = _key(config, classes, rho)
        with self._lock:
            tables_now = self._seats.get(key)
            if tables_now is not None:
                return tables_now
            near = [one for k, one in self._seats.items() if k[:-1] == key[:-1]]
        self.prepare(config, classes, rho)
        if near:
            return min(near, key=lambda one: abs(math.log2(one.rho / rho)))
        return self.wait(config, classes, rho)

    def has(self, config: CampaignSettings, classes: Sequence[Prior], rho: float) -> bool:
        """Whether the seat is there; if not it is made in the background."""
        with self._lock:
            if _key(config, classes, rho) in self._seats:
                return True
        self.prepare(config, classes, rho)
        return False

    def prepare(self, config: CampaignSettings, classes: Sequence[Prior], rho: float) -> None:
        """Make a seat in the background."""
        key = _key(config, classes, rho)
        with self._lock:
            if key in self._seats or key in self._under_way:
                return
            self._under_way[key] = self._pool.submit(self._make, key, config, tuple(classes), rho)

    def wait(self, config: CampaignSettings, classes: Sequence[Prior], rho: float) -> PolicyTables:
        """The seat, made now if it is not there."""
        found = self.pending(config, classes, rho)
        return found.result() if isinstance(found, Future) else found

    def pending(
        self, config: CampaignSettings, classes: Sequence[Prior], rho: float
    ) -> PolicyTables | Future[PolicyTables]:
        """The seat, or what will be it."""
        self.prepare(config, classes, rho)
        key = _key(config, classes, rho)
        with self._lock:
            tables_now, future = self._seats.get(key), self._under_way.get(key)
        if tables_now is not None:
            return tables_now
        assert future is not None
        return future

    def close(self) -> None:
        """Stop making tables."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _make(self, key: Key, config: CampaignSettings, classes: Sequence[Prior], rho: float) -> PolicyTables:
        try:
            tables_now = PolicyTables.of(config, classes, rho, self._shelf)
        except BaseException:
            with self._lock:
                self._under_way.pop(key, None)
            raise
        with self._lock:
            while len(self._seats) >= MOST_KEPT:
                self._seats.pop(next(iter(self._seats)))
            self._seats[key] = tables_now
            self._under_way.pop(key, None)
        for name, data in tables_now.fresh.items():
            self._pool.submit(self._shelf.keep, name, data)  # not here: see ``kept_index``
        tables_now.fresh = {}
        return tables_now


def _key(config: CampaignSettings, classes: Sequence[Prior], rho: float) -> Key:
    rules = (tuple(classes), config.threshold, config.reward, config.label_cost)
    return config.policy, config.most_labels, config.most_in_flight, rules, rho


def _step_back() -> None:
    """Have this thread's work wait for that of workers who ask, where the system knows priorities of threads."""
    if hasattr(os, "setpriority"):
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)
