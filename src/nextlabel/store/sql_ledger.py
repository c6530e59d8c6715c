"""One campaign inside one transaction of a database: the contract of ``campaign.ledger``, written back at the end.

Rows that are read stay in memory until the transaction ends, and what changes is written by one statement for each
table (``store.ledger_rows``). The few questions that need stored rows to be up to date have them written first.
Here are the tasks; what they stand on is in ``store.ledger_state``.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from nextlabel.campaign.rows import CampaignRow, Group, TaskRow
from nextlabel.problem.state import TaskState
from nextlabel.store import statements as sql
from nextlabel.store.bulk import ADD_PAYLOADS, ADD_TASKS
from nextlabel.store.cached_rows import CachedRows
from nextlabel.store.candidates import Candidates
from nextlabel.store.ledger_leases import LedgerLeases
from nextlabel.store.prepared import Row, Runner
from nextlabel.store.row_mapping import task_from, task_values

#: Rows that are read or written at once.
CHUNK = 10_000
#: Characters of a payload beyond which its task is not remembered; the payload's column in ``statements.TASK``.
LARGE_PAYLOAD, PAYLOAD = 1000, 2


class SqlLedger(LedgerLeases):
    """One campaign inside one transaction."""

    def __init__(self, runner: Runner, number: int, row: CampaignRow, cached: CachedRows) -> None:
        super().__init__(runner, number, row, cached)
        self.candidates = Candidates(self, runner)

    def add_tasks(self, tasks: Sequence[TaskRow]) -> None:
        """New tasks."""
        groups = self._groups()
        self.add_hidden_tasks(tasks)
        for group, count in Counter(task.group for task in tasks).items():
            groups[group] = groups.get(group, 0) + count
            self._changed_groups.add(group)
        self.candidates.forget()

    def add_hidden_tasks(self, tasks: Sequence[TaskRow]) -> None:
        """New tasks that are not published: asks stop before their places."""
        payloads = [(self._number, task.number, json.dumps(task.payload)) for task in tasks]
        rows = [task_values(self._number, task) for task in tasks]
        self._runner.write_rows(ADD_PAYLOADS, payloads)
        self._runner.write_rows(ADD_TASKS, [tuple(row[name] for name in ADD_TASKS.columns) for row in rows])

    def publish_hidden_tasks(self, counts: dict[Group, int]) -> None:
        """Count the hidden tasks."""
        groups = self._groups()
        for group, count in counts.items():
            groups[group] = groups.get(group, 0) + count
        self._changed_groups.update(counts)
        self.candidates.forget()

    def task(self, number: int) -> TaskRow:
        """A task by number."""
        if number not in self.rows.tasks:
            found = self._runner.one(sql.task_by_number, self._parameters(number=number))
            assert found is not None
            self.read_task(found)
        return self.rows.tasks[number]

    def read_task(self, row: Row, holders: Sequence[str] | None = None) -> TaskRow:
        """A task as it is stored, remembered."""
        if len(row[PAYLOAD]) > LARGE_PAYLOAD:
            self.rows.large.add(row[0])
        return self.rows.know_task(task_from(row), holders)

    def tasks_by_key(self, keys: Sequence[str]) -> dict[str, TaskRow]:
        """Those of the tasks that are there."""
        if not keys:
            return {}
        found = self.connection.execute(sql.tasks_by_key, self._parameters(keys=list(keys)))
        tasks = [task_from(tuple(row)) for row in found]
        return {task.key: self.rows.tasks.get(task.number, task) for task in tasks if task.number < self.row.tasks}

    def all_tasks(self, first: int = 0, until: int | None = None) -> Iterator[TaskRow]:
        """Every task, or those from number ``first`` to the one before ``until``."""
        self.write_rows()
        after, end = first - 1, self.row.tasks if until is None else until
        while True:
            which = self._parameters(after=after, until=end, many=CHUNK)
            some = [task_from(row) for row in self._runner.all(sql.tasks_after, which)]
            yield from some
            if len(some) < CHUNK:
                return
            after = some[-1].number

    def move(self, task: TaskRow, state: TaskState, score: float | None) -> None:
        """Put a task into another state."""
        groups = self._groups()
        before, after = self.rows.move(task, state, score)
        if task.gold is not None:
            return  # it is in no group
        groups[before] -= 1
        groups[after] = groups.get(after, 0) + 1
        self._changed_groups |= {before, after}

    def rescore(
        self, score: Callable[[Sequence[TaskRow]], Sequence[float | None]], first: int = 0, until: int | None = None
    ) -> None:
        """Give tasks their scores."""
        for some in _chunks(self.all_tasks(first, until)):
            values = zip(some, score(some), strict=True)
            rows = [{"b_campaign": self._number, "b_number": task.number, "score": value} for task, value in values]
            self._runner.write(sql.score_task, rows)
        self.rows.forget_tasks()
        self.candidates.forget()

    def pick(self, group: Group, worker: str, start: float) -> TaskRow | None:
        """A task of the group that the worker never held."""
        return self.candidates.pick(group, worker, start)

    def begin_search(self) -> None:
        """A new ask."""
        self.cached.searches.begin()

    def search_ended(self) -> bool:
        """Whether the ask's search has looked at everything."""
        return self.cached.searches.ended

    def held_all(self, worker: str) -> bool:
        """Whether the worker is known to have held every task."""
        return self.candidates.held_all(worker)

    def best(self, worker: str) -> TaskRow | None:
        """The task of largest score that the worker never held."""
        return self.candidates.best(worker)

    def any_score(self) -> bool:
        """Whether some task may have another label."""
        self.write_rows()
        return self._runner.one(sql.scored_task, self._parameters()) is not None

    def set_gold(self, answers: Sequence[tuple[int, int]]) -> None:
        """Tasks with known answers."""
        groups = self._groups()
        before = {number: self.task(number) for number, _ in answers}
        self.write_rows()
        for number, task in before.items():
            if task.gold is None and number < self.row.tasks:
                groups[task.group] -= 1
                self._changed_groups.add(task.group)
        rows = [
            {"b_campaign": self._number, "b_number": number, "gold": gold, "klass": ~before[number].class_number}
            for number, gold in answers
        ]
        self._runner.write(sql.set_gold, rows)
        self.held_counts.forget()  # they are counted by groups
        for number in before:
            self.rows.forget_task(number)
        self._forget_questions()

    def pick_control(self, worker: str, start: float) -> TaskRow | None:
        """A control question that the worker never held."""
        self.write_rows()
        for place in (start, 0.0):
            which = self._parameters(worker=worker, start=place, until=self.row.tasks)
            found = self._runner.one(sql.control_from, which)
            if found is not None:
                return self.rows.know_task(task_from(found))
        return None

    def _forget_questions(self) -> None:
        super()._forget_questions()
        self.candidates.forget()


def _chunks(tasks: Iterator[TaskRow]) -> Iterator[list[TaskRow]]:
    while some := list(islice(tasks, CHUNK)):
        yield some
