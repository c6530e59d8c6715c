"""Who gets which task while tasks, workers and labels keep coming: the contract, and what every allocator knows.

An allocator has no clock and does no input or output. It follows what happens (``assign``, ``complete``, ``cancel``,
``reopen``, ``hold``, ``know``) and says who gets what (``choose``, which changes nothing). Entries are numbered in the
order in which tasks were given out, workers in the order in which they came; -1 is somebody who has never come.

============ ================ =======================================================================================
allocator    looks at         module
============ ================ =======================================================================================
tables       state of a task  ``policies.ordered``: few priors, groups by the scores of a policy's tables
scores       task             ``policies.ordered``: many priors, tasks by a score of their own
crowd        task and worker  ``policies.crowd.allocator``: workers who differ, learnt from their labels
============ ================ =======================================================================================

An entry is in flight, came in with an answer that counts, or is gone:

    assign --> in flight --complete--> answer        cancel: in flight --> gone        complete: gone --> answer
                   ^-------------reopen--------------- answer, gone
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final, Literal, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from nextlabel.arrays import Floats, Ints
from nextlabel.kernels.events import DRAW, TIE, stream_key
from nextlabel.model.simplex import simplex

#: Class, node and labels in flight of a task: tasks of one group are equally good.
Group = tuple[int, int, int]
Refusal = Literal["all_leased", "nothing_left_for_you", "below_price", "turned_away"]

#: What an entry has in the place of an answer.
IN_FLIGHT: Final = -1
GONE: Final = -2

#: Rows of new columns.
FIRST_ROWS: Final = 64

#: What a uniform is for: which of tied groups a lease goes to, where a task stands in its group, and where in it a
#: lease begins to look, and whether a worker gets a control question.
TIES, PLACES, STARTS, CONTROLS = 0, 1, 2, 3
_64_BITS = (1 << 64) - 1


class Outlook(NamedTuple):
    """What a choice may look at beside the tasks: numbered by ``lease``, which is the key of its chance.

    ``left`` labels can still be given out and ``given`` were; ``start`` is where among equal tasks the search begins;
    without ``must_serve`` somebody whose label is not worth its price may be turned away. ``eligible``: only these
    tasks may be given, where a record says who can label what.
    """

    lease: int
    left: int
    given: int = 0
    start: float = 0.0
    must_serve: bool = True
    eligible: Ints | None = None


class Allocator(Protocol):
    """Who gets which task; deterministic under its seed."""

    def choose(self, worker: int, outlook: Outlook) -> int | Refusal:
        """The task for a worker, or why there is none; changes nothing."""

    def assign(self, lease: int, task: int, worker: int) -> None:
        """The worker has been given the task."""

    def hold(self, lease: int, task: int, worker: int) -> None:
        """The worker has had the task unasked: it is not given to them again, and nothing is in flight."""

    def complete(self, lease: int, answer: int) -> None:
        """The label of an entry has come in and counts, perhaps after it was gone."""

    def cancel(self, lease: int) -> None:
        """The label of an entry in flight is not expected any more, or does not count."""

    def reopen(self, lease: int) -> None:
        """An entry that has an answer, or is gone, is in flight again."""

    def know(self, task: int, answer: int) -> None:
        """The task's truth is known: it is a control question from now on."""


