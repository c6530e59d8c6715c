"""One campaign inside one transaction: what is known of it, and how all that has changed is written at the end.

The parts of a ledger stand on one another: this one, the log (``store.ledger_log``), leases and workers
(``store.ledger_leases``), and tasks (``store.sql_ledger``).
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection

from nextlabel.campaign.crowd_model import CrowdModel
from nextlabel.campaign.rows import CampaignRow, Group
from nextlabel.store import statements as sql
from nextlabel.store.bulk import SAVE_CAMPAIGNS, SAVE_STATES, BulkWrite, Values
from nextlabel.store.cached_rows import CachedRows
from nextlabel.store.held_counts import HeldCounts
from nextlabel.store.ledger_rows import LedgerRows
from nextlabel.store.prepared import Runner
from nextlabel.store.row_mapping import changing_columns


class LedgerState:
    """The campaign's row, its tasks by group, and the rows that were read or changed."""

    def __init__(self, runner: Runner, number: int, row: CampaignRow, cached: CachedRows) -> None:
        self.row, self.cached = row, cached
        self.rows = LedgerRows(number) if cached.rows is None else cached.rows
        self.held_counts = HeldCounts(runner, self.rows)
        self._number, self._runner = number, runner
        self._changed_groups: set[Group] = set()
        self._as_loaded: Values = cached.stored or (() if row.seq == 0 else changing_columns(row))

    @property
    def connection(self) -> Connection:
        """The connection that the transaction is on."""
        return self._runner.connection

    @property
    def number(self) -> int:
        """The campaign's number in the database."""
        return self._number

    def forget_cached(self) -> None:
        """Remember nothing of the rows that were read before."""
        self.held_counts.forget()
        self.cached, self._changed_groups = CachedRows(), set()
        self.rows.forget()
        self._forget_questions()

    @property
    def crowd(self) -> CrowdModel | None:
        """What this process knows of the crowd."""
        return self.cached.crowd

    @crowd.setter
    def crowd(self, model: CrowdModel | None) -> None:
        self.cached.crowd = model

    def groups(self) -> dict[Group, int]:
        """Tasks in each state."""
        return self._groups()

    def _groups(self) -> dict[Group, int]:
        if self.cached.groups is None:
            found = self._runner.all(sql.states_of, self._parameters())
            self.cached.groups = {(klass, node, w): count for klass, node, w, count in found}
        return self.cached.groups

    def flush(self) -> None:
        """Write all that is pending; the transaction's end makes it durable."""
        self._runner.write_all(self.take())

    def take(self) -> dict[BulkWrite, list[Values]]:
        """All that is to be written; the caller does so."""
        rows = self.rows
        pending = {
            **self.held_counts.take(),
            **rows.take_tasks(),
            **rows.take_leases(),
            **rows.take_events(),
            **rows.take_workers(),
        }
        pending[SAVE_STATES] = self._take_groups()
        values = changing_columns(self.row)
        if values != self._as_loaded:
            pending[SAVE_CAMPAIGNS] = [(self._number, *values)]
            self._as_loaded = values
        self.cached.seq = self.row.seq
        self._forget_questions()
        return pending

    def remember(self) -> CachedRows:
        """What is known of the campaign now that the transaction has succeeded.

        Ranked tasks are not kept: a repair may write their scores without an event.
        """
        if self.row.rules.ranked:
            self.rows.forget_tasks()
        self.rows.trim()
        self.cached.row, self.cached.rows, self.cached.stored = self.row, self.rows, self._as_loaded
        return self.cached

    def _take_groups(self) -> list[Values]:
        groups = self.cached.groups
        if groups is None:  # nothing has moved since they were forgotten
            return []
        rows: list[Values] = [(self._number, *group, groups[group]) for group in sorted(self._changed_groups)]
        for group in self._changed_groups:
            if groups[group] == 0:
                del groups[group]
        self._changed_groups = set()
        return rows

    def write_rows(self) -> None:
        """Write tasks and leases, for a question that needs all of them as they are."""
        self._runner.write_all({**self.held_counts.take(), **self.rows.take_tasks(), **self.rows.take_leases()})
        self._forget_questions()

    def _parameters(self, **more: Any) -> dict[str, Any]:
        return {"campaign": self._number, **more}

    def _forget_questions(self) -> None:
        """Stored rows have changed: parts that remember what they asked forget it."""
