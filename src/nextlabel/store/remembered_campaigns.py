"""What a process remembers of campaigns between transactions, and how much of it.

Whoever begins a transaction takes what is remembered of its campaign, and gives it back when it has succeeded. It is
true as long as the campaign's last event is the one that it was given back with.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from nextlabel.store.sql_ledger import CachedRows, SqlLedger

#: Rows of all campaigns that are remembered between transactions; they have small payloads.
MOST_ROWS = 50_000


class RememberedCampaigns:
    """Campaigns by id, those that were used last at the end; ``size`` is how many rows are remembered of all."""

    def __init__(self) -> None:
        self.campaigns: dict[str, CachedRows] = {}
        self.size = 0
        self._lock = Lock()

    def take(self, id: str, seq: int, remembered: bool) -> CachedRows:
        """What is still true of a campaign whose last event is ``seq``; without ``remembered``, no rows."""
        with self._lock:
            cached = self._pop(id)
        if cached is None or cached.seq > seq:  # its transaction was not committed
            return CachedRows()
        if cached.seq != seq or not remembered:
            return CachedRows(crowd=cached.crowd, searches=cached.searches)
        return cached

    def keep(self, ledger: SqlLedger) -> CachedRows:
        """Remember what a transaction that is about to end knows."""
        cached = ledger.remember()
        self._keep(ledger.row.id, cached)
        return cached

    def keep_crowd(self, ledger: SqlLedger, seq: int) -> None:
        """The transaction has failed: keep what is known of the crowd if it rests on nothing that was undone."""
        if ledger.crowd is not None and ledger.crowd.seq <= seq:
            self._keep(ledger.row.id, CachedRows(crowd=ledger.crowd))

    def forget(self, id: str) -> None:
        """A campaign was deleted."""
        with self._lock:
            self._pop(id)

    @contextmanager
    def kept_if_committed(self) -> Iterator[list[CachedRows]]:
        """What is remembered before the end of a transaction, so that whoever gets the lock next finds it."""
        kept: list[CachedRows] = []
        try:
            yield kept
        except BaseException:
            with self._lock:
                for id in [id for id, cached in self.campaigns.items() if any(cached is one for one in kept)]:
                    self._pop(id)
            raise

    def _keep(self, id: str, cached: CachedRows) -> None:
        """Remember a campaign; where there are too many rows, those of the campaigns that were used longest ago go.

        Another thread may have had its transaction, and this turn, since this one's ended: then its knowledge is newer.
        """
        with self._lock:
            present = self.campaigns.get(id)
            if present is not None and present.seq > cached.seq:
                return
            self._pop(id)
            self.campaigns[id] = cached
            self.size += _size(cached)
            if self.size > MOST_ROWS:
                self._forget_oldest()

    def _pop(self, id: str) -> CachedRows | None:
        cached = self.campaigns.pop(id, None)
        if cached is not None:
            self.size -= _size(cached)
        return cached

    def _forget_oldest(self) -> None:
        for oldest in self.campaigns.values():
            self.size -= _size(oldest)
            oldest.rows = None
            if self.size <= 0.75 * MOST_ROWS:
                break


def _size(cached: CachedRows) -> int:
    return 0 if cached.rows is None else cached.rows.size
