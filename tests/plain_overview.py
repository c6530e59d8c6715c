"""What a requester looks at, from any store by looking at everything: the oracle of ``store.overview``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nextlabel.campaign.events import Event
from nextlabel.campaign.ledger import Store
from nextlabel.campaign.overview import LARGE, RecentAnswer
from nextlabel.campaign.rows import Group, LeaseRow, TaskRow
from nextlabel.campaign.transitions import LABELLED, LEASED

#: Rows that are looked at in one go: more than there ever are.
EVERYTHING = 10**9


class PlainOverview:
    """From any store, by looking at everything."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def events_before(self, id: str, before: int | None, limit: int) -> list[Event]:
        """Events below a number, newest first."""
        found = [one for one in self._store.events(id, 0, EVERYTHING) if before is None or one.seq < before]
        return [Event(e.seq, e.at, e.kind, {} if e.kind == LARGE else e.data) for e in found[::-1][:limit]]

    def tasks_in(self, id: str, groups: Sequence[Group], limit: int) -> list[TaskRow]:
        """Tasks of these groups."""
        place = {group: n for n, group in enumerate(groups)}
        found = [task for task in self._tasks(id) if task.group in place]
        return sorted(found, key=lambda task: (place[task.group], task.place))[:limit]

    def tasks_numbered(self, id: str, numbers: Iterable[int]) -> dict[int, TaskRow]:
        """The tasks with these numbers, as far as there are any."""
        wanted = set(numbers)
        return {task.number: task for task in self._tasks(id) if task.number in wanted}

    def leases_named(self, id: str, names: Iterable[str]) -> dict[str, LeaseRow]:
        """The leases with these ids, as far as there are any."""
        wanted = set(names)
        return {lease.id: lease for lease in self._leases(id) if lease.id in wanted}

    def open_leases(self, id: str, limit: int) -> list[LeaseRow]:
        """Leases that are out."""
        out = [lease for lease in self._leases(id) if lease.status == LEASED]
        return sorted(out, key=lambda lease: (lease.expires_at, lease.seq))[:limit]

    def comments(self, id: str, worker: str | None, limit: int) -> list[LeaseRow]:
        """The last leases with a comment."""
        said = [lease for lease in self._leases(id) if lease.comment and worker in (None, lease.worker)]
        return sorted(said, key=lambda lease: -lease.seq)[:limit]

    def recent_answers(self, id: str, worker: str, limit: int) -> list[RecentAnswer]:
        """A worker's last labels."""
        tasks_now = {task.number: task for task in self._tasks(id)}
        found: list[RecentAnswer] = []
        for lease in sorted(self._leases(id), key=lambda one: -one.seq):
            if lease.worker == worker and lease.label is not None and len(found) < limit:
                task = tasks_now[lease.task]
                in_time = lease.status == LABELLED and lease.ended_at is not None
                seconds = (lease.ended_at or 0.0) - lease.leased_at if in_time else None
                found.append(RecentAnswer(lease.label, task.class_number, task.node, task.labels, seconds))
        return found

    def _tasks(self, id: str) -> list[TaskRow]:
        return self._store.tasks(id, -1, EVERYTHING)

    def _leases(self, id: str) -> list[LeaseRow]:
        return self._store.leases(id, [task.number for task in self._tasks(id)])
