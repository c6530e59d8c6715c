"""The leases and workers of a campaign inside a transaction."""

from __future__ import annotations

from nextlabel.campaign.rows import CampaignRow, LeaseRow, WorkerRow
from nextlabel.store import statements as sql
from nextlabel.store.cached_rows import CachedRows
from nextlabel.store.expiries import Expiries
from nextlabel.store.ledger_log import LedgerLog
from nextlabel.store.prepared import Runner
from nextlabel.store.row_mapping import lease_from, worker_from


class LedgerLeases(LedgerLog):
    """Leases, when they expire, and what each worker did."""

    def __init__(self, runner: Runner, number: int, row: CampaignRow, cached: CachedRows) -> None:
        super().__init__(runner, number, row, cached)
        self.expiries = Expiries(self, runner)

    def add_lease(self, lease: LeaseRow) -> None:
        """A new lease."""
        self.rows.add_lease(lease)
        self.expiries.note(lease)

    def save_lease(self, lease: LeaseRow) -> None:
        """A lease that has changed."""
        self.rows.save_lease(lease)
        self.expiries.note(lease)

    def lease(self, id: str) -> LeaseRow | None:
        """A lease by id."""
        if id not in self.rows.leases:
            found = self._runner.one(sql.lease_by_id, self._parameters(id=id))
            if found is None:
                return None
            self.rows.know_lease(lease_from(found))
        return self.rows.leases[id]

    def open_leases(self, worker: str) -> list[LeaseRow]:
        """The worker's leases that are out."""
        if worker not in self.rows.open:
            found = self._runner.all(sql.open_leases, self._parameters(worker=worker))
            self.rows.know_open(worker, [lease_from(row) for row in found])
        leases = self.rows.open[worker]
        return sorted(leases.values(), key=lambda lease: lease.seq) if leases else []

    def expired(self, now: float, limit: int) -> list[LeaseRow]:
        """Leases whose time is over."""
        return self.expiries.expired(now, limit)

    def next_expiry(self) -> float | None:
        """When the next lease expires."""
        return self.expiries.next()

    def shorten_leases(self, given: float, until: float) -> None:
        """No lease expires after ``until``."""
        self.write_rows()
        self._runner.write(sql.shorten_leases, [{"b_campaign": self._number, "until": until}])
        self._runner.write(sql.backdate_leases, [{"b_campaign": self._number, "given": given}])
        self.rows.forget_leases()
        self.cached.expiry = None

    def labels_of(self, worker: str, dropped: bool, after: int, limit: int) -> list[LeaseRow]:
        """Leases of a worker with labels that were bought."""
        self.write_rows()
        which = self._parameters(worker=worker, dropped=dropped, after=after, many=limit)
        return [self.rows.know_lease(lease_from(row)) for row in self._runner.all(sql.labels_of, which)]

    def find_worker(self, worker: str) -> WorkerRow | None:
        """A worker's tally, if there is one."""
        found = self.worker(worker)  # one that is made here is not written unless it is changed
        return None if found.given == 0 else found

    def worker(self, worker: str) -> WorkerRow:
        """A worker's tally."""
        if worker not in self.rows.workers:
            found = self._runner.one(sql.worker_by_name, self._parameters(worker=worker))
            self.rows.know_worker(WorkerRow(worker) if found is None else worker_from(found))
        return self.rows.tally(worker)

    def _forget_questions(self) -> None:
        super()._forget_questions()
        self.expiries.forget()
