"""The task that an ask gets: what the database says about stored tasks, and what memory says about touched ones.

The rule is the contract's (``campaign.ledger``): of a group, the first task from a place on that the worker never held;
of ranked tasks, the one of largest score. A stored answer counts if its task is untouched; touched tasks are compared
with it here. So the choice is that of a ledger which writes every change before it asks.

On PostgreSQL the first question about a group is asked for all workers who are expected to ask in the transaction, each
with the place at which their lease will begin to look. A prediction that turns out wrong costs one more question.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from nextlabel.campaign.chance import starting_place
from nextlabel.campaign.rows import Group, TaskRow
from nextlabel.store import long_searches, questions
from nextlabel.store.ledger_rows import key_of_place, key_of_score
from nextlabel.store.prepared import Row, Runner

if TYPE_CHECKING:
    from nextlabel.store.sql_ledger import SqlLedger

#: Tasks that are asked for each worker where it is likely that others take some of them first: in a group that has
#: fewer tasks than so many for each worker.
SPARE, CROWDED = 3, 20
#: Ranked tasks that are read first, and two more for each worker who is going to ask.
FEW_EXAMINED = 6
#: A group of at most so many tasks, all of which are in memory, is judged there.
FEW = 64


class Candidates:
    """Answers ``pick`` and ``best`` for one campaign in one transaction."""

    def __init__(self, ledger: SqlLedger, runner: Runner) -> None:
        self._ledger, self._runner, self._row, self._rows = ledger, runner, ledger.row, ledger.rows
        self._dialect = runner.dialect_name
        self._expected: list[str] = []
        self._answers: dict[Group, dict[tuple[str, float], list[int]]] = {}
        #: The best of the ranked tasks, of so many that were asked for.
        self._ranked: list[int] = []
        self._examined = 0

    def expect(self, workers: Sequence[str]) -> None:
        """These workers are going to ask, in this order."""
        self._expected = list(dict.fromkeys(workers))

    def forget(self) -> None:
        """Stored rows have changed: what was read before is no longer true."""
        self._answers, self._ranked, self._examined = {}, [], 0

    def held_all(self, worker: str) -> bool:
        """Whether the worker is known to have held every task that is there."""
        if self._ledger.worker(worker).given >= self._row.tasks:
            return True
        counts = self._ledger.held_counts.known(worker)
        if not counts or any(not self._held(number, worker) for number in self._rows.stored_group):
            return False
        return all(self._exhausted(group, counts) for group, tasks in self._ledger.groups().items() if tasks)

    def pick(self, group: Group, worker: str, start: float) -> TaskRow | None:
        """Of the group's tasks that the worker never held: the first at place ``start`` or later, else the first."""
        if self._ledger.worker(worker).given >= self._row.tasks:
            return None  # a worker has each task once
        known = self._rows.in_group.get(group, ())
        if len(known) <= FEW and len(known) == self._ledger.groups().get(group, 0):  # all of them are here
            every = (self._rows.tasks[number] for number in known)
            free = [task for task in every if not self._held(task.number, worker)]
            return min(free, key=lambda task: key_of_place(task, start), default=None)
        found = [self._rows.tasks[number] for number in self._rows.entered.get(group, ())]
        found = [task for task in found if not self._held(task.number, worker)]
        stored = self._first_stored(group, worker, start)
        if stored is not None:
            found.append(stored)
        return min(found, key=lambda task: key_of_place(task, start), default=None)

    def best(self, worker: str) -> TaskRow | None:
        """Of the tasks with a score that the worker never held: the one with the largest, then the largest place."""
        if self._ledger.worker(worker).given >= self._row.tasks:
            return None
        touched = (self._rows.tasks[number] for number in self._rows.stored_group)
        found = [task for task in touched if task.score is not None and not self._held(task.number, worker)]
        stored = self._best_stored(worker)
        if stored is not None:
            found.append(stored)
        return max(found, key=key_of_score, default=None)

    def _stored(self, group: Group) -> int:
        """How many tasks are stored in the group."""
        return self._ledger.groups().get(group, 0) - self._rows.group_change[group]

    def _exhausted(self, group: Group, counts: Mapping[Group, int]) -> bool:
        """Whether a worker with these counts has held every task that is stored in the group."""
        return bool(counts) and counts.get(group, 0) >= self._stored(group)

    def _held(self, task: int, worker: str) -> bool:
        if task not in self._rows.holders:
            found = self._runner.ask(questions.holders(self._dialect), {"campaign": self._rows.number, "task": task})
            self._rows.know_holders(task, [name for (name,) in found])
        return worker in self._rows.holders[task]

    def _first_stored(self, group: Group, worker: str, start: float) -> TaskRow | None:
        """The first untouched task."""
        if self._exhausted(group, self._ledger.held_counts.known(worker)):
            return None
        if self._dialect == "postgresql" and worker in self._expected:
            for number in self._foresee(group, worker, start):
                if number not in self._rows.stored_group:
                    return self._rows.tasks[number]
        which = self._which(group, worker=worker, start=start, many=1 + self._rows.left[group])
        first = self._first(questions.pick_from, which)
        if first is not None:
            return first
        large = self._stored(group) > questions.MOST_EXAMINED
        if not large or self._window_ends(which):
            first = self._first(questions.pick_before, which)
            if first is not None or not large:
                return first
        return self._search(group, which)

    def _first(self, question: Callable[[str], questions.Question], which: dict[str, Any]) -> TaskRow | None:
        """The first untouched task of an answer: as a rule the first of all, so that more are asked for only if not."""
        if self._dialect == "sqlite":  # rows are found as they are read
            for row in self._runner.stream(question(self._dialect), which):
                if row[0] not in self._rows.stored_group:
                    return self._read([row])[0]
            return None
        for many in sorted({1, which["many"]}):
            rows = self._runner.ask(question(self._dialect), {**which, "many": many})
            for row in rows:
                if row[0] not in self._rows.stored_group:
                    return self._read([row])[0]
            if len(rows) < many:
                return None
        return None

    def _window_ends(self, which: dict[str, Any]) -> bool:
        """Whether the window from ``start`` on had all tasks that there are."""
        ((examined,),) = self._runner.ask(questions.window_size(self._dialect), which)
        return bool(examined < questions.MOST_EXAMINED)

    def _search(self, group: Group, which: dict[str, Any]) -> TaskRow | None:
        """The first untouched task, however many there are that the worker has held; from now on they are counted."""
        counts = self._ledger.held_counts.read(which["worker"])
        if not counts:
            self._ledger.write_rows()
            counts = self._ledger.held_counts.begin(which["worker"])
        if self._exhausted(group, counts):
            return None
        if self._stored(group) > long_searches.MOST_SEARCHED:
            return self._ledger.cached.searches.in_group(which["worker"], group, which["start"], self._places(which))
        first = self._first(questions.search_from, which)
        return first if first is not None else self._first(questions.search_before, which)

    def _foresee(self, group: Group, worker: str, start: float) -> list[int]:
        """Tasks for the worker from ``start`` on, asked for together with those for the workers after them."""
        answers = self._answers.setdefault(group, {})
        if (worker, start) not in answers:
            self._expected = self._expected[self._expected.index(worker) :]
            seed, segments, first = self._row.config.seed, self._row.rules.segments, self._row.given
            leases = range(first, first + len(self._expected))
            starts = [starting_place(seed, lease, segments) for lease in leases]
            if len(starts) < 2 or starts[0] != start:
                return []
            crowded = self._stored(group) < CROWDED * len(starts)
            which = self._which(group, workers=self._expected, starts=starts, many=SPARE if crowded else 1)
            answers.update({pair: [] for pair in zip(self._expected, starts, strict=True)})
            begins = dict(zip(self._expected, starts, strict=True))
            for name, *found in self._runner.ask(questions.picks_from(self._dialect), which):
                (task,) = self._read([tuple(found)])
                answers[name, begins[name]].append(task.number)
            for numbers in answers.values():
                numbers.sort(key=lambda number: self._rows.tasks[number].place)
        return answers.get((worker, start), [])

    def _best_stored(self, worker: str) -> TaskRow | None:
        """The best untouched task: from the top of all, if there is one for the worker, else by a question."""
        few = min(FEW_EXAMINED + 2 * len(self._expected), questions.MOST_EXAMINED)
        for examined in (few, questions.MOST_EXAMINED):  # nearly always one of the first is free
            if self._examined < examined:
                asked = {"campaign": self._rows.number, "examined": examined}
                found = self._read(self._runner.ask(questions.best_of_all(self._dialect), asked))
                self._ranked, self._examined = [task.number for task in found], examined
            for number in self._ranked:
                if number not in self._rows.stored_group and worker not in self._rows.holders[number]:
                    return self._rows.tasks[number]
            if len(self._ranked) < self._examined:
                return None
        which = {"campaign": self._rows.number, "worker": worker, "many": 1 + len(self._rows.stored_group)}
        if self._row.tasks > long_searches.MOST_SEARCHED:
            return self._ledger.cached.searches.in_ranked(worker, self._row.tasks, self._scores(which))
        return self._first(questions.search_best, which)

    def _places(self, which: dict[str, Any]) -> long_searches.Window[float]:
        """Windows of a group, from a place on."""

        def window(start: float, until: float, examined: int) -> tuple[TaskRow | None, float | None]:
            asked = {**which, "start": start, "examined": examined}
            first = self._first(questions.window_from, asked)
            if first is not None:
                return first, None
            del asked["many"], asked["worker"]
            last = self._runner.ask(questions.last_from(self._dialect), asked)
            return None, last[0][0] if last else None

        return window

    def _scores(self, which: dict[str, Any]) -> long_searches.Window[long_searches.Score]:
        """Windows of ranked tasks, from a score down to another."""

        def window(
            start: long_searches.Score, until: long_searches.Score, examined: int
        ) -> tuple[TaskRow | None, long_searches.Score | None]:
            between = {"score": start[0], "place": start[1], "least": until[0], "least_place": until[1]}
            first = self._first(questions.best_window, {**which, **between, "examined": examined})
            if first is not None:
                return first, None
            asked = {"campaign": which["campaign"], **between, "examined": examined}
            last = self._runner.ask(questions.last_of_best(self._dialect), asked)
            return None, (last[0][0], last[0][1]) if last else None

        return window

    def _read(self, found: Sequence[Row]) -> list[TaskRow]:
        """Rows of tasks with their holders, remembered."""
        return [
            self._ledger.read_task(tuple(task), questions.holders_of(self._dialect, names)) for *task, names in found
        ]

    def _which(self, group: Group, **more: Any) -> dict[str, Any]:
        klass, node, w = group
        end = float(self._row.rules.segments)  # tasks that are not published have later places
        return {"campaign": self._rows.number, "klass": klass, "node": node, "w": w, "end": end, **more}
