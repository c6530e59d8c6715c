"""Tasks in lists of equals, each in order: of the best list the first task is given out that the worker has never held.

=========== ============== ======================================= ====================================================
campaigns   one list for   the best list                           order
=========== ============== ======================================= ====================================================
few priors  each group     by the scores of a policy's tables      places that chance draws, from a place of the lease's
many        all tasks      the only one                            score, then place; the largest first
=========== ============== ======================================= ====================================================

With many priors tables for all of them would not fit; scores look at the task's prior and state alone, so that a label
moves one task.
Guarantee: the choice of ``kernels.choice``, which simulations use, for the same groups, labels left and uniforms.
Cost: a visit to each group that has tasks, and some 20 us; for somebody who has held nearly all of a list a pass over
all tasks (3 ms a million).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import chain, islice
from typing import Any, Literal

import numpy as np
from sortedcontainers import SortedList

from nextlabel.arrays import Floats, Ints
from nextlabel.kernels.inputs import TIED
from nextlabel.policies.allocation import Group, Outlook, Refusal, TaskPool

#: Tasks that are looked at one by one before all are looked at together.
LOOKED_AT = 100
#: Bytes of a task in an order of tasks.
ENTRY = 130
#: The group for a lease by number, of those with tasks but those barred, with so many labels left and given before.
GroupChoice = Callable[
    [Mapping[Group, int], Collection[Group], int, int, int, int], Group | Literal["no room", "below price"]
]
#: What one more label of each task is worth, by class, labels, node and labels in flight (n,) each.
Scores = Callable[[Any, Any, Any, Any], Floats]
#: The list of all tasks.
EVERY: Group = (0, 0, 0)


class OrderedPool(TaskPool):
    """Tasks in lists, which are made when they are first looked into.

    Without ``scores`` these are groups, and ``choose_group`` must be set before the first choice; with them, a label
    must be worth ``least``.
    """

    choose_group: GroupChoice

    def __init__(
        self,
        answers: int,
        most_labels: int,
        most_in_flight: int,
        seed: int,
        scores: Scores | None = None,
        least: float = 0.0,
    ) -> None:
        super().__init__(answers, most_labels, most_in_flight)
        self.seed, self.scores, self._least = seed, scores, least
        #: How many tasks each list has, and (order, task) of those that were looked into.
        self._counts: dict[Group, int] = {}
        self._lists: dict[Group, Any] = {}
        #: With scores, that of each task that has room.
        self._score: dict[int, float] = {}

    def groups(self) -> dict[Group, int]:
        """How many tasks are in each group that has any."""
        return self._counts if self.scores is None else super().groups()

    @property
    def nbytes(self) -> int:
        """Bytes in memory, about."""
        return super().nbytes + ENTRY * (len(self._score) + sum(map(len, self._lists.values())))

    def choose(self, worker: int, outlook: Outlook) -> int | Refusal:
        """The first task of the best list that has one for the worker."""
        barred: set[Group] = set()
        free: Ints | None = None
        start = outlook.start if self.scores is None else -np.inf
        while True:
            key = self._best(barred, outlook)
            if isinstance(key, str):
                return "nothing_left_for_you" if barred else key
            if self.has_held_all(worker):
                return "nothing_left_for_you"
            if free is None:
                entries = self._list(key)
                for entry in islice(chain(entries.irange((start,)), entries), LOOKED_AT):
                    if not self.has_held(entry[-1], worker):
                        return self._priced(entry[-1])
                if len(entries) > LOOKED_AT:
                    free = self.free_for(worker)
                    if self.scores is None:
                        barred.update(set(self._counts).difference(self.count(free)))
            if free is not None and key not in barred:
                here = np.zeros(self.published, dtype=np.bool_)
                here[self._members(key)] = True
                mine = free[here[free]]
                if len(mine):
                    order = self._order(mine)
                    return self._priced(int(mine[np.lexsort((*order[::-1], order[0] < start))[0]]))
            barred.add(key)

    def _best(self, barred: set[Group], outlook: Outlook) -> Group | Refusal:
        """The best list that is not barred."""
        if self.scores is not None:
            return EVERY if self._score and not barred else "all_leased"
        found = self.choose_group(self._counts, barred, outlook.left, outlook.given, self.seed, outlook.lease)
        return found if isinstance(found, tuple) else "all_leased" if found == "no room" else "below_price"

    def _priced(self, task: int) -> int | Refusal:
        """The task, unless a label of it is worth less than its price."""
        low = self._least > 0 and self.scores is not None and self._score[task] < self._least - TIED
        return "below_price" if low else task

    # The lists

    def _order(self, numbers: Ints) -> list[Floats]:
        """What tasks are in order by: the first of these, then the next."""
        place = self.tasks.place[numbers]
        return [place] if self.scores is None else [np.array([-self._score[x] for x in numbers.tolist()]), -place]

    def _entries(self, numbers: Ints) -> Iterable[tuple[Any, ...]]:
        return zip(*(column.tolist() for column in (*self._order(numbers), numbers)), strict=True)

    def _members(self, key: Group) -> Ints:
        """The tasks of a list by number."""
        if self.scores is not None:
            return np.fromiter(self._score, dtype=np.int64, count=len(self._score))
        tasks, (class_id, node, w), n = self.tasks, key, self.published
        mine = (tasks.class_id[:n] == class_id) & (tasks.node[:n] == node) & (tasks.w[:n] == w) & (tasks.gold[:n] < 0)
        return np.flatnonzero(mine)

    def _list(self, key: Group) -> Any:
        if key not in self._lists:
            self._lists[key] = SortedList(self._entries(self._members(key)))
        return self._lists[key]

    def _key(self, task: int) -> Group | None:
        """The list that a task is in, if it is in one."""
        if self.scores is not None:
            return EVERY if task in self._score else None
        return self.group_of(task) if task < self.published and self.tasks.gold[task] < 0 else None

    def _entry(self, task: int) -> tuple[Any, ...]:
        place = self.tasks.place.item(task)
        return (place, task) if self.scores is None else (-self._score[task], -place, task)

    def _leave(self, task: int) -> None:
        super()._leave(task)
        key = self._key(task)
        if key is None:
            return
        self._counts[key] -= 1
        if not self._counts[key]:
            del self._counts[key]
            self._lists.pop(key, None)
        elif key in self._lists:
            self._lists[key].remove(self._entry(task))
        self._score.pop(task, None)

    def _enter(self, task: int) -> None:
        tasks = self.tasks
        if self.scores is not None and task < self.published and tasks.gold[task] < 0 and self.has_room(task):
            self._score[task] = float(self._scored(slice(task, task + 1))[0])
        key = self._key(task)
        if key is None:
            return
        count = self._counts[key] = self._counts.get(key, 0) + 1
        if count == 1:
            self._lists[key] = SortedList()
        if key in self._lists:
            self._lists[key].add(self._entry(task))

    def _entered(self, first: int) -> None:
        if self.published - first <= LOOKED_AT:
            for task in range(first, self.published):
                self._enter(task)
            return
        tasks, n = self.tasks, self.published
        if self.scores is None:
            self._counts, self._lists = super().groups(), {}
            return
        room = (tasks.w < self.most_in_flight) & (tasks.labels + tasks.w < self.most_labels) & (tasks.gold < 0)
        new = first + np.flatnonzero(room[first:n])
        self._score.update(zip(new.tolist(), self._scored(new).tolist(), strict=True))
        self._counts = {EVERY: len(self._score)} if self._score else {}
        if EVERY in self._lists:
            self._lists[EVERY].update(self._entries(new))

    def _scored(self, which: Any) -> Floats:
        """The scores of some tasks as they stand."""
        tasks = self.tasks
        assert self.scores is not None
        return self.scores(tasks.class_id[which], tasks.labels[which], tasks.node[which], tasks.w[which])
