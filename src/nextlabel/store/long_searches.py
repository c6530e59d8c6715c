"""Searches of workers who have held nearly everything: limited for each ask, and carried on by the worker's next one.

Nearly every ask finds a task in the first window that it examines. A worker who has held most of many tasks may not,
and what is left for them may stand anywhere. So an ask examines at most ``MOST_SEARCHED`` tasks more, from where the
worker's last search ended, whatever the number of tasks or workers. Where that is in vain the ask gets a task of
another group, or none for the moment, and the next one carries on.

Tasks of a group are equally good, so that it does not matter where among them a search goes on. Of ranked tasks the
best is wanted: a search goes down from the best to the worst and stays where it finds something, and each ask also
examines ``REVIEWED`` tasks above that, where tasks that became better meanwhile may stand.

Where searches stand is remembered by a process, and changes nothing but who gets which task: it may be lost.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from nextlabel.campaign.rows import Group, TaskRow

#: Tasks that an ask examines beyond the first windows. In fewer tasks than that a search always ends.
MOST_SEARCHED = 2_000
#: Of ranked tasks, those that are examined above the place where the search stands.
REVIEWED = 500
#: Searches that are remembered.
MOST_REMEMBERED = 50_000

Score = tuple[float, float]
BEST, WORST = (math.inf, math.inf), (-math.inf, -math.inf)
K = TypeVar("K")
#: Looks for a task among ``n`` from one key on to another: the task, or the last key examined, None if it met the end.
Window = Callable[[K, K, int], tuple[TaskRow | None, K | None]]


@dataclass(slots=True)
class RankedSearch:
    """Where a worker's search stands, and how far what is above it was examined again.

    ``none_of``: with so many tasks in the campaign, the last search from the best task to the worst found nothing.
    """

    stands: Score = BEST
    reviewed: Score = BEST
    none_of: int = -1


class LongSearches:
    """Where the searches of a campaign's workers stand."""

    def __init__(self) -> None:
        self._groups: dict[tuple[str, Group], float] = {}
        self._ranked: dict[str, RankedSearch] = {}
        self._spent, self.ended = False, True

    def begin(self) -> None:
        """A new ask: it may search again; ``ended`` says afterwards whether it has looked at everything."""
        self._spent, self.ended = False, True

    def in_group(self, worker: str, group: Group, start: float, window: Window[float]) -> TaskRow | None:
        """The next task of a group that has one for the worker, if it is near; a first search begins at ``start``."""
        if not self._may_search():
            return None
        key = (worker, group)
        found, last = window(self._groups.pop(key, start), math.inf, MOST_SEARCHED)
        if found is None:
            self.ended = False
        self._groups[key] = found.place if found is not None else 0.0 if last is None else last
        _forget_oldest(self._groups)
        return found

    def in_ranked(self, worker: str, tasks: int, window: Window[Score]) -> TaskRow | None:
        """A task of large score for the worker, the best if nothing has changed above where the search stands."""
        if not self._may_search():
            return None
        search = self._ranked.pop(worker, RankedSearch())
        self._ranked[worker] = search
        _forget_oldest(self._ranked)
        found, last = None, None
        if search.stands != BEST:
            found, last = window(search.reviewed, search.stands, REVIEWED)
            search.reviewed = BEST if last is None else last
        if found is None:
            found, last = window(search.stands, WORST, MOST_SEARCHED)
            search.stands = BEST if last is None else last
            if found is not None:
                search.stands = (found.score or 0.0, found.place)
            elif last is None:
                search.none_of = tasks
        if found is not None:
            search.none_of = -1
        self.ended = found is not None or search.none_of == tasks
        return found

    def _may_search(self) -> bool:
        """Once for each ask."""
        if self._spent:
            self.ended = False
        may, self._spent = not self._spent, True
        return may


def _forget_oldest(searches: dict[Any, Any]) -> None:
    if len(searches) > MOST_REMEMBERED:
        del searches[next(iter(searches))]
