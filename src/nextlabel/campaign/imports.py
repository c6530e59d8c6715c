"""An import of many tasks: what a store keeps of it while it is under way, so that it can be watched and taken over.

========== ==================================================================================================
state      meaning
========== ==================================================================================================
staging    tasks are read, checked and set aside; nothing is in the campaign's log. What was set aside is thrown
           away if it ends here
publishing all tasks have been checked and are written to the log, hidden; whoever finds the import without an owner
           carries on with it
ranking    the tasks are there; in campaigns with many priors they are given their scores
done       ``added`` tasks are new, ``known`` ones were there before
failed     nothing was added; ``error`` says why
========== ==================================================================================================
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, Protocol

ImportState = Literal["staging", "publishing", "ranking", "done", "failed"]
ACTIVE: Final = ("staging", "publishing", "ranking")


@dataclass(slots=True)
class ImportRow:
    """One import into campaign ``campaign`` (which may still have to be created, with ``config``).

    ``rows`` is the number of tasks that were read, ``first`` the number of the first new task. ``owner`` is the process
    at work on it (``campaigns.imports``), heard of last at ``beat_at``. ``priors`` and ``counts`` are JSON: the priors
    that are new, and the new tasks of each class.
    """

    id: str
    campaign: str
    batch: str | None
    state: ImportState
    owner: str
    started_at: float
    beat_at: float
    rows: int = 0
    first: int = 0
    added: int = 0
    known: int = 0
    digest: str | None = None
    config: str | None = None
    priors: str = "[]"
    counts: str = "[]"
    error: str | None = None

    @property
    def active(self) -> bool:
        """Whether it has not ended."""
        return self.state in ACTIVE


class ImportRecords(Protocol):
    """The imports of one store."""

    def begin(self, row: ImportRow) -> bool:
        """A new import; False if the campaign has an active one."""
        ...

    def save(self, row: ImportRow) -> None:
        """An import that has changed."""
        ...

    def claim(self, row: ImportRow, owner: str, now: float) -> bool:
        """Make an import that has lost its owner one's own; False if another was quicker."""
        ...

    def find(self, id: str) -> ImportRow | None:
        """An import by id."""
        ...

    def active(self) -> list[ImportRow]:
        """All imports that have not ended."""
        ...

    def of_campaign(self, campaign: str, limit: int) -> list[ImportRow]:
        """The imports of a campaign, newest first."""
        ...

    def stage(self, row: ImportRow, first: int, data: str) -> None:
        """Set a chunk of tasks aside, the first of which is new task ``first`` of the import, and save the import."""
        ...

    def staged(self, id: str, first: int) -> str | None:
        """A chunk that was set aside, by its first task."""
        ...

    def clear(self, id: str, below: int, many: int) -> int:
        """Throw away at most ``many`` chunks that begin below new task ``below``; returns how many there were."""
        ...

    def forget(self, before: float) -> None:
        """Forget the imports that ended before a time."""
        ...
