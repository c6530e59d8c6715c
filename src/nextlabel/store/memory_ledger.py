"""One campaign in dictionaries, with the indexes that a database would have."""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from nextlabel.beliefs.prior import Prior
from nextlabel.campaign.crowd_model import CrowdModel
from nextlabel.campaign.events import Event
from nextlabel.campaign.rows import BatchRow, CampaignRow, Group, LeaseRow, TaskRow, WorkerRow
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.campaign.transitions import LEASED
from nextlabel.problem.state import TaskState
from nextlabel.store.memory_candidates import MemoryCandidates
from nextlabel.store.memory_imports import MemoryImports
from nextlabel.store.sorted_entries import SortedEntries


def new_row(id: str, config: CampaignSettings, now: float) -> CampaignRow:
    """A campaign before its first event."""
    return CampaignRow(id, config, now, config.budget, config.deadline, config.lease_seconds, config.rho)


class MemoryLedger:
    """One campaign in dictionaries; rows that are returned are copies."""

    def __init__(self, row: CampaignRow, imports: MemoryImports) -> None:
        self.row = row
        self.events: list[Event] = []
        self._imports = imports
        self._classes: list[Prior] = []
        self._batches: dict[str, BatchRow] = {}
        self._tasks: list[TaskRow] = []
        self._hidden: list[TaskRow] = []
        self._leases: dict[str, LeaseRow] = {}
        self._workers: dict[str, WorkerRow] = {}
        # Indexes: tasks by key, by group and score; leases by worker, by task, and by expiry if out.
        self._numbers: dict[str, int] = {}
        self._candidates = MemoryCandidates(self.task)
        self._out: defaultdict[str, dict[str, None]] = defaultdict(dict)
        self._by_task: defaultdict[int, list[str]] = defaultdict(list)
        self._by_worker: defaultdict[str, list[str]] = defaultdict(list)
        self._by_expiry = SortedEntries()
        self.crowd: CrowdModel | None = None

    def append(self, at: float, kind: str, data: dict[str, Any]) -> Event:
        """The next event of the log."""
        self.row.seq += 1
        self.row.last_at = at
        event = Event(self.row.seq, at, kind, copy.deepcopy(data))
        self.events.append(event)
        return event

    def log(self, after: int, limit: int) -> list[Event]:
        """Events above a number."""
        return self.events[after : after + limit]

    def last_event(self, kind: str) -> int | None:
        """The last event of a kind."""
        return next((event.seq for event in reversed(self.events) if event.kind == kind), None)

    def task_classes(self, first: int, end: int) -> Sequence[int]:
        """The classes of some tasks."""
        return [task.class_number for task in self._tasks[first:end]]

    def classes(self) -> Sequence[Prior]:
        """Priors in the order in which they came."""
        return self._classes

    def add_classes(self, priors: Sequence[Prior]) -> None:
        """More priors."""
        self._classes.extend(priors)

    def batch(self, key: str) -> BatchRow | None:
        """A batch that was added."""
        return self._batches.get(key)

    def save_batch(self, key: str, batch: BatchRow) -> None:
        """Remember a batch."""
        self._batches[key] = batch

    def add_tasks(self, tasks: Sequence[TaskRow]) -> None:
        """New tasks."""
        for task in tasks:
            self._tasks.append(replace(task))
            self._numbers[task.key] = task.number
            self._candidates.enter(self._tasks[-1])

    def add_hidden_tasks(self, tasks: Sequence[TaskRow]) -> None:
        """New tasks that are not published."""
        self._hidden.extend(replace(task) for task in tasks)

    def publish_hidden_tasks(self, counts: dict[Group, int]) -> None:
        """The hidden tasks are there."""
        hidden, self._hidden = self._hidden, []
        self.add_tasks(hidden)

    def importing(self) -> bool:
        """Whether an import is under way."""
        return self._imports.importing(self.row.id)

    def task(self, number: int) -> TaskRow:
        """A task by number, perhaps one that is hidden."""
        first = len(self._tasks)
        return replace(self._tasks[number] if number < first else self._hidden[number - first])

    def tasks_by_key(self, keys: Sequence[str]) -> dict[str, TaskRow]:
        """Those of the tasks that are there."""
        return {key: self.task(self._numbers[key]) for key in keys if key in self._numbers}

    def all_tasks(self) -> Iterator[TaskRow]:
        """Every task."""
        return (replace(task) for task in self._tasks)

    def tasks_after(self, after: int, limit: int) -> list[TaskRow]:
        """Some tasks in the order of numbers."""
        return [replace(task) for task in self._tasks[after + 1 : after + 1 + limit]]

    def move(self, task: TaskRow, state: TaskState, score: float | None) -> None:
        """Put a task into another state."""
        self._candidates.leave(self._tasks[task.number])
        self._tasks[task.number] = replace(task, node=state.node, w=state.w, score=score)
        self._candidates.enter(self._tasks[task.number])

    def rescore(
        self, score: Callable[[Sequence[TaskRow]], Sequence[float | None]], first: int = 0, until: int | None = None
    ) -> None:
        """Give tasks their scores."""
        some = self._tasks[first:until]
        for task, value in zip(some, score(some), strict=True):
            self._candidates.leave(task)
            task.score = value
            self._candidates.enter(task)

    def groups(self) -> dict[Group, int]:
        """Tasks in each state."""
        return self._candidates.counts

    def begin_search(self) -> None:
        """A new ask."""
        self._candidates.searches.begin()

    def search_ended(self) -> bool:
        """Whether the ask's search has looked at everything."""
        return self._candidates.searches.ended

    def pick(self, group: Group, worker: str, start: float) -> TaskRow | None:
        """A task of the group that the worker never held."""
        return self._candidates.pick(group, worker, start)

    def held_all(self, worker: str) -> bool:
        """Whether the worker has held every task."""
        return self._candidates.held(worker) >= self.row.tasks

    def best(self, worker: str) -> TaskRow | None:
        """The task of largest score that the worker never held."""
        return self._candidates.best(worker, self.row.tasks)

    def any_score(self) -> bool:
        """Whether some task may have another label."""
        return len(self._candidates.by_score) > 0

    def add_lease(self, lease: LeaseRow) -> None:
        """A new lease."""
        self._candidates.hold(lease.worker, self._tasks[lease.task])
        self._by_task[lease.task].append(lease.id)
        self._by_worker[lease.worker].append(lease.id)
        self._leases[lease.id] = replace(lease)
        self._give_out(self._leases[lease.id])

    def save_lease(self, lease: LeaseRow) -> None:
        """A lease that has changed."""
        self._take_back(self._leases[lease.id])
        self._leases[lease.id] = replace(lease)
        self._give_out(self._leases[lease.id])

    def lease(self, id: str) -> LeaseRow | None:
        """A lease by id."""
        return replace(self._leases[id]) if id in self._leases else None

    def open_leases(self, worker: str) -> list[LeaseRow]:
        """The worker's leases that are out."""
        out = (replace(self._leases[id]) for id in self._out.get(worker, ()))
        return sorted(out, key=lambda lease: lease.seq)

    def expired(self, now: float, limit: int) -> list[LeaseRow]:
        """Leases whose time is over."""
        found: list[LeaseRow] = []
        for until, _, id in self._by_expiry:
            if until > now or len(found) == limit:
                break
            found.append(replace(self._leases[id]))
        return found

    def next_expiry(self) -> float | None:
        """When the next lease expires."""
        return next((until for until, _, _ in self._by_expiry), None)

    def shorten_leases(self, given: float, until: float) -> None:
        """No lease expires after ``until``."""
        for lease in self._leases.values():
            self._take_back(lease)
            lease.expires_at = min(lease.expires_at, until)
            if lease.status == LEASED:
                lease.leased_at = min(lease.leased_at, given)
            self._give_out(lease)

    def set_gold(self, answers: Sequence[tuple[int, int]]) -> None:
        """Tasks with known answers."""
        for number, gold in answers:
            if number >= len(self._tasks):
                self._hidden[number - len(self._tasks)].gold = gold
                continue
            task = self._tasks[number]
            self._candidates.leave(task)
            task.gold, task.score = gold, None
            self._candidates.enter(task)

    def pick_control(self, worker: str, start: float) -> TaskRow | None:
        """A control question that the worker never held."""
        return self._candidates.pick_control(worker, start)

    def labels_of(self, worker: str, dropped: bool, after: int, limit: int) -> list[LeaseRow]:
        """Leases of a worker with labels that were bought."""
        held = (self._leases[id] for id in self._by_worker.get(worker, ()))
        mine = [one for one in held if one.counted and one.dropped == dropped]
        return [replace(one) for one in sorted(mine, key=lambda one: one.seq) if one.seq > after][:limit]

    def find_worker(self, worker: str) -> WorkerRow | None:
        """A worker's tally, if there is one."""
        found = self._workers.get(worker)
        return None if found is None or found.given == 0 else found

    def worker(self, worker: str) -> WorkerRow:
        """A worker's tally."""
        return self._workers.setdefault(worker, WorkerRow(worker))

    def differing_rows(self, right: MemoryLedger) -> dict[str, int]:
        """Rows of each table that are not those of another ledger."""
        pairs: dict[str, tuple[dict[Any, Any], dict[Any, Any]]] = {
            "classes": (dict(enumerate(self._classes)), dict(enumerate(right._classes))),
            "leases": (self._leases, right._leases),
            "tasks": (self._unscored(), right._unscored()),
            "states": (self._candidates.counts, right._candidates.counts),
            "workers": (self._workers, right._workers),
            "batches": (self._batches, right._batches),
            "campaigns": ({0: self.row}, {0: right.row}),
        }
        counts = {
            name: sum(1 for key in {*mine, *theirs} if mine.get(key) != theirs.get(key))
            for name, (mine, theirs) in pairs.items()
        }
        return {name: count for name, count in counts.items() if count}

    def _unscored(self) -> dict[int, TaskRow]:
        """Tasks, with no more of their scores than whether they have one."""
        tasks = [*self._tasks, *self._hidden]
        return {task.number: replace(task, score=None if task.score is None else 0.0) for task in tasks}

    def leases_of(self, tasks: Iterable[int]) -> list[LeaseRow]:
        """Leases of some tasks, in the order in which they were given out."""
        found = (replace(self._leases[id]) for task in set(tasks) for id in self._by_task.get(task, ()))
        return sorted(found, key=lambda lease: lease.seq)

    def all_workers(self) -> list[WorkerRow]:
        """Every worker."""
        return [replace(worker) for worker in self._workers.values()]

    def _give_out(self, lease: LeaseRow) -> None:
        if lease.status == LEASED:
            self._out[lease.worker][lease.id] = None
            self._by_expiry.add((lease.expires_at, lease.seq, lease.id))

    def _take_back(self, lease: LeaseRow) -> None:
        if lease.status == LEASED:
            del self._out[lease.worker][lease.id]
            self._by_expiry.remove((lease.expires_at, lease.seq, lease.id))
