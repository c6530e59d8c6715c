"""Index tables, solved once for each prior and stored, so that neither a restart nor another process waits for them.

A table depends on the prior, the threshold, the reward and rho alone; each one found saves seconds to a minute. The
stored tables are a cache, which may be lost at any time.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from nextlabel.beliefs.prior import Prior
from nextlabel.campaign.policy_tables import ARRIVALS, LABELS_PER_TASK, table_problem
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.errors import FileFormatError
from nextlabel.policies.index import solve_table
from nextlabel.problem.tables import prior_table, reward_table
from nextlabel.solve.index.table import FORMAT, IndexTable


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


def load_or_solve_index(
    config: CampaignSettings, classes: Sequence[Prior], rho: float, table_store: TableStore
) -> tuple[IndexTable, dict[str, bytes]]:
    """The index of every class, loaded or solved, and the tables that are new and should be stored, by name.

    Storing is left to the caller: whoever waits for the table may be in the transaction that storing would wait for.
    """
    solved: dict[str, bytes] = {}
    tables = [_of_class(config, prior, rho, table_store, solved) for prior in classes]
    first = tables[0]
    every = tuple(one for table in tables for one in table.classes)
    return IndexTable(first.tau, every, first.budget, first.left), solved


def _of_class(
    config: CampaignSettings, prior: Prior, rho: float, table_store: TableStore, solved: dict[str, bytes]
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
        table = solve_table(table_problem(config, [prior], rho))
        table.save(path)
        solved[name] = path.read_bytes()
    return table
