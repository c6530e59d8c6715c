"""What a campaign answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

#: Why a worker gets no task, and the sentence for people.
REASONS: Final = {
    "budget_spent": "All labels of this campaign have been bought.",
    "all_leased": "Every task that needs a label is with somebody else right now.",
    "nothing_left_for_you": "You have seen every task that still needs a label.",
    "paused": "The campaign is paused.",
    "deadline_passed": "The campaign's deadline has passed.",
    "finished": "Every task has all the labels that it can have.",
    "preparing": "The campaign is being prepared: its tasks, or the tables of its policy, are not there yet.",
    "below_price": "No task would gain as much from another label as the label costs.",
}


@dataclass(frozen=True, slots=True)
class Lease:
    """A task in a worker's hands until ``expires_at``."""

    id: str
    campaign: str
    task: str
    payload: Any
    worker: str
    status: str
    leased_at: float
    expires_at: float

    #: For ``if lease:`` beside ``NoTask``.
    def __bool__(self) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class NoTask:
    """Why there is no task; ``retry_after`` seconds from now there may be one."""

    campaign: str
    reason: str
    retry_after: float | None = None

    def __bool__(self) -> bool:
        return False

    @property
    def sentence(self) -> str:
        """The reason for people."""
        return REASONS[self.reason]


@dataclass(frozen=True, slots=True)
class Told:
    """What became of a lease: its status, the label and whether it counts for the budget and the results."""

    lease: str
    task: str
    status: str
    label: str | None = None
    counted: bool | None = None
    expires_at: float | None = None


@dataclass(frozen=True, slots=True)
class Added:
    """Tasks that came in, and those that were there before."""

    added: int
    known: int
    tasks: int
