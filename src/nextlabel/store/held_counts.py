"""How many tasks of each group a worker has held: a group in which they have held all is passed over at no cost.

Nothing is counted for a worker who finds a task among the first that a search examines, and that is nearly everybody.
When a search has examined a whole window in vain, the worker's tasks are counted once, and from then on the counts
follow every move of a task that the worker has held. That is one question per transaction about the holders of the
tasks that have moved, and a task has few holders, so that the cost of an ask grows neither with the number of tasks
that somebody has held nor with the number of such workers.

The counts follow from the leases and the tasks, and may be thrown away at any time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from nextlabel.campaign.rows import Group
from nextlabel.store import questions
from nextlabel.store.bulk import ADD_HELD_COUNTS, BulkWrite, Values
from nextlabel.store.ledger_rows import LedgerRows
from nextlabel.store.prepared import Runner


class HeldCounts:
    """The counts of one campaign in one transaction, as they are stored."""

    def __init__(self, runner: Runner, rows: LedgerRows) -> None:
        self._runner, self._rows = runner, rows
        self._counts: dict[str, dict[Group, int]] = {}
        self._any: bool | None = None

    def know(self, worker: str, counts: Mapping[Group, int]) -> None:
        """What is stored about a worker, or a part of it."""
        self._counts.setdefault(worker, {}).update(counts)

    def know_whether(self, anybody: bool) -> None:
        """Whether anybody's tasks are counted."""
        self._any = anybody

    def known(self, worker: str) -> Mapping[Group, int]:
        """The counts of a worker as far as they were read; empty if they are not counted."""
        return self._counts.get(worker, {})

    def read(self, worker: str) -> Mapping[Group, int]:
        """The counts of a worker, empty if they are not counted."""
        if worker not in self._counts:
            which = {"campaign": self._rows.number, "worker": worker}
            found = self._runner.ask(questions.held_counts(self._runner.dialect_name), which)
            self._counts[worker] = {(klass, node, w): count for klass, node, w, count in found}
        return self._counts[worker]

    def begin(self, worker: str) -> Mapping[Group, int]:
        """Count a worker's tasks from now on; what has changed must have been written."""
        which = {"campaign": self._rows.number, "worker": worker}
        self._runner.tell(questions.count_held(self._runner.dialect_name), which)
        self._counts.pop(worker, None)
        self._any = True
        return self.read(worker)

    def take(self) -> dict[BulkWrite, list[Values]]:
        """What the moves and new leases, which are about to be written, change in the counts."""
        rows = self._rows
        if not rows.stored_group or not self._anybody():
            return {}
        changes: Counter[tuple[str, Group]] = Counter()
        which = {"campaigns": [rows.number] * len(rows.stored_group), "tasks": list(rows.stored_group)}
        for task, worker in self._runner.ask(questions.counted_holders(self._runner.dialect_name), which):
            changes[worker, rows.stored_group[task]] -= 1
            changes[worker, rows.tasks[task].group] += 1
        for lease in rows.new_leases():
            if self.read(lease.worker):
                changes[lease.worker, rows.tasks[lease.task].group] += 1
        self._counts = {}
        return {
            ADD_HELD_COUNTS: [
                (rows.number, worker, *group, change) for (worker, group), change in changes.items() if change
            ]
        }

    def forget(self) -> None:
        """Remember nothing that was read before."""
        self._counts, self._any = {}, None

    def _anybody(self) -> bool:
        if self._any is None:
            question = questions.campaigns_with_counts(self._runner.dialect_name)
            self._any = bool(self._runner.ask(question, {"campaigns": [self._rows.number]}))
        return self._any
