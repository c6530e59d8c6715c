"""A campaign replayed from its log into a SQLite file of its own, whatever its size in little memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sqlalchemy import Connection, Engine, event, insert

from nextlabel.campaign import scoring
from nextlabel.campaign.events import Event
from nextlabel.campaign.rows import CampaignRow
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.campaign.task_moves import unranked
from nextlabel.campaign.verification import replay_event
from nextlabel.store.cached_rows import CachedRows
from nextlabel.store.engine import make_engine
from nextlabel.store.memory_ledger import new_row
from nextlabel.store.prepared import Runner
from nextlabel.store.row_mapping import campaign_values
from nextlabel.store.sql_ledger import SqlLedger
from nextlabel.store.tables import campaigns, create_tables


class Replay:
    """The rows that follow from the events so far; ``row`` is the campaign's."""

    def __init__(self, engine: Engine, row: CampaignRow) -> None:
        self.row = row
        self._engine = engine.execution_options(writes=True)
        self._cached = CachedRows()
        self._rank: Any = unranked
        with self._engine.begin() as connection:
            found = connection.execute(insert(campaigns).values(campaign_values(row)).returning(campaigns.c.number))
            self.number = int(found.scalar_one())

    def advance(self, events: Sequence[Event]) -> None:
        """Apply more events."""
        with self._ledger() as ledger:
            for one in events:
                replay_event(ledger, one, self._rank)

    def rank(self) -> None:
        """Compute the scores of all tasks, and from now on with each event."""
        self._rank = scoring.rank
        with self._ledger() as ledger:
            scoring.rank_all(ledger)

    def count_held(self, workers: Sequence[str]) -> None:
        """Count the tasks that these workers have held, from now on with each event."""
        with self._ledger() as ledger:
            for worker in workers:
                if not ledger.held_counts.read(worker):
                    ledger.held_counts.begin(worker)

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """To read the rows."""
        with self._engine.connect() as connection:
            yield connection

    @contextmanager
    def _ledger(self) -> Iterator[SqlLedger]:
        with self._engine.begin() as connection, closing(Runner(connection)) as runner:
            ledger = SqlLedger(runner, self.number, self.row, self._cached)
            yield ledger
            ledger.flush()


@contextmanager
def replay_of(first: Event, old: CampaignRow) -> Iterator[Replay]:
    """A replay before the first event, which has the campaign's settings; its file goes away at the end."""
    config = CampaignSettings.from_log(first.data["config"])
    with TemporaryDirectory(prefix="nextlabel-replay-", ignore_cleanup_errors=True) as folder:
        engine = make_engine(f"sqlite:///{Path(folder) / 'replay.db'}")
        event.listen(engine, "connect", lambda connection, record: connection.execute("PRAGMA synchronous=OFF"))
        try:
            with engine.execution_options(writes=True).begin() as connection:
                create_tables(connection)
            yield Replay(engine, new_row(old.id, config, old.created_at))
        finally:
            engine.dispose()
