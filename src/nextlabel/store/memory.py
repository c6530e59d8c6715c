"""Campaigns in memory, for tests and trials: nothing is kept.

A transaction that ends with an error is undone by replaying the events that were there before it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from threading import RLock
from typing import TypeVar

from nextlabel.beliefs.prior import Prior
from nextlabel.campaign.deletions import deleted_campaign, taken_by_deleted
from nextlabel.campaign.events import Event
from nextlabel.campaign.needs import Need
from nextlabel.campaign.rows import CampaignRow, Group, LeaseRow, TaskRow, WorkerRow
from nextlabel.campaign.scoring import rank
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.campaign.verification import Verification, replay_event
from nextlabel.errors import ConflictError, NotFoundError
from nextlabel.store.memory_access import MemoryAccess
from nextlabel.store.memory_deletions import MemoryDeletions
from nextlabel.store.memory_imports import MemoryImports
from nextlabel.store.memory_ledger import MemoryLedger, new_row
from nextlabel.store.memory_visits import MemoryVisits
from nextlabel.store.memory_webhooks import MemoryWebhooks

R = TypeVar("R")


def no_campaign(id: str) -> NotFoundError:
    """There is no such campaign."""
    return NotFoundError(f"there is no campaign {id[:60]!r}.", "List them with nextlabel campaign status.")


class MemoryStore:
    """Campaigns of one process."""

    def __init__(self) -> None:
        self.clock: Callable[[], float] = time.time
        self._ledgers: dict[str, MemoryLedger] = {}
        self._settings: dict[str, str] = {}
        self._index_tables: dict[str, bytes] = {}
        self._lock = RLock()
        self.access = MemoryAccess()
        self.visits = MemoryVisits()
        self.imports = MemoryImports(self._lock)
        self.webhooks = MemoryWebhooks(self._lock, lambda id: self._ledger(id).row.seq)
        self.deletions = MemoryDeletions(self._lock, self._remove)

    @contextmanager
    def create(self, id: str, config: CampaignSettings, now: float) -> Iterator[MemoryLedger]:
        """A new campaign."""
        with self._lock:
            if id in self._ledgers:
                raise ConflictError(f"there is a campaign {id!r} already.", "Choose another id.")
            if self.deletions.find(id) is not None:
                raise taken_by_deleted(id)
            ledger = MemoryLedger(new_row(id, config, now), self.imports)
            yield ledger
            self._ledgers[id] = ledger

    @contextmanager
    def transaction(self, id: str) -> Iterator[MemoryLedger]:
        """The campaign, alone."""
        with self._lock:
            ledger = self._ledger(id)
            before = len(ledger.events)
            try:
                yield ledger
            except BaseException:
                if len(ledger.events) > before:
                    self._ledgers[id] = self._replayed(ledger, before)
                raise

    @contextmanager
    def transactions(self, needs: Mapping[str, Sequence[Need]]) -> Iterator[dict[str, MemoryLedger]]:
        """Several campaigns, alone; those that are not there are left out."""
        with self._lock, ExitStack() as stack:
            there = list(needs) if len(needs) == 1 else [id for id in needs if id in self._ledgers]
            yield {id: stack.enter_context(self.transaction(id)) for id in there}

    def verify(self, id: str, repair: bool, progress: Callable[[float], None] | None = None) -> Verification:
        """Hold every row against the events, and repair those that do not follow from them."""
        with self._lock:
            old = self._ledger(id)
            new = self._replayed(old, len(old.events))
            differing = old.differing_rows(new)
            events = len(old.events)
            if repair:
                self._ledgers[id] = new
                for table, rows in differing.items():
                    new.append(new.row.last_at, "rebuilt", {"table": table, "rows": rows})
        return Verification(events, differing, repair and bool(differing))

    def campaigns(self) -> list[CampaignRow]:
        """Newest first."""
        with self._lock:
            rows = [replace(ledger.row) for ledger in self._ledgers.values()]
        return sorted(rows, key=lambda row: row.created_at, reverse=True)

    def row(self, id: str) -> CampaignRow:
        """A campaign as it stands."""
        with self._lock:
            return replace(self._ledger(id).row)

    def events(self, id: str, after: int = 0, limit: int = 1000, max_bytes: int | None = None) -> list[Event]:
        """Events with a number above ``after``."""
        with self._lock:
            some = self._ledger(id).events[after : after + limit]
        return _first_bytes(some, max_bytes, lambda event: len(json.dumps(event.data)))

    def light_log(self, id: str, after: int, limit: int) -> list[Event]:
        """Events above a number."""
        with self._lock:
            return self._ledger(id).log(after, limit)

    def last_event(self, id: str, kind: str) -> int | None:
        """The last event of a kind."""
        with self._lock:
            return self._ledger(id).last_event(kind)

    def task_classes(self, id: str, first: int, end: int) -> Sequence[int]:
        """The classes of some tasks."""
        with self._lock:
            return self._ledger(id).task_classes(first, end)

    def tasks(self, id: str, after: int = -1, limit: int = 1000, max_bytes: int | None = None) -> list[TaskRow]:
        """Tasks with a number above ``after``."""
        with self._lock:
            some = self._ledger(id).tasks_after(after, limit)
        return _first_bytes(some, max_bytes, lambda task: len(json.dumps(task.payload)))

    def tasks_by_key(self, id: str, keys: Sequence[str]) -> dict[str, TaskRow]:
        """Those of the tasks that are there."""
        with self._lock:
            return self._ledger(id).tasks_by_key(keys)

    def groups(self, id: str) -> dict[Group, int]:
        """Tasks in each state."""
        with self._lock:
            return dict(self._ledger(id).groups())

    def classes(self, id: str) -> Sequence[Prior]:
        """Priors of the tasks."""
        with self._lock:
            return tuple(self._ledger(id).classes())

    def leases(self, id: str, tasks: Iterable[int]) -> list[LeaseRow]:
        """Leases of some tasks."""
        with self._lock:
            return self._ledger(id).leases_of(tasks)

    def workers(self, id: str, limit: int = 1000) -> list[WorkerRow]:
        """Workers with most labels first."""
        with self._lock:
            rows = self._ledger(id).all_workers()
        return sorted(rows, key=lambda row: (-row.labels, row.worker))[:limit]

    def load_table(self, name: str) -> bytes | None:
        """A table solved before."""
        return self._index_tables.get(name)

    def save_table(self, name: str, data: bytes) -> None:
        """Store a table."""
        self._index_tables.setdefault(name, data)

    def setting(self, name: str) -> str | None:
        """A setting of the whole store."""
        return self._settings.get(name)

    def first_setting(self, name: str, value: str) -> bool:
        """Set what was never set; False if another was first."""
        with self._lock:
            first = name not in self._settings
            self._settings.setdefault(name, value)
        return first

    def change_setting(self, name: str, value: str) -> None:
        """Set or replace a setting."""
        with self._lock:
            self._settings[name] = value

    def ping(self) -> None:
        """Memory always answers."""

    def close(self) -> None:
        """Nothing is held open."""

    def _ledger(self, id: str) -> MemoryLedger:
        if id not in self._ledgers:
            raise no_campaign(id) if self.deletions.find(id) is None else deleted_campaign(id)
        return self._ledgers[id]

    def _remove(self, id: str) -> None:
        self._ledger(id)
        del self._ledgers[id]
        self.access.forget_links(id)
        self.webhooks.forget(id)
        self.visits.forget(id)

    def _replayed(self, old: MemoryLedger, events: int) -> MemoryLedger:
        """The campaign as its first events say."""
        config = CampaignSettings.from_log(old.events[0].data["config"])
        ledger = MemoryLedger(new_row(old.row.id, config, old.row.created_at), self.imports)
        for event in old.events[:events]:
            ledger.events.append(event)
            replay_event(ledger, event, rank)
        return ledger


def _first_bytes(rows: list[R], max_bytes: int | None, size: Callable[[R], int]) -> list[R]:
    """The first rows, until they have so many bytes."""
    if max_bytes is None:
        return rows
    taken: list[R] = []
    for row in rows:
        taken.append(row)
        max_bytes -= size(row)
        if max_bytes <= 0:
            break
    return taken
