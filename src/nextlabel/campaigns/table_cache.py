"""The tables of all campaigns of a process, made in the background (``table_maker``) and kept while memory allows.

``ready`` does not wait while there are tables near enough: those that are missing are made in the background, and the
nearest in load are used meanwhile. Each lease's event says which were used. Tables for more than MOST_RHO labels in
flight are those for MOST_RHO (``campaign.rates``).

Sets of tables are kept up to MEMORY bytes together; then any of them goes, by lot: whatever the order in which
campaigns are asked, some of the sets that are wanted are there. One that is wanted again is loaded from the store.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from random import Random
from threading import Lock
from typing import Protocol

from nextlabel.beliefs.prior import Prior
from nextlabel.campaign.policy_tables import Load, PolicyTables, as_load
from nextlabel.campaign.rates import table_rho
from nextlabel.campaign.rows import CampaignRow
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.campaigns.crowd_kernels import crowd_compiled
from nextlabel.campaigns.stored_tables import NoTableStore, TableStore, make_tables, work_of
from nextlabel.campaigns.table_maker import GiveWay, TableMaker

#: Bytes of tables that are kept; a set that is larger than that is kept alone.
MEMORY = 512 << 20
#: A log of more events than this is read outside of the transaction, if that is possible.
LONG_LOG = 5000


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
            self._maker.write(self._table_store.save_table, name, data)
        return tables

    def _make_room(self, wanted: int) -> None:
        while self._tables and self._kept + wanted > self._memory:
            self._kept -= self._tables.pop(self._lot.choice(list(self._tables))).nbytes


def _key(config: CampaignSettings, classes: Sequence[Prior], load: Load | float) -> Key:
    rules = (tuple(classes), config.threshold, config.reward, config.label_cost)
    at = as_load(load)
    at = at if config.follows_load else Load(table_rho(at.rho))
    return config.policy, config.most_labels, config.most_in_flight, rules, at
