"""The log of a campaign inside a transaction, with the priors and batches that its events name."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from nextlabel.beliefs.prior import Prior
from nextlabel.campaign.events import Event
from nextlabel.campaign.overview import LARGE
from nextlabel.campaign.rows import BatchRow
from nextlabel.problem.tables import prior_from, prior_table
from nextlabel.store import statements as sql
from nextlabel.store.ledger_state import LedgerState
from nextlabel.store.row_mapping import class_of, event_from
from nextlabel.store.tables import batches


class LedgerLog(LedgerState):
    """Events, priors and batches."""

    def append(self, at: float, kind: str, data: dict[str, Any]) -> Event:
        """The next event of the log."""
        self.row.seq += 1
        self.row.last_at = at
        event = Event(self.row.seq, at, kind, data)
        self.rows.append(event)
        return event

    def log(self, after: int, limit: int) -> list[Event]:
        """Events above a number, those that are not written yet included."""
        pending = self.rows.pending_events
        written = pending[0][0] - 1 if pending else self.row.seq
        found: list[Any] = []
        if after < written:
            found = self._runner.all(sql.light_events_after, self._parameters(after=after, many=limit))
        new = [(*one[:3], "{}" if one[2] == LARGE else one[3]) for one in pending if one[0] > after]
        return [event_from(row) for row in [*found, *new][:limit]]

    def last_event(self, kind: str) -> int | None:
        """The last event of a kind."""
        for seq, _, pending_kind, _ in reversed(self.rows.pending_events):
            if pending_kind == kind:
                return int(seq)
        found = self._runner.one(sql.last_event, self._parameters(kind=kind))
        return None if found is None else int(found[0])

    def task_classes(self, first: int, end: int) -> Sequence[int]:
        """The classes of some tasks."""
        if len(self.classes()) == 1:
            return [0] * (end - first)
        found = self._runner.all(sql.task_classes, self._parameters(first=first, end=end))
        return [class_of(klass) for (klass,) in found]

    def classes(self) -> Sequence[Prior]:
        """Priors in the order in which they came."""
        if self.cached.classes is None:
            found = self._runner.all(sql.classes_from, self._parameters(first=0))
            self.cached.classes = [prior_from(json.loads(text)) for (text,) in found]
        return self.cached.classes

    def add_classes(self, priors: Sequence[Prior]) -> None:
        """More priors."""
        known = list(self.classes())
        rows = [
            self._parameters(number=number, prior=json.dumps(prior_table(prior)))
            for number, prior in enumerate(priors, start=len(known))
        ]
        self._runner.write(sql.add_class, rows)
        self.cached.classes = known + list(priors)

    def batch(self, key: str) -> BatchRow | None:
        """A batch that was added."""
        found = self._runner.one(sql.batch_by_key, self._parameters(key=key))
        return None if found is None else BatchRow(int(found[0]), found[1])

    def save_batch(self, key: str, batch: BatchRow) -> None:
        """Remember a batch."""
        values = self._parameters(key=key, tasks=batch.tasks, digest=batch.digest)
        self._runner.write(sql.upsert(self._runner.dialect_name, batches), [values])

    def importing(self) -> bool:
        """Whether an import is under way."""
        return self._runner.one(sql.active_import, {"id": self.row.id}) is not None
