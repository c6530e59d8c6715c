"""The tables of a policy: made slice by slice, those of the index solved once for each prior and stored.

An index table depends on the prior, the threshold, the reward and rho alone, so that neither a restart nor another
process waits for one that is stored. The stored tables are a cache, which may be lost at any time.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from nextlabel.beliefs.prior import Prior
from nextlabel.campaign.policy_tables import ARRIVALS, LABELS_PER_TASK, Load, PolicyTables, as_load, table_problem
from nextlabel.campaign.rates import table_rho
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.campaigns.table_maker import GiveWay
from nextlabel.errors import FileFormatError
from nextlabel.policies.auto import Auto
from nextlabel.policies.index import Index, solve_table
from nextlabel.policies.registry import make_policy
from nextlabel.policies.thompson import Thompson
from nextlabel.problem.tables import prior_table, reward_table
from nextlabel.solve.index import FORMAT, IndexTable, sweep_size

#: Seconds that tables take on an idle machine, roughly: for each state of an index's sweep, and for each prior of
#: other policies. Orders are made in the order of their costs (``table_maker``).
INDEX_SECONDS, OTHER_SECONDS, THOMPSON_SECONDS, AUTO_SECONDS = 2e-5, 0.03, 0.6, 0.5


class TableStore(Protocol):
    """Stores tables as bytes, by name."""

    def load_table(self, name: str) -> bytes | None:
        """The table of that name, if it is stored."""
        ...

    def save_table(self, name: str, data: bytes) -> None:
        """Store a table, unless another process was first."""
        ...


class NoTableStore:
    """Stores nothing."""

    def load_table(self, name: str) -> bytes | None:
        """Nothing is stored."""
        return None

    def save_table(self, name: str, data: bytes) -> None:
        """Nothing happens."""


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
        data = table_store.load_table(name)
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
