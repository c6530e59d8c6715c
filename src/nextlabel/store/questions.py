"""Questions about many rows at once, written out for both databases.

The texts differ in two places: how a list of values becomes a table (``unnest`` or ``json_each``), and how the names of
those who have held a task become one value. SQLite gets its lists as JSON, which is exact for whole numbers and texts
but not for times and places: those are bound one by one.

A window of a group is what a question looks at: ``MOST_EXAMINED`` tasks in the order of their places, from where the
worker begins or from the group's beginning. No question looks at more rows of a group than that.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from nextlabel.store.payloads import PAYLOAD, PAYLOAD_TEXT
from nextlabel.store.statements import CAMPAIGN, LEASE, TASK, WORKER

#: Tasks of a group that one question examines, held by the worker or not.
MOST_EXAMINED = 200
_LEASE, _WORKER = ", ".join(f"l.{c.name}" for c in LEASE), ", ".join(f"w.{c.name}" for c in WORKER)
_TASK = ", ".join(PAYLOAD_TEXT if c is PAYLOAD else f"t.{c.name}" for c in TASK)


@dataclass(frozen=True, slots=True)
class Question:
    """``text`` in the driver's own style; ``lists`` are the parameters that are lists."""

    text: str
    lists: tuple[str, ...] = ()

    def values(self, dialect: str, parameters: Mapping[str, Any]) -> Mapping[str, Any]:
        """Parameters as the driver takes them; on SQLite lists as one JSON text of rows."""
        if dialect == "postgresql" or not self.lists:
            return parameters
        columns = [parameters[name] for name in self.lists]
        rest = {name: value for name, value in parameters.items() if name not in self.lists}
        return {**rest, "rows": json.dumps(list(zip(*columns, strict=True)))}


def holders_of(dialect: str, found: Any) -> list[str]:
    """The value of the column ``holders``."""
    if found is None or found == "[]":
        return []
    names: list[str] = json.loads(found) if dialect == "sqlite" else found
    return names


@cache
def campaigns_by_id(dialect: str) -> Question:
    """Campaigns that nobody else has locked, locked; PostgreSQL says what time it is."""
    columns = ", ".join(f'c."{column.name}"' for column in CAMPAIGN)
    if dialect == "postgresql":
        columns += ", CAST(EXTRACT(epoch FROM clock_timestamp()) AS float8)"
    lock = " FOR UPDATE OF c SKIP LOCKED" if dialect == "postgresql" else ""
    return _question(
        dialect, {"ids": "text"}, f"SELECT {columns} FROM {{rows}} CROSS JOIN campaigns c WHERE c.id = q.ids{lock}"
    )


@cache
def leases_by_id(dialect: str) -> Question:
    """Leases, with the number of their campaign first."""
    return _question(
        dialect, {"ids": "text"}, f"SELECT l.campaign, {_LEASE} FROM {{rows}} CROSS JOIN leases l WHERE l.id = q.ids"
    )


@cache
def tasks_of_leases(dialect: str) -> Question:
    """The tasks of leases and who has held them, with the number of their campaign first."""
    return _question(
        dialect, {"ids": "text"},
        f"SELECT t.campaign, {_TASK}, {{holders}} FROM {{rows}} CROSS JOIN leases l CROSS JOIN tasks t "
        "WHERE l.id = q.ids AND t.campaign = l.campaign AND t.number = l.task",
    )  # fmt: skip


@cache
def workers_by_name(dialect: str) -> Question:
    """Tallies, with the number of their campaign first."""
    return _question(
        dialect, {"campaigns": "int4", "workers": "text"},
        f"SELECT w.campaign, {_WORKER} FROM {{rows}} CROSS JOIN workers w "
        "WHERE w.campaign = q.campaigns AND w.worker = q.workers",
    )  # fmt: skip


@cache
def open_leases(dialect: str) -> Question:
    """The open leases of workers, with the number of their campaign first."""
    return _question(
        dialect, {"campaigns": "int4", "workers": "text"},
        f"SELECT l.campaign, {_LEASE} FROM {{rows}} CROSS JOIN leases l "
        "WHERE l.campaign = q.campaigns AND l.worker = q.workers AND l.status = 'leased' ORDER BY l.seq",
    )  # fmt: skip


@cache
def states_of_many(dialect: str) -> Question:
    """How many tasks are in each state of campaigns."""
    return _question(
        dialect, {"campaigns": "int4"},
        "SELECT s.campaign, s.klass, s.node, s.w, s.count FROM {rows} CROSS JOIN states s "
        "WHERE s.campaign = q.campaigns AND s.count > 0",
    )  # fmt: skip


