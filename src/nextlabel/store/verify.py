"""Hold the rows of a campaign against its events, and repair them, while the campaign goes on.

The log is replayed beside the campaign, into a SQLite file of its own, without a lock. Then one slice of rows after the
other is compared, with the campaign locked and the replay brought up to its last event, so that every difference is
real. A slice takes a fraction of a second, and commands run in between.

Tables are taken in an order in which the rows that an event reads are right before those that it writes: leases, then
tasks, which follow from them, then the counts of both. A command that meets a wrong row in the meantime can only spoil
rows that are still to be compared. A repaired slice leaves an event in the log, so that no process goes on with rows
that it remembers from before. Scores are not part of what a log means: they are refreshed and not reported. Of whom
held tasks are counted is not either, but the counts of those that are counted are.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from sqlalchemy import ColumnElement, Connection, Engine, Table, and_, delete, event, insert, select, update

from nextlabel.campaign import scoring
from nextlabel.campaign.events import Event
from nextlabel.campaign.rows import CampaignRow, new_row
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.campaign.task_moves import unranked
from nextlabel.campaign.verification import Verification, replay_event
from nextlabel.store import statements as sql
from nextlabel.store.engine import make_engine
from nextlabel.store.prepared import Runner
from nextlabel.store.row_mapping import campaign_values, changing_values
from nextlabel.store.sql_ledger import CachedRows, SqlLedger
from nextlabel.store.tables import (
    batches,
    campaigns,
    classes,
    create_tables,
    held_counts,
    leases,
    states,
    tasks,
    workers,
)

if TYPE_CHECKING:
    from nextlabel.store.sql import SqlStore

#: Events that are read at once, rows or ranges that are compared at once, and keys in one statement.
EVENTS, SLICE, KEYS = 200, 1000, 500
#: The share of the work that replaying is, for the progress that is shown.
REPLAYING = 0.8

Row = dict[str, Any]
Same = Callable[[Row, Row], bool]


@dataclass(frozen=True)
class Compared:
    """How a table is compared: by ranges of column ``by``, rows told apart by ``keys``.

    ``unique`` names a column whose values no two rows may share, so that a wrong row elsewhere has to make room.
    """

    table: Table
    by: str
    keys: tuple[str, ...]
    same: Same = lambda stored, right: stored == right
    unique: str | None = None


def _same_task(stored: Row, right: Row) -> bool:
    """That a task has a score says that it has room; how large it is does not matter."""
    if (stored["score"] is None) != (right["score"] is None):
        return False
    return all(stored[name] == value for name, value in right.items() if name != "score")


def _stale_score(stored: Row, right: Row) -> bool:
    """Whether scores differ by more than their last bits."""
    a, b = stored["score"], right["score"]
    return a is not None and b is not None and abs(a - b) > 1e-9 * max(abs(a), abs(b))


COUNTS = Compared(held_counts, "worker", ("worker", "klass", "node", "w"))
#: In the order that the module's docstring explains.
TABLES = (
    Compared(classes, "number", ("number",)),
    Compared(leases, "task", ("id",)),
    Compared(tasks, "number", ("number",), _same_task, unique="key"),
    Compared(states, "klass", ("klass", "node", "w")),
    Compared(workers, "worker", ("worker",)),
    Compared(batches, "key", ("key",)),
    COUNTS,
)


def verify(store: SqlStore, id: str, repair: bool, progress: Callable[[float], None] | None = None) -> Verification:
    """Compare every row of a campaign with what its events say; with ``repair``, write what they say."""
    (first,) = store.events(id, 0, 1)
    with replay_of(first, store.row(id)) as replay:
        return _Verifier(store, replay, repair, progress or (lambda fraction: None)).run()


class _Verifier:
    def __init__(self, store: SqlStore, replay: Replay, repair: bool, progress: Callable[[float], None]) -> None:
        self._store, self._replay, self._repair, self._progress = store, replay, repair, progress
        self._id = replay.row.id
        self._differing: dict[str, int] = {}

    def run(self) -> Verification:
        total = max(self._store.row(self._id).seq, 1)
        while some := self._read():
            self._replay.advance(some)
            self._progress(min(REPLAYING * self._replay.row.seq / total, REPLAYING))
        self._replay.rank()
        with self._store.transaction(self._id, remembered=False) as ledger:
            counted = _workers(ledger.connection, ledger.number, None, None)
        self._replay.count_held(counted)  # without a lock: it may take long
        for done, compared in enumerate(TABLES):
            self._progress(REPLAYING + (1 - REPLAYING) * done / len(TABLES))
            after: Any = None
            while True:
                self._catch_up()
                begun = time.monotonic()
                after, last = self._slice(compared, after)
                if last:
                    break
                time.sleep(time.monotonic() - begun)  # others have the lock for at least as long
        self._catch_up()
        self._campaign()
        return Verification(self._replay.row.seq, self._differing, self._repair and bool(self._differing))

    def _read(self) -> list[Event]:
        return self._store.events(self._id, self._replay.row.seq, EVENTS)

    def _catch_up(self) -> None:
        while some := self._read():
            self._replay.advance(some)

    def _slice(self, compared: Compared, after: Any) -> tuple[Any, bool]:
        """Compare the rows after ``after``; returns the end of the slice, and whether it was the last."""
        with self._store.transaction(self._id, remembered=False) as ledger:
            self._join(ledger)
            until = self._end_of_slice(compared, after)
            if compared.table is held_counts:
                counted = set(_workers(ledger.connection, ledger.number, after, until))
                self._replay.count_held(sorted(counted))  # some of them since a moment ago
            with self._replay.connection() as right:
                mine = _rows(right, compared, self._replay.number, after, until)
            if compared.table is held_counts:
                mine = {key: row for key, row in mine.items() if row["worker"] in counted}
            theirs = _rows(ledger.connection, compared, ledger.number, after, until)
            wrong = [key for key, row in theirs.items() if key not in mine or not compared.same(row, mine[key])]
            missing = [key for key in mine if key not in theirs]
            if wrong or missing:
                self._count(compared.table.name, len({*wrong, *missing}))
                if self._repair:
                    rows = [mine[key] for key in {*wrong, *missing} if key in mine]
                    _write(ledger, compared, [*wrong, *missing], rows)
                    self._record(ledger, compared.table.name, len({*wrong, *missing}))
            if self._repair and compared.table is tasks:
                _refresh_scores(ledger, [(row, mine[key]) for key, row in theirs.items() if key in mine])
        return until, until is None

    def _end_of_slice(self, compared: Compared, after: Any) -> Any:
        """The last value of ``by`` in the slice, None for the last slice, which has no end."""
        with self._replay.connection() as right:
            column = _ordered(compared, right)
            which = _between(compared, right, self._replay.number, after, None)
            ends = select(column).distinct().where(*which).order_by(column).limit(SLICE + 1)
            values = list(right.execute(ends).scalars())
        return values[SLICE - 1] if len(values) > SLICE else None

    def _campaign(self) -> None:
        """The row of the campaign itself, which follows from all others."""
        with self._store.transaction(self._id, remembered=False) as ledger:
            self._join(ledger)
            right, stored = self._replay.row, ledger.row
            same = changing_values(stored) == changing_values(right) and stored.config == right.config
            if same:
                return
            self._count(campaigns.name, 1)
            if self._repair:
                changed = update(campaigns).where(campaigns.c.number == ledger.number)
                ledger.connection.execute(changed.values(config=right.config.to_json()))
                for field in fields(stored):
                    setattr(stored, field.name, getattr(right, field.name))
                self._record(ledger, campaigns.name, 1)

    def _join(self, ledger: SqlLedger) -> None:
        """Bring the replay to the last event; the campaign is locked, so that there is no later one."""
        self._catch_up()
        if self._repair and ledger.row.seq != self._replay.row.seq:
            self._count(campaigns.name, 1)
            ledger.row.seq, ledger.row.last_at = self._replay.row.seq, self._replay.row.last_at

    def _count(self, table: str, rows: int) -> None:
        most = 1 if table == campaigns.name else self._differing.get(table, 0) + rows
        self._differing[table] = most

    def _record(self, ledger: SqlLedger, table: str, rows: int) -> None:
        ledger.append(ledger.row.last_at, "rebuilt", {"table": table, "rows": rows})
        ledger.forget_cached()


def _ordered(compared: Compared, connection: Connection) -> ColumnElement[Any]:
    """The column of the ranges, texts in the order of their bytes in every database."""
    column: ColumnElement[Any] = compared.table.c[compared.by]
    text = compared.table.c[compared.by].type.python_type is str
    return column.collate("C" if connection.dialect.name == "postgresql" else "BINARY") if text else column


def _between(
    compared: Compared, connection: Connection, number: int, after: Any, until: Any
) -> list[ColumnElement[bool]]:
    """The rows of a campaign in a range of ``by``."""
    column = _ordered(compared, connection)
    which: list[ColumnElement[bool]] = [compared.table.c.campaign == number]
    if after is not None:
        which.append(column > after)
    if until is not None:
        which.append(column <= until)
    return which


def _workers(connection: Connection, number: int, after: Any, until: Any) -> list[str]:
    """Workers whose held tasks are counted, rightly or not."""
    which = _between(COUNTS, connection, number, after, until)
    return list(connection.execute(select(held_counts.c.worker).distinct().where(*which)).scalars())


def _rows(connection: Connection, compared: Compared, number: int, after: Any, until: Any) -> dict[Any, Row]:
    which = _between(compared, connection, number, after, until)
    names = [c.name for c in compared.table.c if c.name != "campaign"]
    found: dict[Any, Row] = {}
    for row in connection.execute(select(*(compared.table.c[name] for name in names)).where(*which)):
        values = dict(zip(names, row, strict=True))
        if values.get("count") != 0:  # a state in which there is no task may have a row or none
            found[tuple(values[key] for key in compared.keys)] = values
    return found


def _refresh_scores(ledger: SqlLedger, pairs: Sequence[tuple[Row, Row]]) -> None:
    stale = [
        {"b_campaign": ledger.number, "b_number": right["number"], "score": right["score"]}
        for stored, right in pairs
        if _stale_score(stored, right)
    ]
    if stale:
        ledger.connection.execute(sql.score_task, stale)


def _write(ledger: SqlLedger, compared: Compared, keys: Sequence[Any], rows: Sequence[Row]) -> None:
    """Take the rows of these keys out, wherever they stand, and put the right ones in."""
    table = compared.table
    everywhere = table is leases  # a lease's id is unique in the whole database
    mine = [] if everywhere else [table.c.campaign == ledger.number]
    for start in range(0, len(keys), KEYS):
        some = keys[start : start + KEYS]
        if len(compared.keys) == 1:
            which = table.c[compared.keys[0]].in_([key[0] for key in some])
            ledger.connection.execute(delete(table).where(*mine, which))
        else:
            for key in some:
                one = and_(*(table.c[name] == value for name, value in zip(compared.keys, key, strict=True)))
                ledger.connection.execute(delete(table).where(*mine, one))
    if compared.unique is not None:
        for start in range(0, len(rows), KEYS):
            taken = [row[compared.unique] for row in rows[start : start + KEYS]]
            ledger.connection.execute(delete(table).where(*mine, table.c[compared.unique].in_(taken)))
    if rows:
        ledger.connection.execute(insert(table), [{"campaign": ledger.number, **row} for row in rows])


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
