"""Which leases of a campaign expire next: those as they are stored, and those that this transaction has touched.

While no lease can have expired, which is nearly always, no question is asked.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from nextlabel.campaign.rows import LeaseRow
from nextlabel.campaign.transitions import LEASED
from nextlabel.store import questions
from nextlabel.store import statements as sql
from nextlabel.store.row_mapping import lease_from

if TYPE_CHECKING:
    from nextlabel.store.ledger_leases import LedgerLeases
    from nextlabel.store.prepared import Runner

#: Stored leases that are asked for beyond those that were touched.
MORE = 16


class FirstExpiries(NamedTuple):
    """Open leases that expire first, as they are stored, at most ``many``: id and time."""

    many: int
    found: list[tuple[Any, ...]]


class Expiries:
    """The expiries of one ledger."""

    def __init__(self, ledger: LedgerLeases, runner: Runner) -> None:
        self._ledger, self._runner = ledger, runner
        self._first: FirstExpiries | None = None

    def forget(self) -> None:
        """Rows were written: what was asked before may no longer be true."""
        self._first = None

    def note(self, lease: LeaseRow) -> None:
        """A lease has changed."""
        cached = self._ledger.cached
        if cached.expiry is not None and lease.status == LEASED:
            cached.expiry = min(cached.expiry, lease.expires_at)

    def expired(self, now: float, limit: int) -> list[LeaseRow]:
        """Leases whose time is over."""
        ledger = self._ledger
        if ledger.cached.expiry is not None and now < ledger.cached.expiry:
            return []
        expiry = self.next()
        ledger.cached.expiry = math.inf if expiry is None else expiry
        if now < ledger.cached.expiry:
            return []
        ledger.write_rows()
        found = self._runner.all(sql.expired_leases, {"campaign": ledger.number, "now": now, "many": limit})
        return [ledger.rows.know_lease(lease_from(row)) for row in found]

    def next(self) -> float | None:
        """When the next lease expires."""
        rows = self._ledger.rows
        stored = self._next_stored(rows.touched_leases)
        times = [lease.expires_at for lease in rows.open_touched()]
        return min(times if stored is None else [*times, stored], default=None)

    def _next_stored(self, touched: set[str]) -> float | None:
        """When the first of the leases expires that are stored as they are."""
        while True:
            if self._first is not None:
                for id, at in self._first.found:
                    if id not in touched:
                        return float(at)
                if len(self._first.found) < self._first.many:
                    return None
            many = len(touched) + MORE
            question = questions.first_expiries(self._runner.dialect_name)
            self._first = FirstExpiries(
                many, self._runner.ask(question, {"campaign": self._ledger.number, "many": many})
            )