class Columns:
    """Arrays of one length that grow together, by doubling; ``size`` rows are in use.

    From ``begin`` on it is noted which rows change (``touch``), so that they can be written elsewhere, or put back.
    """

    def __init__(self, **fills: tuple[type, Any]) -> None:
        self._fills, self.size, self.first = fills, 0, 0
        #: The values of the rows below ``first`` that have changed.
        self.before: dict[int, tuple[Any, ...]] = {}
        self._grow(FIRST_ROWS)

    def _grow(self, length: int) -> None:
        for name, (kind, fill) in self._fills.items():
            column: NDArray[Any] = np.full(length, fill, dtype=kind)
            column[: self.size] = getattr(self, name, column)[: self.size]
            setattr(self, name, column)
        self._all: list[NDArray[Any]] = [getattr(self, name) for name in self._fills]
        self._look()

    def _look(self) -> None:
        #: Views of the columns by name, through which one value is read and written in a quarter of the time.
        self._cells = {name: array.data for name, array in zip(self._fills, self._all, strict=True)}

    def __getstate__(self) -> dict[str, Any]:
        """What a copy is made of; it looks at its own columns."""
        return {name: value for name, value in vars(self).items() if name != "_cells"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._look()

    def __len__(self) -> int:
        return self.size

    def extend(self, rows: int, **values: Any) -> None:
        """More rows, with the values that are given and the usual ones elsewhere."""
        length = len(self._all[0])
        while length < self.size + rows:
            length *= 2
        if length > len(self._all[0]):
            self._grow(length)
        first, self.size = self.size, self.size + rows
        for name, value in values.items():
            getattr(self, name)[first : self.size] = value

    def row(self, number: int) -> tuple[Any, ...]:
        """The values of a row."""
        return tuple([cells[number] for cells in self._cells.values()])

    def put(self, number: int, **values: Any) -> None:
        """Other values of a row."""
        self.touch(number)
        for name, value in values.items():
            self._cells[name][number] = value

    def begin(self) -> None:
        """All rows are as they should be: from now on it is noted what changes."""
        self.first, self.before = self.size, {}

    def touch(self, number: int) -> None:
        """A row is about to change."""
        if number < self.first and number not in self.before:
            self.before[number] = self.row(number)

    @property
    def changed(self) -> list[int]:
        """The rows that have changed, and those that are new."""
        return [*self.before, *range(self.first, self.size)]

    def rollback(self) -> None:
        """Put back what has changed."""
        for array, (_, fill) in zip(self._all, self._fills.values(), strict=True):
            array[self.first : self.size] = fill
        self.size = self.first
        for number, values in self.before.items():
            for array, value in zip(self._all, values, strict=True):
                array[number] = value

    @property
    def nbytes(self) -> int:
        """Bytes that the arrays take."""
        return sum(array.nbytes for array in self._all)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The rows in use, by column."""
        return {name: array[: self.size] for name, array in zip(self._fills, self._all, strict=True)}


class TaskColumns(Columns):
    """``class_id`` and ``place`` of each task, its belief ``node``, ``w`` labels in flight and ``labels`` that came in.

    ``gold`` is the answer of a control question, else -1; ``last`` the last entry of the task, -1 if there is none.
    ``closed`` is what the pool's owner notes of a task that can have no more labels, else -1.
    """

    class_id: NDArray[np.int32]
    place: Floats
    node: NDArray[np.int32]
    w: NDArray[np.int32]
    labels: NDArray[np.int32]
    gold: Ints
    last: Ints
    closed: Ints

    def __init__(self) -> None:
        super().__init__(
            class_id=(np.int32, 0), place=(np.float64, 0.0), node=(np.int32, 0), w=(np.int32, 0), labels=(np.int32, 0),
            gold=(np.int64, -1), last=(np.int64, -1), closed=(np.int64, -1),
        )  # fmt: skip


class EntryColumns(Columns):
    """Who was given what: ``answer`` counts, or is ``IN_FLIGHT`` or ``GONE``; ``previous`` is the task's entry before.

    ``more``: what the pool's owner keeps of each.
    """

    task: Ints
    worker: NDArray[np.int32]
    answer: Ints
    previous: Ints

    def __init__(self, **more: tuple[type, Any]) -> None:
        super().__init__(
            task=(np.int64, -1), worker=(np.int32, -1), answer=(np.int64, GONE), previous=(np.int64, -1), **more
        )


class TaskPool:
    """Tasks, and who was given which: what every allocator knows. Tasks from ``published`` on are not there yet.

    Cost: a step a few microseconds; who has held a task is a walk along its entries.
    """

    def __init__(self, answers: int, most_labels: int, most_in_flight: int) -> None:
        self._lattice = answers, most_labels
        self.most_labels, self.most_in_flight = most_labels, most_in_flight
        self.tasks, self.entries = TaskColumns(), EntryColumns()
        self.published = 0
        #: How many tasks each worker has held.
        self.held: list[int] = []

    def take_over(self, other: TaskPool) -> Self:
        """Go on with the tasks and entries of another allocator."""
        self.tasks, self.entries, self.published, self.held = other.tasks, other.entries, other.published, other.held
        self._entered(0)
        return self

    # What happens

    def publish(self) -> None:
        """All tasks are there from now on."""
        first, self.published = self.published, self.tasks.size
        self._entered(first)

    def assign(self, lease: int, task: int, worker: int) -> None:
        """The worker has been given the task."""
        self._leave(task)
        self.hold(lease, task, worker)
        self.entries.answer[lease] = IN_FLIGHT
        self.tasks.w[task] += 1
        self._enter(task)

    def hold(self, lease: int, task: int, worker: int) -> None:
        """The worker has had the task unasked, and nothing is in flight."""
        assert lease == self.entries.size, "entries are numbered in the order in which tasks are given out"
        self.entries.extend(1, task=task, worker=worker, previous=self.tasks.last[task])
        self.tasks.put(task, last=lease)
        self.held += [0] * (worker + 1 - len(self.held))
        self.held[worker] += 1

    def complete(self, lease: int, answer: int) -> None:
        """The label of an entry has come in and counts; that of a control question says nothing of its task."""
        task, tasks = self._take(lease), self.tasks
        if self.entries.answer[lease] == IN_FLIGHT:
            tasks.w[task] -= 1
        self.entries.answer[lease] = answer
        if tasks.gold[task] < 0:
            self._count(task, answer)
        self._enter(task)

    def cancel(self, lease: int) -> None:
        """The label of an entry in flight is not expected any more, or does not count."""
        task = self._take(lease)
        self.tasks.w[task] -= 1
        self.entries.answer[lease] = GONE
        self._enter(task)

    def reopen(self, lease: int) -> None:
        """An entry that has an answer, or is gone, is in flight again."""
        task, tasks, answer = self._take(lease), self.tasks, int(self.entries.answer[lease])
        tasks.w[task] += 1
        self.entries.answer[lease] = IN_FLIGHT
        if answer >= 0 and tasks.gold[task] < 0:
            tasks.labels[task] -= 1
            tasks.node[task] = self._node_before(int(tasks.node[task]), answer)
        self._enter(task)

    def know(self, task: int, answer: int) -> None:
        """The task is a control question from now on."""
        self._leave(task)
        self.tasks.gold[task] = answer
        self._enter(task)

    def forget_truth(self, task: int) -> None:
        """The task's truth is not known any more: its belief follows from the labels that count."""
        self._leave(task)
        self.tasks.put(task, gold=-1, labels=0, node=0)
        for entry in self.entries_of(task):
            if self.entries.answer[entry] >= 0:
                self._count(task, int(self.entries.answer[entry]))
        self._enter(task)

    def begin(self) -> None:
        """From now on it is noted what changes."""
        self.tasks.begin()
        self.entries.begin()

    def rollback(self) -> None:
        """Put back what has changed since then."""
        for worker in self.entries.worker[self.entries.first : self.entries.size].tolist():
            self.held[worker] -= 1
        changed = self.tasks.changed
        for task in changed:
            self._leave(task)
        self.tasks.rollback()
        self.entries.rollback()
        for task in changed:
            self._enter(task)

    # What is asked

    def entries_of(self, task: int) -> Iterator[int]:
        """The entries of a task, the last one first."""
        entry = int(self.tasks.last[task])
        while entry >= 0:
            yield entry
            entry = int(self.entries.previous[entry])

    def has_held(self, task: int, worker: int) -> bool:
        """Whether the worker was ever given the task."""
        return any(self.entries.worker[entry] == worker for entry in self.entries_of(task))

    def has_held_all(self, worker: int) -> bool:
        """Whether nothing is left for the worker, whatever is open."""
        return 0 <= worker < len(self.held) and self.held[worker] >= self.published

    def free_for(self, worker: int) -> Ints:
        """The tasks but controls that the worker has never held, in the order of their numbers."""
        free = self.tasks.gold[: self.published] < 0
        held = self.entries.task[: self.entries.size][self.entries.worker[: self.entries.size] == worker]
        free[held[held < self.published]] = False
        return np.flatnonzero(free)

    def group_of(self, task: int) -> Group:
        """Class, node and labels in flight of a task."""
        tasks = self.tasks
        return int(tasks.class_id[task]), int(tasks.node[task]), int(tasks.w[task])

    def groups(self) -> dict[Group, int]:
        """How many of the tasks that are there, but controls, are in each group."""
        return self.count(np.flatnonzero(self.tasks.gold[: self.published] < 0))

    def count(self, numbers: Ints) -> dict[Group, int]:
        """How many of these tasks are in each group."""
        tasks = self.tasks
        table = np.stack([tasks.class_id[numbers], tasks.node[numbers], tasks.w[numbers]])
        states, counts = np.unique(table, axis=1, return_counts=True)
        return {(k, node, w): c for k, node, w, c in zip(*states.tolist(), counts.tolist(), strict=True)}

    def has_room(self, task: int) -> bool:
        """Whether the task may have one more label, and one more worker at it."""
        w = self.tasks.w[task]
        return bool(w < self.most_in_flight and self.tasks.labels[task] + w < self.most_labels)

    @property
    def nbytes(self) -> int:
        """Bytes in memory, about."""
        return self.tasks.nbytes + self.entries.nbytes

    def _take(self, lease: int) -> int:
        """An entry is about to change, and its task, whose number is returned."""
        task = int(self.entries.task[lease])
        self.entries.touch(lease)
        self._leave(task)
        return task

    def _count(self, task: int, answer: int) -> None:
        """One label more of a task; numbers, which nodes do not tell apart, are counted as one answer."""
        tasks, (answers, most) = self.tasks, self._lattice
        tasks.labels[task] += 1
        tasks.node[task] = simplex(answers, most)[1][tasks.node[task], min(answer, answers - 1)]

    def _node_before(self, node: int, answer: int) -> int:
        """The node with one label of that answer less."""
        first, child, counts = simplex(*self._lattice)
        level = int(counts[node].sum())
        low, high = int(first[level - 1]), int(first[level])
        return low + int(np.flatnonzero(child[low:high, min(answer, self._lattice[0] - 1)] == node)[0])

    # What allocators with an order of tasks do

    def _leave(self, task: int) -> None:
        """A task is about to change."""
        self.tasks.touch(task)

    def _enter(self, task: int) -> None:
        """A task has changed."""

    def _entered(self, first: int) -> None:
        """Tasks from ``first`` on are there."""


def chance(seed: int, what: int, number: int) -> float:
    """Uniform in (0, 1): ``kernels.events.uniform``, in whole numbers of Python's, because a call of it costs more."""
    return ((_mix(_mix(_key(seed, what, TIE) ^ number)) >> 11) + 0.5) * (1.0 / 9007199254740992.0)


def _mix(x: int) -> int:
    """SplitMix64."""
    z = (x + 0x9E3779B97F4A7C15) & _64_BITS
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _64_BITS
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _64_BITS
    return z ^ (z >> 31)


def starting_place(seed: int, lease: int) -> float:
    """Where a lease begins to look for a task of its group, among the places of the tasks."""
    return chance(seed, STARTS, lease)


@lru_cache(maxsize=4096)
def _key(seed: int, what: int, stream: int) -> int:
    return int(stream_key(seed, what, stream))


def draw_key(seed: int) -> np.uint64:
    """Key of the draws that Thompson sampling makes, as simulations of that seed make them."""
    return np.uint64(_key(seed, 0, DRAW))
