"""Statistics of tables that have grown, for PostgreSQL's planner.

Without statistics every index looks alike to the planner. It took one that begins with the campaign alone to find who
has held a task: each ask then read all leases of the campaign, and two hundred times where tasks are ranked. The
server's own daemon looks once a minute, if it is switched on, and counts all databases of the server in turn. So a
process that has seen tables double analyzes them, in a thread of its own; nobody is kept waiting.
"""

from __future__ import annotations

import logging
from threading import Lock, Thread

from sqlalchemy import Engine, text
from sqlalchemy.exc import SQLAlchemyError

from nextlabel.campaign.rows import CampaignRow

#: Tables with several indexes that begin alike, and that of the two numbers of ``_sizes`` which is their size.
TABLES = {"tasks": 0, "payloads": 0, "leases": 1}
#: Rows below which any plan will do, and the seconds that ``close`` waits for the thread.
FEW, PATIENCE_S = 200, 10.0
_known = text(
    "SELECT c.relname, c.reltuples FROM pg_class c "
    "WHERE c.relname = ANY(:names) AND c.relnamespace = current_schema()::regnamespace"
)
_log = logging.getLogger("nextlabel.store")


class TableStatistics:
    """Analyzes the tables of a database when what this process has seen of them has doubled."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._sizes: dict[str, tuple[int, int]] = {}
        self._seen, self._analyzed = [0, 0], [FEW, FEW]
        self._lock = Lock()
        self._thread: Thread | None = None

    def note(self, row: CampaignRow) -> None:
        """A campaign as it is after a transaction that was committed."""
        if self._engine.dialect.name != "postgresql":
            return
        size = row.tasks + row.rules.hidden, row.given
        with self._lock:
            before = self._sizes.get(row.id, (0, 0))
            if size == before:
                return
            self._sizes[row.id] = size
            self._seen = [seen + now - then for seen, now, then in zip(self._seen, size, before, strict=True)]
            if self._thread is None and self._have_doubled():
                self._thread = Thread(target=self._work, name="statistics", daemon=True)
                self._thread.start()

    def close(self) -> None:
        """Wait for what is under way."""
        thread = self._thread
        if thread is not None:
            thread.join(PATIENCE_S)

    def _have_doubled(self) -> bool:
        return any(seen >= 2 * old for seen, old in zip(self._seen, self._analyzed, strict=True))

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._have_doubled():
                    self._thread = None
                    return
                seen = list(self._seen)
                self._analyzed = [max(size, FEW) for size in seen]
            self._analyze(seen)

    def _analyze(self, seen: list[int]) -> None:
        """Analyze the tables of which the server knows less than half of what was seen."""
        try:
            with self._engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
                known = {name: rows for name, rows in connection.execute(_known, {"names": list(TABLES)})}
                for table, size in TABLES.items():
                    if seen[size] > max(2 * known.get(table, 0.0), FEW):
                        connection.execute(text(f"ANALYZE {table}"))
        except SQLAlchemyError as error:
            _log.warning("the database's statistics are old: %s", type(error).__name__)
