"""The allocator of a live campaign for numbers: who comes gets the item of which least is known.

A label of precision t takes the variance v of an item to 1 / (1 / v + t), whatever it says (``solve.numbers``), and
v - 1 / (1 / v + t) grows with v whatever t is. So the item with the largest variance is the best one for everybody,
and t is needed only for what a label has left of it: labels in flight count as if they had come in. ``learn`` takes
over the precisions of workers as they were fitted (``crowd.numbers``); between two fits a label moves its own item.
Nobody is turned away here but by the campaign, whose answers are noise.

Guarantee: heuristic, deterministic under the seed, and a function of entries and fit. Cost: O(items) a choice.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nextlabel.arrays import Bools, Floats, Ints
from nextlabel.crowd.fit import CrowdLabels
from nextlabel.crowd.numbers import NumberFit
from nextlabel.policies.allocation import GONE, IN_FLIGHT, PLACES, Columns, Outlook, Refusal, chance
from nextlabel.policies.crowd.allocator import CrowdSettings


class NumberItems(Columns):
    """Items: the known number or -1, labels that ``came`` in and in ``flight``, limits, precision, and a random tie."""

    gold: Ints
    came: Ints
    flight: Ints
    most_labels: Ints
    most_in_flight: Ints
    precision: Floats
    tie: Floats

    def __init__(self) -> None:
        whole = dict.fromkeys(("came", "flight", "most_labels", "most_in_flight"), (np.int64, 0))
        super().__init__(gold=(np.int64, -1), precision=(np.float64, 1.0), tie=(np.float64, 0.0), **whole)


class NumberEntries(Columns):
    """Who was given what, by lease: ``answer`` is its number, or ``IN_FLIGHT`` or ``GONE``."""

    task: Ints
    worker: Ints
    answer: Ints

    def __init__(self) -> None:
        super().__init__(task=(np.int64, -1), worker=(np.int64, -1), answer=(np.int64, GONE))


class NumberCrowd:
    """Items, workers and what was given out, as ``GrowingCrowd`` has them of choices."""

    def __init__(self, seed: int = 0) -> None:
        self.items, self.given_out = NumberItems(), NumberEntries()
        self.tasks = self.people = 0
        self.planned = False
        self.settings = CrowdSettings(seed=seed)
        self.fit: NumberFit | None = None

    @property
    def entries(self) -> int:
        """Entries so far."""
        return self.given_out.size

    @property
    def gold(self) -> Ints:
        """(tasks,) the known number of each item, else -1."""
        return self.items.gold[: self.items.size]

    @property
    def came(self) -> Ints:
        """(tasks,) labels that count."""
        return self.items.came[: self.items.size]

    @property
    def nbytes(self) -> int:
        """Bytes in memory, about."""
        return self.items.nbytes + self.given_out.nbytes

    # What grows

    def add_tasks(self, tasks: int, most_labels: int, most_in_flight: int) -> None:
        """More items, which are given out from now on."""
        first, self.tasks = self.tasks, self.tasks + tasks
        self.reserve_tasks(self.tasks)
        self.items.most_labels[first : self.tasks] = most_labels
        self.items.most_in_flight[first : self.tasks] = most_in_flight

    def reserve_tasks(self, tasks: int) -> None:
        """Make place for so many items."""
        new = range(self.items.size, tasks)
        if new:
            self.items.extend(len(new), tie=[chance(self.settings.seed, PLACES, task) for task in new])

    def add_worker(self, comes: bool = True) -> int:
        """One more worker; return their number."""
        self.people += 1
        return self.people - 1

    def know(self, task: int, answer: int) -> None:
        """The number is known: the item is given out no more."""
        self.reserve_tasks(task + 1)
        self.items.gold[task] = answer

    def forget_truth(self, task: int) -> None:
        """It is not known any more."""
        self.items.gold[task] = -1

    # Steps

    def turn_away(self, worker: int, visits: int) -> None:
        """The worker came and was given nothing."""

    def assign(self, lease: int, task: int, worker: int) -> None:
        """The worker has been given the item."""
        self._enter(lease, task, worker, IN_FLIGHT)
        self.items.flight[task] += 1
        self._weigh(lease, 1)

    def hold(self, lease: int, task: int, worker: int) -> None:
        """The worker has had the item unasked, and nothing is in flight."""
        self._enter(lease, task, worker, GONE)

    def complete(self, lease: int, answer: int) -> None:
        """The label of an entry has come in and counts, perhaps after it was gone."""
        task = self._leave_flight(lease, 1)
        self.items.came[task] += 1
        self.given_out.answer[lease] = answer

    def cancel(self, lease: int) -> None:
        """The label of an entry in flight is not expected any more, or does not count."""
        self.items.flight[self.given_out.task[lease]] -= 1
        self._weigh(lease, -1)
        self.given_out.answer[lease] = GONE

    def reopen(self, lease: int) -> None:
        """An entry that has an answer, or is gone, is in flight again."""
        task, gone = self.given_out.task[lease], self.given_out.answer[lease] == GONE
        self.items.came[task] -= not gone
        self.items.flight[task] += 1
        self._weigh(lease, int(gone))
        self.given_out.answer[lease] = IN_FLIGHT

    def predict(self, task: int, worker: int, answer: int) -> None:
        """The label of a model, which takes none of the places that the item has for labels."""
        self._enter(self.entries, task, worker, GONE)
        self.restore_prediction(self.entries - 1, answer)

    def withdraw_prediction(self, entry: int) -> None:
        """The label of a model does not count any more."""
        self._weigh(entry, -1)
        self.given_out.answer[entry] = GONE

    def restore_prediction(self, entry: int, answer: int) -> None:
        """It counts again."""
        self._weigh(entry, 1)
        self.given_out.answer[entry] = answer

    def _enter(self, lease: int, task: int, worker: int, answer: int) -> None:
        assert lease == self.entries, "entries are numbered in the order in which tasks are given out"
        self.reserve_tasks(task + 1)
        self.given_out.extend(1, task=task, worker=worker, answer=answer)

    def _leave_flight(self, lease: int, change: int) -> int:
        """The entry's item; a label that was gone weighs again, one in flight is so no more."""
        task = int(self.given_out.task[lease])
        if self.given_out.answer[lease] == GONE:
            self._weigh(lease, change)
        else:
            self.items.flight[task] -= change
        return task

    def _weigh(self, lease: int, change: int) -> None:
        own = self.precisions(self.given_out.worker[lease : lease + 1])[0]
        self.items.precision[self.given_out.task[lease]] += change * own

    # Snapshots

    def facts(self) -> dict[str, Any]:
        """What is known beside ``columns``."""
        return {"tasks": self.tasks, "people": self.people}

    def columns(self) -> dict[str, Ints | Floats]:
        """All that ``learn`` is a function of, beside the fit."""
        return {**self.items.arrays(), **self.given_out.arrays()}

    def restore(self, facts: dict[str, Any], columns: dict[str, Any]) -> None:
        """Become the crowd, before its next ``learn``, that these were taken from; this one must be new."""
        self.tasks, self.people = facts["tasks"], facts["people"]
        for table in (self.items, self.given_out):
            own = {name: columns[name] for name in table.arrays()}
            table.extend(len(next(iter(own.values()))), **own)

    # Learning and choosing

    def labels(self, tasks: int) -> CrowdLabels:
        """The labels that count."""
        entries = self.given_out.arrays()
        came = np.flatnonzero(entries["answer"] >= 0)
        task, worker, answer = (entries[name][came] for name in ("task", "worker", "answer"))
        return CrowdLabels(task, worker, answer, tasks, self.people, 1)

    def precisions(self, worker: Ints) -> Floats:
        """What a label of each of these workers adds to the precision of its item."""
        return np.ones(len(worker)) if self.fit is None else self.fit.precisions(worker)

    def learn(self, fit: NumberFit | None, turn_away: bool, expert: float = 0.0) -> None:
        """Take over what was learnt from the labels so far; None before there are any."""
        self.fit, self.planned = fit, True
        self.settings = CrowdSettings(turn_away=turn_away, seed=self.settings.seed, expert=expert)
        entries, n = self.given_out.arrays(), self.items.size
        there = entries["answer"] != GONE
        own = self.precisions(entries["worker"][there])
        first = 1.0 if fit is None else 1.0 / fit.first[1]
        self.items.precision[:n] = first + np.bincount(entries["task"][there], own, n)[:n]

    @property
    def at_random(self) -> Bools:
        """(people,) whose answers have nothing to do with the items."""
        found = np.zeros(self.people, dtype=np.bool_)
        if self.fit is not None:
            found[: len(self.fit.gain)] = self.fit.at_random
        return found

    def choose(self, worker: int, outlook: Outlook) -> int | Refusal:
        """The item that least is known of, of those that the worker has never held; -1 is somebody new."""
        items, n = self.items, self.tasks
        room = (items.gold[:n] < 0) & (items.flight[:n] < items.most_in_flight[:n])
        room &= items.came[:n] + items.flight[:n] < items.most_labels[:n]
        if outlook.eligible is not None:
            eligible = np.zeros(n, dtype=np.bool_)
            eligible[outlook.eligible] = True
            room &= eligible
        if not room.any():
            return "all_leased"
        entries = self.given_out.arrays()
        held = entries["task"][entries["worker"] == worker]
        room[held[held < n]] = False
        free = np.flatnonzero(room)
        if not len(free):
            return "nothing_left_for_you"
        key = np.round(items.precision[free], 9)
        least = free[key == key.min()]
        return int(least[np.argmin(items.tie[least])])