@cache
def first_expiries(dialect: str) -> Question:
    """The open leases that expire first."""
    return _question(
        dialect, {},
        "SELECT id, expires_at FROM leases WHERE campaign = :campaign AND status = 'leased' "
        "ORDER BY expires_at LIMIT :many",
    )  # fmt: skip


@cache
def pick_from(dialect: str) -> Question:
    """The first tasks of a window that a worker never held, from place ``start`` on."""
    return _question(dialect, {}, _pick(_FROM, dialect))


@cache
def pick_before(dialect: str) -> Question:
    """The same from the group's beginning to ``start``."""
    return _question(dialect, {}, _pick(_BEFORE, dialect))


@cache
def picks_from(dialect: str) -> Question:
    """The answers of ``pick_from`` for several workers, each with a ``start`` (PostgreSQL); workers come first."""
    assert dialect == "postgresql"
    inner = _pick("t.lot >= q.starts AND t.lot < :end", dialect).replace(":worker", "q.workers")
    return _question(
        dialect, {"workers": "text", "starts": "float8"},
        f"SELECT q.workers, p.* FROM {{rows}} CROSS JOIN LATERAL ({inner}) p",
    )  # fmt: skip


@cache
def window_size(dialect: str) -> Question:
    """How many tasks a window from place ``start`` on has."""
    return _question(dialect, {}, f"SELECT count(*) FROM ({_window(_FROM)}) t")


@cache
def search_from(dialect: str) -> Question:
    """As ``pick_from``, in the whole group instead of a window."""
    return _question(dialect, {}, _search(_FROM))


@cache
def search_before(dialect: str) -> Question:
    """As ``pick_before``, in the whole group instead of a window."""
    return _question(dialect, {}, _search(_BEFORE))


@cache
def window_from(dialect: str) -> Question:
    """As ``pick_from``, with ``examined`` tasks in the window."""
    return _question(dialect, {}, _pick(_FROM, dialect, ":examined"))


@cache
def last_from(dialect: str) -> Question:
    """The place of the last task of such a window, if it has ``examined`` tasks."""
    return _question(
        dialect, {},
        f"SELECT t.lot FROM tasks t WHERE {_IN_GROUP} AND {_FROM} ORDER BY t.lot LIMIT 1 OFFSET :examined - 1",
    )  # fmt: skip


@cache
def best_window(dialect: str) -> Question:
    """The tasks of largest score that a worker never held, of ``examined`` ones between two scores."""
    again = f"{_BY_SCORE} " if dialect == "postgresql" else ""
    window = f"SELECT t.* FROM tasks t WHERE {_BETWEEN} {_BY_SCORE} LIMIT :examined"
    return _question(dialect, {}, f"SELECT {_TASK}, {{holders}} FROM ({window}) t WHERE NOT {_HELD} {again}LIMIT :many")


@cache
def last_of_best(dialect: str) -> Question:
    """Score and place of the last task of such a window, if it has ``examined`` tasks."""
    return _question(
        dialect, {},
        f"SELECT t.score, t.lot FROM tasks t WHERE {_BETWEEN} {_BY_SCORE} LIMIT 1 OFFSET :examined - 1",
    )  # fmt: skip


@cache
def best_of_all(dialect: str) -> Question:
    """The ``examined`` tasks of largest score."""
    return _question(
        dialect, {}, f"SELECT {_TASK}, {{holders}} FROM tasks t WHERE {_SCORED} {_BY_SCORE} LIMIT :examined"
    )


@cache
def search_best(dialect: str) -> Question:
    """The tasks of largest score that a worker never held."""
    return _question(
        dialect, {},
        f"SELECT {_TASK}, {{holders}} FROM tasks t WHERE {_SCORED} AND NOT {_HELD} {_BY_SCORE} LIMIT :many",
    )  # fmt: skip


@cache
def held_counts(dialect: str) -> Question:
    """How many tasks of each group a worker has held, if that is counted."""
    return _question(
        dialect, {}, "SELECT klass, node, w, count FROM held_counts WHERE campaign = :campaign AND worker = :worker"
    )


@cache
def held_counts_of_many(dialect: str) -> Question:
    """The same for workers, with the number of their campaign and their name first."""
    return _question(
        dialect, {"campaigns": "int4", "workers": "text"},
        "SELECT h.campaign, h.worker, h.klass, h.node, h.w, h.count FROM {rows} CROSS JOIN held_counts h "
        "WHERE h.campaign = q.campaigns AND h.worker = q.workers",
    )  # fmt: skip


