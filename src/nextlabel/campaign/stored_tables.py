"""Index tables that are worked out once and kept, one a prior, so that neither a restart nor another process waits.

A table depends on the prior, the threshold, the reward and rho alone; seconds to a minute are saved by each that is
found. What is kept is a cache: it may be lost at any time.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from nextlabel.beliefs.prior import Prior
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.errors import FileFormatError
from nextlabel.policies.index import solve_table
from nextlabel.problem.problem import Problem
from nextlabel.problem.tables import prior_table, reward_table
from nextlabel.solve.index.table import FORMAT, IndexTable

#: Tables are made for so many arrivals, far past where their rows settle, and for so many labels a task: past two and
#: a half times as many and four the index without delay takes over (``solve.truncation.make_cut``).
ARRIVALS, LABELS_A_TASK = 20_000, 2.4


class TableStore(Protocol):
    """Bytes by name."""

    def kept(self, name: str) -> bytes | None:
        """What was kept under that name."""
        ...

    def keep(self, name: str, data: bytes) -> None:
        """Keep it, unless another process was first."""
        ...


class NoTableStore:
    """Keeps nothing."""

    def kept(self, name: str) -> bytes | None:
        """Nothing."""
        return None

    def keep(self, name: str, data: bytes) -> None:
        """Nothing happens."""


def load_or_solve_index(
    config: CampaignSettings, classes: Sequence[Prior], rho: float, table_store: TableStore
) -> tuple[IndexTable, dict[str, bytes]]:
    """The index of every class, found or worked out, and what is worth keeping of it.

    Keeping is left to the caller: whoever waits for the table may be in the transaction that keeping would wait for.
    """
    fresh: dict[str, bytes] = {}
    tables = [_of_class(config, prior, rho, table_store, fresh) for prior in classes]
    first = tables[0]
    every = tuple(one for table in tables for one in table.classes)
    return IndexTable(first.tau, every, first.budget, first.left), fresh


def _of_class(
    config: CampaignSettings, prior: Prior, rho: float, table_store: TableStore, fresh: dict[str, bytes]
) -> IndexTable:
    described = [FORMAT, prior_table(prior), config.threshold, reward_table(config.reward), config.label_cost, rho]
    name = hashlib.sha256(json.dumps([*described, ARRIVALS, LABELS_A_TASK]).encode()).hexdigest()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.npz"
        data = table_store.kept(name)
        if data is not None:
            path.write_bytes(data)
            try:
                return IndexTable.load(path)
            except FileFormatError:
                pass  # written by another version: made again below
        table = solve_table(table_problem(config, [prior], rho))
        table.save(path)
        fresh[name] = path.read_bytes()
    return table


def table_problem(config: CampaignSettings, classes: Sequence[Prior], rho: float) -> Problem:
    """The problem whose tables a campaign uses; neither its tasks nor its budget enter them."""
    each = max(int(ARRIVALS / LABELS_A_TASK / len(classes)), 1)
    entries = tuple(config.class_of(prior, each) for prior in classes)
    return Problem(entries, ARRIVALS, rho, 1.0, label_cost=config.label_cost)
