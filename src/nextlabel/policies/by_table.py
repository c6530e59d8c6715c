"""Tasks in groups of equals, chosen by the scores of a policy's tables: campaigns with few priors.

The group of the largest score is ``PolicyTables.choose``'s, and of its tasks the one is given out that comes first from
a place that chance draws, among those that the worker has never held. Places are drawn once for each task.
Guarantee: the choice of ``kernels.choice``, which simulations use, for the same groups, labels left and uniforms.
Cost: a visit to each group that has tasks, and some 20 us; for somebody who has held nearly all of a group a pass over
all tasks (3 ms a million).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain, islice
from typing import Any, Literal, Protocol

import numpy as np
from sortedcontainers import SortedList

from nextlabel.arrays import Ints
from nextlabel.policies.allocation import Group, Outlook, Refusal, TaskPool

#: Tasks that are looked at one by one before all are looked at together.
LOOKED_AT = 100
#: Bytes of a task in an order of tasks.
ENTRY = 130


class GroupTables(Protocol):
    """The tables of a policy."""

    def choose(
        self, groups: Mapping[Group, int], barred: Iterable[Group], n: int, ell: int, seed: int, number: int
    ) -> Group | Literal["no room", "below price"]:
        """The group for lease ``number``, with ``n`` labels left and ``ell`` handed out before."""
        ...


class TableAllocator(TaskPool):
    """Groups of equal tasks; ``tables`` must be set before the first choice."""

    def __init__(self, answers: int, most_labels: int, seed: int) -> None:
        super().__init__(answers, most_labels)
        self.seed = seed
        self.tables: GroupTables | None = None
        self._counts: dict[Group, int] = {}
        #: Tasks of a group by place, for the groups that were looked into.
        self._members: dict[Group, Any] = {}

    def take_over(self, other: TaskPool) -> TableAllocator:
        """Go on with the tasks of another allocator."""
        super().take_over(other)
        self._counts, self._members = super().groups(), {}
        return self

    def groups(self) -> dict[Group, int]:
        """How many tasks are in each group that has any."""
        return self._counts

    @property
    def nbytes(self) -> int:
        """Bytes in memory, about."""
        return super().nbytes + ENTRY * sum(map(len, self._members.values()))

    def choose(self, worker: int, outlook: Outlook) -> int | Refusal:
        """The task of the best group that has one for the worker."""
        assert self.tables is not None
        barred: set[Group] = set()
        free: Ints | None = None
        while True:
            group = self.tables.choose(self._counts, barred, outlook.left, outlook.given, self.seed, outlook.lease)
            if isinstance(group, str):
                if barred:
                    return "nothing_left_for_you"
                return "below_price" if group == "below price" else "all_leased"
            if self.has_held_all(worker):
                return "nothing_left_for_you"
            if free is None:
                task, looked_at_all = self._first(group, worker, outlook.start)
                if task is not None:
                    return task
                if not looked_at_all:
                    free = self.free_for(worker)
                    open_ = {self.group_of(one) for one in _distinct(self, free)}
                    barred.update(one for one in self._counts if one not in open_)
                    if group in barred:
                        continue
            if free is not None:
                task = self._first_of(free, group, outlook.start)
                if task is not None:
                    return task
            barred.add(group)

    def _first(self, group: Group, worker: int, start: float) -> tuple[int | None, bool]:
        """The first task from a place on, of the first few; and whether these were all."""
        members = self._list(group)
        begin = members.bisect_left((start, -1))
        inorder = chain(members.islice(begin), members.islice(0, begin))
        for _, task in islice(inorder, LOOKED_AT):
            if not self.has_held(task, worker):
                return task, True
        return None, len(members) <= LOOKED_AT

    def _first_of(self, free: Ints, group: Group, start: float) -> int | None:
        tasks, (class_id, node, w) = self.tasks, group
        mine = free[(tasks.class_id[free] == class_id) & (tasks.node[free] == node) & (tasks.w[free] == w)]
        if not len(mine):
            return None
        place = tasks.place[mine]
        return int(mine[np.lexsort((place, place < start))[0]])

    def _list(self, group: Group) -> Any:
        if group not in self._members:
            tasks, (class_id, node, w), n = self.tasks, group, self.published
            mine = (
                (tasks.class_id[:n] == class_id) & (tasks.node[:n] == node) & (tasks.w[:n] == w) & (tasks.gold[:n] < 0)
            )
            numbers = np.flatnonzero(mine)
            self._members[group] = SortedList(zip(tasks.place[numbers].tolist(), numbers.tolist(), strict=True))
        return self._members[group]

    def _leave(self, task: int) -> None:
        if task >= self.published or self.tasks.gold[task] >= 0:
            return
        group = self.group_of(task)
        self._counts[group] -= 1
        if not self._counts[group]:
            del self._counts[group]
            self._members.pop(group, None)
        elif group in self._members:
            self._members[group].remove((float(self.tasks.place[task]), task))

    def _enter(self, task: int) -> None:
        if task >= self.published or self.tasks.gold[task] >= 0:
            return
        group = self.group_of(task)
        count = self._counts.get(group, 0)
        self._counts[group] = count + 1
        if count == 0:
            self._members[group] = SortedList()
        if group in self._members:
            self._members[group].add((float(self.tasks.place[task]), task))

    def _entered(self, first: int) -> None:
        if self.published - first <= LOOKED_AT:
            for task in range(first, self.published):
                self._enter(task)
        else:
            self._counts, self._members = super().groups(), {}


def _distinct(pool: TaskPool, numbers: Ints) -> list[int]:
    """One task of each group among some tasks."""
    tasks = pool.tasks
    table = np.stack([tasks.class_id[numbers], tasks.node[numbers], tasks.w[numbers]])
    first: Ints = np.unique(table, axis=1, return_index=True)[1]
    return [int(one) for one in numbers[first]]
