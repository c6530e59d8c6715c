"""The task that an ask gets from a campaign in memory: tasks by group and place and by score, and who has held them."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from itertools import islice, takewhile
from typing import Any

from nextlabel.campaign.rows import Group, TaskRow
from nextlabel.store import long_searches, questions
from nextlabel.store.long_searches import LongSearches, Score
from nextlabel.store.sorted_entries import SortedEntries

Entry = tuple[Any, ...]


class MemoryCandidates:
    """Answers ``pick`` and ``best``; ``task`` has the rows."""

    def __init__(self, task: Callable[[int], TaskRow]) -> None:
        self._task = task
        self.counts: dict[Group, int] = {}
        self.by_score, self.controls = SortedEntries(), SortedEntries()
        self.searches = LongSearches()
        self._by_group: defaultdict[Group, SortedEntries] = defaultdict(SortedEntries)
        self._held: defaultdict[str, set[int]] = defaultdict(set)
        self._holders: defaultdict[int, list[str]] = defaultdict(list)
        self._held_by_group: defaultdict[str, Counter[Group]] = defaultdict(Counter)

    def enter(self, task: TaskRow) -> None:
        """A task that is new, or in another state than before; a control question is in no group."""
        group = task.group
        if task.gold is not None:
            self.controls.add((task.place, task.number))
            return
        self.counts[group] = self.counts.get(group, 0) + 1
        self._by_group[group].add((task.place, task.number))
        self._count_holders(task, 1)
        if task.score is not None:
            self.by_score.add((task.score, task.place, task.number))

    def leave(self, task: TaskRow) -> None:
        """A task before it gets into another state."""
        group = task.group
        if task.gold is not None:
            self.controls.remove((task.place, task.number))
            return
        self.counts[group] -= 1
        self._by_group[group].remove((task.place, task.number))
        self._count_holders(task, -1)
        if not self.counts[group]:
            del self.counts[group], self._by_group[group]
        if task.score is not None:
            self.by_score.remove((task.score, task.place, task.number))

    def hold(self, worker: str, task: TaskRow) -> None:
        """A worker has got a task."""
        self._held[worker].add(task.number)
        self._holders[task.number].append(worker)
        self._held_by_group[worker][task.group] += 1

    def pick_control(self, worker: str, start: float) -> TaskRow | None:
        """A control question that the worker never held."""
        return self._window(worker, self.controls.around((start, -1)))[0]

    def held(self, worker: str) -> int:
        """How many tasks a worker has held."""
        return len(self._held.get(worker, ()))

    def pick(self, group: Group, worker: str, start: float) -> TaskRow | None:
        """A task of the group that the worker never held."""
        if group not in self.counts:
            return None
        entries = self._by_group[group]
        if len(entries) <= long_searches.MOST_SEARCHED:
            return self._window(worker, entries.around((start, -1)))[0]
        if self._held_by_group[worker][group] >= len(entries):
            return None
        found, last = self._window(worker, entries.upward((start, -1)), questions.MOST_EXAMINED)
        if found is None and last is None:
            found, _ = self._window(worker, takewhile(lambda entry: entry[0] < start, entries), questions.MOST_EXAMINED)
        if found is not None:
            return found

        def window(place: float, until: float, examined: int) -> tuple[TaskRow | None, float | None]:
            found, last = self._window(worker, entries.upward((place, -1)), examined)
            return found, None if last is None else last[0]

        return self.searches.in_group(worker, group, start, window)

    def best(self, worker: str, tasks: int) -> TaskRow | None:
        """The task of largest score that the worker never held; the campaign has so many tasks."""
        if tasks <= long_searches.MOST_SEARCHED:
            return self._window(worker, reversed(self.by_score))[0]
        found, last = self._window(worker, reversed(self.by_score), questions.MOST_EXAMINED)
        if found is not None or last is None:
            return found

        def window(start: Score, until: Score, examined: int) -> tuple[TaskRow | None, Score | None]:
            down = takewhile(lambda entry: entry[:2] >= until, self.by_score.downward((*start, math.inf)))
            found, last = self._window(worker, down, examined)
            return found, None if last is None else (last[0], last[1])

        return self.searches.in_ranked(worker, tasks, window)

    def _window(
        self, worker: str, entries: Iterator[Entry], examined: int | None = None
    ) -> tuple[TaskRow | None, Entry | None]:
        """The first task that the worker never held, or the last entry examined, None if there were fewer."""
        held, count, last = self._held.get(worker, ()), 0, None
        for last in islice(entries, examined):
            if last[-1] not in held:
                return self._task(last[-1]), None
            count += 1
        return None, last if count == examined else None

    def _count_holders(self, task: TaskRow, change: int) -> None:
        for worker in self._holders.get(task.number, ()):
            self._held_by_group[worker][task.group] += change