@cache
def campaigns_with_counts(dialect: str) -> Question:
    """Those of the campaigns in which somebody's tasks are counted."""
    return _question(
        dialect, {"campaigns": "int4"},
        "SELECT q.campaigns FROM {rows} WHERE EXISTS (SELECT 1 FROM held_counts h WHERE h.campaign = q.campaigns)",
    )  # fmt: skip


@cache
def counted_holders(dialect: str) -> Question:
    """Who has held tasks of a campaign, of those whose tasks are counted."""
    return _question(
        dialect, {"campaigns": "int4", "tasks": "int8"},
        "SELECT l.task, l.worker FROM {rows} CROSS JOIN leases l WHERE l.campaign = q.campaigns AND l.task = q.tasks "
        "AND EXISTS (SELECT 1 FROM held_counts h WHERE h.campaign = l.campaign AND h.worker = l.worker)",
    )  # fmt: skip


@cache
def count_held(dialect: str) -> Question:
    """Count a worker's tasks."""
    return _question(
        dialect, {},
        "INSERT INTO held_counts (campaign, worker, klass, node, w, count) "
        "SELECT l.campaign, l.worker, t.klass, t.node, t.w, count(*) FROM leases l CROSS JOIN tasks t "
        "WHERE l.campaign = :campaign AND l.worker = :worker AND t.campaign = l.campaign AND t.number = l.task "
        "GROUP BY l.campaign, l.worker, t.klass, t.node, t.w",
    )  # fmt: skip


@cache
def holders(dialect: str) -> Question:
    """Everybody who has held a task."""
    return _question(dialect, {}, "SELECT worker FROM leases WHERE campaign = :campaign AND task = :task")


_HELD = "EXISTS (SELECT 1 FROM leases l WHERE l.campaign = t.campaign AND l.task = t.number AND l.worker = :worker)"


_IN_GROUP = "t.campaign = :campaign AND t.klass = :klass AND t.node = :node AND t.w = :w"
#: Tasks that are not published have places from ``end`` on.
_FROM, _BEFORE = "t.lot >= :start AND t.lot < :end", "t.lot < :start"
_SCORED, _BY_SCORE = "t.campaign = :campaign AND t.score IS NOT NULL", "ORDER BY t.score DESC, t.lot DESC"

_BETWEEN = f"{_SCORED} AND (t.score, t.lot) <= (:score, :place) AND (t.score, t.lot) >= (:least, :least_place)"


def _pick(place: str, dialect: str, examined: str = "") -> str:
    """A window is streamed in its order, so that what follows the first answer is not looked at."""
    again = "ORDER BY t.lot " if dialect == "postgresql" else ""  # SQLite would sort what is in order
    return f"SELECT {_TASK}, {{holders}} FROM ({_window(place, examined)}) t WHERE NOT {_HELD} {again}LIMIT :many"


def _window(place: str, examined: str = "") -> str:
    most = examined or MOST_EXAMINED
    return f"SELECT t.* FROM tasks t WHERE {_IN_GROUP} AND {place} ORDER BY t.lot LIMIT {most}"


def _search(place: str) -> str:
    which = f"{_IN_GROUP} AND {place} AND NOT {_HELD}"
    return f"SELECT {_TASK}, {{holders}} FROM tasks t WHERE {which} ORDER BY t.lot LIMIT :many"


def _question(dialect: str, lists: dict[str, str], text: str) -> Question:
    postgresql = dialect == "postgresql"
    names = tuple(lists)
    if postgresql:
        rows = f"unnest({', '.join(f':{name}::{kind}[]' for name, kind in lists.items())}) AS q({', '.join(names)})"
        holders = "(SELECT array_agg(h.worker) FROM leases h WHERE h.campaign = t.campaign AND h.task = t.number)"
    else:
        cells = ", ".join(f"json_extract(value, '$[{n}]') AS {name}" for n, name in enumerate(names))
        rows = f"(SELECT {cells} FROM json_each(:rows)) AS q"
        holders = (
            "(SELECT json_group_array(h.worker) FROM leases h WHERE h.campaign = t.campaign AND h.task = t.number)"
        )
    text = text.replace("{rows}", rows).replace("{holders}", f"{holders} AS holders")
    if postgresql:
        text = re.sub(r"(?<!:):(\w+)", r"%(\1)s", text)
    return Question(text, names)


def as_columns(pairs: Sequence[tuple[int, str]]) -> dict[str, list[Any]]:
    """Pairs of a campaign and a worker as two lists."""
    return {"campaigns": [pair[0] for pair in pairs], "workers": [pair[1] for pair in pairs]}
