"""Tasks ranked one by one: campaigns with so many priors that tables for all of them would not fit.

The score of a task depends on its prior and its state alone, so that a label moves one task. The task of the largest
score goes first, of equal ones that of the largest place, among those that the worker has never held.
Cost: some 20 us; for somebody who has held nearly all tasks a pass over them.
"""

from __future__ import annotations

from itertools import islice
from typing import Any, Protocol

import numpy as np
from sortedcontainers import SortedList

from nextlabel.arrays import Floats
from nextlabel.kernels.inputs import TIED
from nextlabel.policies.allocation import Outlook, Refusal, TaskPool
from nextlabel.policies.by_table import ENTRY, LOOKED_AT


class Scores(Protocol):
    """What one more label of each task is worth, by class, labels, node and labels in flight (n,) each."""

    def __call__(self, class_id: Any, labels: Any, node: Any, w: Any) -> Floats:
        """(n,) scores."""
        ...


class ScoreAllocator(TaskPool):
    """Every task that may have another label by its score; ``least`` is what a label must be worth."""

    def __init__(self, answers: int, most_labels: int, scores: Scores, least: float = 0.0) -> None:
        super().__init__(answers, most_labels)
        self._scores, self._least = scores, least
        #: (score, place, task), and the entry of each task in it.
        self._ranking: Any = SortedList()
        self._entry: dict[int, tuple[float, float, int]] = {}

    def take_over(self, other: TaskPool) -> ScoreAllocator:
        """Go on with the tasks of another allocator."""
        super().take_over(other)
        self._ranking, self._entry = SortedList(), {}
        self._entered(0)
        return self

    @property
    def nbytes(self) -> int:
        """Bytes in memory, about."""
        return super().nbytes + 2 * ENTRY * len(self._ranking)

    def choose(self, worker: int, outlook: Outlook) -> int | Refusal:
        """The best task that the worker has never held."""
        if not self._ranking:
            return "all_leased"
        entry = None if self.has_held_all(worker) else self._best(worker)
        if entry is None:
            return "nothing_left_for_you"
        return "below_price" if self._least > 0 and entry[0] < self._least - TIED else entry[2]

    def _best(self, worker: int) -> tuple[float, float, int] | None:
        for entry in islice(reversed(self._ranking), LOOKED_AT):
            if not self.has_held(entry[2], worker):
                best: tuple[float, float, int] = entry
                return best
        if len(self._ranking) <= LOOKED_AT:
            return None
        return max((self._entry[task] for task in self.free_for(worker).tolist() if task in self._entry), default=None)

    def _leave(self, task: int) -> None:
        entry = self._entry.pop(task, None)
        if entry is not None:
            self._ranking.remove(entry)

    def _enter(self, task: int) -> None:
        tasks = self.tasks
        if task < self.published and tasks.gold[task] < 0 and self.has_room(task):
            score = self._scores(*(column[task : task + 1] for column in self._state()))[0]
            self._entry[task] = entry = float(score), float(tasks.place[task]), task
            self._ranking.add(entry)

    def _entered(self, first: int) -> None:
        tasks, n = self.tasks, self.published
        room = (tasks.w < tasks.most_in_flight) & (tasks.labels + tasks.w < tasks.most_labels) & (tasks.gold < 0)
        new = first + np.flatnonzero(room[first:n])
        if len(new):
            scores = self._scores(*(column[new] for column in self._state()))
            entries = list(zip(scores.tolist(), tasks.place[new].tolist(), new.tolist(), strict=True))
            self._entry.update((entry[2], entry) for entry in entries)
            self._ranking.update(entries)

    def _state(self) -> tuple[Any, Any, Any, Any]:
        tasks = self.tasks
        return tasks.class_id, tasks.labels, tasks.node, tasks.w
