"""Campaigns in a database, the same statements for SQLite and PostgreSQL.

A transaction locks the campaign's row (SQLite: the one write lock), so that commands on one campaign follow one another
in all processes. Events are written with what they change in that transaction, all rows of a table by one statement at
its end. A transaction may have several campaigns: what their commands need is read once, for all of them. A campaign's
row, the counts of ``states``, the priors, open leases and the tasks and workers that were seen last are remembered
between transactions, and are true as long as the campaign's last event is one that this process wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager

from sqlalchemy import Connection, insert
from sqlalchemy.exc import IntegrityError

from nextlabel.campaign.deletions import taken_by_deleted
from nextlabel.campaign.needs import Need
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.campaign.verification import Verification
from nextlabel.errors import ConflictError, GoneError
from nextlabel.store import questions
from nextlabel.store import statements as sql
from nextlabel.store.bulk import together
from nextlabel.store.cached_rows import CachedRows
from nextlabel.store.campaign_reads import CampaignReads, found_campaign
from nextlabel.store.engine import LOCK_WAIT_S
from nextlabel.store.memory_ledger import new_row
from nextlabel.store.prefetch import prefetch
from nextlabel.store.prepared import Row, Runner
from nextlabel.store.remembered_campaigns import RememberedCampaigns
from nextlabel.store.row_mapping import (
    ID,
    NUMBER,
    SEQ,
    campaign_from,
    campaign_values,
)
from nextlabel.store.sql_access import SqlAccess
from nextlabel.store.sql_deletions import SqlDeletions
from nextlabel.store.sql_imports import SqlImports
from nextlabel.store.sql_ledger import SqlLedger
from nextlabel.store.sql_visits import SqlVisits
from nextlabel.store.sql_webhooks import SqlWebhooks
from nextlabel.store.tables import campaigns
from nextlabel.store.verify import verify


class SqlStore(CampaignReads):
    """Campaigns of one database."""

    def __init__(self, url: str, lock_wait_s: float = LOCK_WAIT_S, *, create: bool = True) -> None:
        super().__init__(url, lock_wait_s, create=create)
        self._remembered = RememberedCampaigns()
        self.access = SqlAccess(self._read, self._write)
        self.visits = SqlVisits(self._read, self._write)
        self.imports = SqlImports(self._read, self._write)
        self.webhooks = SqlWebhooks(self._read, self._write)
        self.deletions = SqlDeletions(self._read, self._write, self._number_and_rows, self._remembered.forget)

    @contextmanager
    def create(self, id: str, config: CampaignSettings, now: float) -> Iterator[SqlLedger]:
        """A new campaign."""
        row = new_row(id, config, now)
        with self._write() as connection:
            try:
                found = connection.execute(insert(campaigns).values(campaign_values(row)).returning(campaigns.c.number))
                number = int(found.scalar_one())
            except IntegrityError:
                raise ConflictError(f"there is a campaign {id!r} already.", "Choose another id.") from None
            if connection.execute(sql.deleted_at, {"id": id}).scalar() is not None:
                raise taken_by_deleted(id)
            with closing(Runner(connection)) as runner:
                ledger = SqlLedger(runner, number, row, CachedRows())
                yield ledger
                ledger.flush()
        self._remembered.keep(ledger)
        self._statistics.note(ledger.row)

    @contextmanager
    def transaction(self, id: str, remembered: bool = True) -> Iterator[SqlLedger]:
        """The campaign, locked; without ``remembered``, every row is read again."""
        with self._committed() as kept, self._write() as connection, closing(Runner(connection)) as runner:
            ledger = self._ledger(runner, self._lock_campaign(runner, id), remembered)
            before = ledger.row.seq
            try:
                yield ledger
                ledger.flush()
            except BaseException:
                self._remembered.keep_crowd(ledger, before)
                raise
            kept.append(self._remembered.keep(ledger))

    @contextmanager
    def transactions(self, needs: Mapping[str, Sequence[Need]]) -> Iterator[dict[str, SqlLedger]]:
        """Campaigns by id, locked, and what commands need of them read; those that others hold are left out."""
        with self._committed() as kept, self._write() as connection, closing(Runner(connection)) as runner:
            ledgers = {row[ID]: self._ledger(runner, row) for row in self._lock_campaigns(runner, sorted(needs))}
            before = {id: ledger.row.seq for id, ledger in ledgers.items()}
            try:
                prefetch(runner, [(ledger, needs[id]) for id, ledger in ledgers.items()])
                yield ledgers
                runner.write_all(together([ledger.take() for ledger in ledgers.values()]))
            except BaseException:
                for id, ledger in ledgers.items():
                    self._remembered.keep_crowd(ledger, before[id])
                raise
            kept.extend(self._remembered.keep(ledger) for ledger in ledgers.values())

    def verify(self, id: str, repair: bool, progress: Callable[[float], None] | None = None) -> Verification:
        """Hold every row against the events, and repair those that do not follow from them."""
        return verify(self, id, repair, progress)

    def _lock_campaign(self, runner: Runner, id: str) -> Row:
        """The campaign, locked; a server says what time it is."""
        try:
            if self._server_clock is None:
                return found_campaign(runner, sql.lock_campaign, id)
            *row, seconds = found_campaign(runner, sql.lock_campaign_with_time, id)
        except GoneError:  # deleted by another process
            self._remembered.forget(id)
            raise
        self._server_clock.hear(float(seconds))
        return tuple(row)

    def _lock_campaigns(self, runner: Runner, ids: list[str]) -> list[Row]:
        """The campaign, locked; of several those that are there and that nobody else has locked."""
        if len(ids) == 1:
            return [self._lock_campaign(runner, ids[0])]
        if self._server_clock is None:
            return runner.ask(questions.campaigns_by_id("sqlite"), {"ids": ids})
        found = runner.ask(questions.campaigns_by_id("postgresql"), {"ids": ids})
        for row in found[-1:]:
            self._server_clock.hear(float(row[-1]))
        return [row[:-1] for row in found]

    def _number_and_rows(self, connection: Connection, id: str) -> tuple[int, int]:
        """A campaign, locked: its number, and about how many rows it has."""
        with closing(Runner(connection)) as runner:
            number, row = campaign_from(self._lock_campaign(runner, id))
        return number, row.tasks + row.rules.hidden + row.given + row.seq

    def _ledger(self, runner: Runner, found: Row, remembered: bool = True) -> SqlLedger:
        """A ledger with what is remembered and still true; it is given back when the transaction has succeeded."""
        cached = self._remembered.take(found[ID], found[SEQ], remembered)
        row = campaign_from(found)[1] if cached.row is None else cached.row
        return SqlLedger(runner, int(found[NUMBER]), row, cached)

    @contextmanager
    def _committed(self) -> Iterator[list[CachedRows]]:
        """What is remembered of a transaction; once it is committed, tables may be larger by much."""
        with self._remembered.kept_if_committed() as kept:
            yield kept
        for cached in kept:
            if cached.row is not None:
                self._statistics.note(cached.row)
