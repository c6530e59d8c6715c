"""What a database says of campaigns to whoever reads: no lock, and each answer as of one moment."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from typing import Any, TypeVar

from sqlalchemy import Connection, Executable

from nextlabel.beliefs.prior import Prior
from nextlabel.campaign.deletions import deleted_campaign
from nextlabel.campaign.events import Event
from nextlabel.campaign.rows import CampaignRow, Group, LeaseRow, TaskRow, WorkerRow
from nextlabel.problem.tables import prior_from
from nextlabel.store import statements as sql
from nextlabel.store.database import Database
from nextlabel.store.memory import no_campaign
from nextlabel.store.payloads import read_events
from nextlabel.store.prepared import Row, Runner
from nextlabel.store.row_mapping import (
    campaign_from,
    class_of,
    event_from,
    lease_from,
    task_from,
    worker_from,
)

#: Rows that are fetched at once where their size is limited.
ROW_BUFFER = 20
T = TypeVar("T")


class CampaignReads(Database):
    """Campaigns, their logs and their rows, to be read."""

    def campaigns(self) -> list[CampaignRow]:
        """Newest first."""
        with self._read() as connection:
            return [campaign_from(tuple(row))[1] for row in connection.execute(sql.all_campaigns)]

    def row(self, id: str) -> CampaignRow:
        """A campaign as it stands."""
        with self._read() as connection:
            return _find_campaign(connection, id)[1]

    def events(self, id: str, after: int = 0, limit: int = 1000, max_bytes: int | None = None) -> list[Event]:
        """Events with a number above ``after``."""
        with self._read() as connection:
            number = _find_campaign(connection, id)[0]
            parameters = {"campaign": number, "after": after, "many": limit}
            with connection.execute(sql.events_after, parameters, execution_options=_limited(max_bytes)) as rows:
                return list(_first_bytes(read_events(connection, number, rows), max_bytes))

    def light_log(self, id: str, after: int, limit: int) -> list[Event]:
        """Events above a number, without the data of those that added tasks."""
        with self._read() as connection:
            parameters = {"campaign": _find_campaign(connection, id)[0], "after": after, "many": limit}
            return [event_from(tuple(row)) for row in connection.execute(sql.light_events_after, parameters)]

    def last_event(self, id: str, kind: str) -> int | None:
        """The last event of a kind."""
        with self._read() as connection:
            parameters = {"campaign": _find_campaign(connection, id)[0], "kind": kind}
            found = connection.execute(sql.last_event, parameters).scalar()
        return None if found is None else int(found)

    def task_classes(self, id: str, first: int, end: int) -> Sequence[int]:
        """The classes of some tasks."""
        with self._read() as connection:
            number, row = _find_campaign(connection, id)
            if row.classes == 1:
                return [0] * (end - first)
            parameters = {"campaign": number, "first": first, "end": end}
            return [class_of(klass) for (klass,) in connection.execute(sql.task_classes, parameters)]

    def tasks(self, id: str, after: int = -1, limit: int = 1000, max_bytes: int | None = None) -> list[TaskRow]:
        """Tasks with a number above ``after``."""
        with self._read() as connection:
            number, row = _find_campaign(connection, id)
            parameters = {"campaign": number, "after": after, "until": row.tasks, "many": limit}
            with connection.execute(sql.tasks_after, parameters, execution_options=_limited(max_bytes)) as rows:
                return list(_first_bytes(((task_from(tuple(row)), len(row.payload)) for row in rows), max_bytes))

    def tasks_by_key(self, id: str, keys: Sequence[str]) -> dict[str, TaskRow]:
        """Those of the tasks that are there."""
        with self._read() as connection:
            number, row = _find_campaign(connection, id)
            found = connection.execute(sql.tasks_by_key, {"campaign": number, "keys": list(keys)})
            tasks = (task_from(tuple(one)) for one in found)
            return {task.key: task for task in tasks if task.number < row.tasks}

    def groups(self, id: str) -> dict[Group, int]:
        """Tasks in each state."""
        with self._read() as connection:
            parameters = {"campaign": _find_campaign(connection, id)[0]}
            return {(k, n, w): c for k, n, w, c in connection.execute(sql.states_of, parameters)}

    def classes(self, id: str) -> Sequence[Prior]:
        """Priors of the tasks."""
        with self._read() as connection:
            parameters = {"campaign": _find_campaign(connection, id)[0], "first": 0}
            return [prior_from(json.loads(text)) for (text,) in connection.execute(sql.classes_from, parameters)]

    def leases(self, id: str, tasks: Iterable[int]) -> list[LeaseRow]:
        """Leases of some tasks."""
        with self._read() as connection:
            parameters = {"campaign": _find_campaign(connection, id)[0], "tasks": list(tasks)}
            return [lease_from(tuple(row)) for row in connection.execute(sql.leases_of, parameters)]

    def workers(self, id: str, limit: int = 1000) -> list[WorkerRow]:
        """Workers with most labels first."""
        with self._read() as connection:
            parameters = {"campaign": _find_campaign(connection, id)[0], "many": limit}
            return [worker_from(tuple(row)) for row in connection.execute(sql.workers_of, parameters)]


def _find_campaign(connection: Connection, id: str) -> tuple[int, CampaignRow]:
    with closing(Runner(connection)) as runner:
        return campaign_from(found_campaign(runner, sql.campaign_by_id, id))


def found_campaign(runner: Runner, statement: Executable, id: str) -> Row:
    """The campaign that a statement finds, or an error that says what became of it."""
    found = runner.one(statement, {"id": id})
    if found is None:
        raise deleted_campaign(id) if runner.one(sql.deleted_at, {"id": id}) is not None else no_campaign(id)
    return found


def _limited(max_bytes: int | None) -> dict[str, Any]:
    """How rows are fetched: a few at a time where their size is limited."""
    return {} if max_bytes is None else {"stream_results": True, "max_row_buffer": ROW_BUFFER}


def _first_bytes(sized: Iterator[tuple[T, int]], max_bytes: int | None) -> Iterator[T]:
    """The first of some rows with their sizes, until they have so many bytes; more are not fetched."""
    for row, size in sized:
        yield row
        if max_bytes is not None:
            max_bytes -= size
            if max_bytes <= 0:
                return
