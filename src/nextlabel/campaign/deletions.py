"""Campaigns that were deleted: gone for everybody in one step, and their rows removed in many small ones.

A store remembers of each the id and the time, for good: an id is not given out again, because links to the campaign may
still be in workers' hands, and whoever comes by one is told what happened (``GoneError``).
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from nextlabel.errors import ConflictError, GoneError, NotFoundError


class Deletion(NamedTuple):
    """A campaign that was deleted; ``rows`` is about how many it had."""

    id: str
    deleted_at: float
    rows: int


class DeletionRecords(Protocol):
    """The deletions of a store."""

    def begin(self, id: str, now: float) -> Deletion:
        """Make a campaign disappear, with its links; NotFoundError if there is none, GoneError if it was deleted."""
        ...

    def find(self, id: str) -> float | None:
        """When a campaign was deleted, None if it was not."""
        ...

    def unfinished(self) -> list[Deletion]:
        """Deletions that have left rows to be removed."""
        ...

    def clear(self, deletion: Deletion, many: int) -> int:
        """Remove at most so many rows, fewer of large ones, in one short transaction; returns how many, 0 at the end.

        Several processes may do that at once.
        """
        ...


def deleted_campaign(id: str) -> GoneError:
    """The campaign was deleted."""
    return GoneError(f"campaign {id[:60]!r} was deleted.", "Its tasks, labels and links are gone.")


def taken_by_deleted(id: str) -> ConflictError:
    """The id is that of a campaign that was deleted."""
    return ConflictError(
        f"campaign {id!r} was deleted, and an id is not given twice: links to it may still be around.",
        "Choose another id.",
    )


def no_campaign(id: str) -> NotFoundError:
    """There is no such campaign."""
    return NotFoundError(f"there is no campaign {id[:60]!r}.", "List them with nextlabel campaign status.")
