"""What a requester looks at: small reads, whatever the number of tasks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from nextlabel.campaign.events import Event
from nextlabel.campaign.rows import Group, LeaseRow, TaskRow

#: Events whose data may have a megabyte: they are shown without it.
LARGE: Final = "tasks_added"


@dataclass(frozen=True, slots=True)
class RecentAnswer:
    """One label of a worker, and the state of its task now; ``seconds`` only if the label came in time."""

    label: int
    class_number: int
    node: int
    labels: int
    seconds: float | None


class Overview(Protocol):
    """Reads for a requester."""

    def events_before(self, id: str, before: int | None, limit: int) -> list[Event]:
        """Events below a number, newest first; those that added tasks without their data."""
        ...

    def tasks_in(self, id: str, groups: Sequence[Group], limit: int) -> list[TaskRow]:
        """Tasks of these groups, group by group, at most so many."""
        ...

    def tasks_numbered(self, id: str, numbers: Iterable[int]) -> dict[int, TaskRow]:
        """The tasks with these numbers, as far as there are any."""
        ...

    def leases_named(self, id: str, names: Iterable[str]) -> dict[str, LeaseRow]:
        """The leases with these ids, as far as there are any."""
        ...

    def open_leases(self, id: str, limit: int) -> list[LeaseRow]:
        """Leases that are out, in the order in which they expire."""
        ...

    def comments(self, id: str, worker: str | None, limit: int) -> list[LeaseRow]:
        """The last leases with a comment, newest first, of one worker or of all."""
        ...

    def recent_answers(self, id: str, worker: str, limit: int) -> list[RecentAnswer]:
        """A worker's last labels."""
        ...
