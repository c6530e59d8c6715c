"""What a campaign replies: the types that Python users and the client get."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from nextlabel.campaign.states import REASONS, Reason
from nextlabel.campaign.transitions import LeaseStatus
from nextlabel.errors import InputError, NotFoundError
from nextlabel.wording import counted


@dataclass(frozen=True, slots=True)
class Lease:
    """A task in a worker's hands until ``expires_at`` (seconds since 1970); true, where ``NoTask`` is false."""

    id: str
    campaign: str
    task: str
    payload: Any
    worker: str
    status: LeaseStatus
    leased_at: float
    expires_at: float

    def __bool__(self) -> Literal[True]:
        return True


@dataclass(frozen=True, slots=True)
class NoTask:
    """Why a worker gets no task; in ``retry_after`` seconds there may be one. It is false, so ``if lease:`` tells."""

    campaign: str
    reason: Reason
    retry_after: float | None = None

    def __bool__(self) -> Literal[False]:
        return False

    @property
    def sentence(self) -> str:
        """The reason as a sentence."""
        return REASONS[self.reason]


@dataclass(frozen=True, slots=True)
class Receipt:
    """What became of a lease: its status, its label, and whether the label counts for the budget and the results."""

    lease: str
    task: str
    status: LeaseStatus
    label: str | None = None
    counted: bool | None = None
    expires_at: float | None = None


@dataclass(frozen=True, slots=True)
class Added:
    """How many tasks were added, how many were known before, and how many there are now.

    Tasks with the same id are one task. ``alike`` tasks have no id and the contents of another one of the same import:
    each of them is a task of its own.
    """

    added: int
    known: int
    tasks: int
    alike: int = 0

    def notes(self) -> list[str]:
        """What became of the tasks that look like others."""
        out = []
        if self.known:
            out.append(f"{counted(self.known, 'task')} had an id that was there, with the same contents: counted once.")
        if self.alike:
            out.append(
                f"{counted(self.alike, 'task')} without an id had the contents of another: "
                "each is labelled and paid for. Give ids if they are one."
            )
        return out


@dataclass(frozen=True, slots=True)
class AddedPredictions:
    """Predictions that are new, those that were there, and the labels of the budget that they cost."""

    model: str
    added: int
    known: int
    charged: int


@dataclass(frozen=True, slots=True)
class AddedFeatures:
    """Items with features, how many of them are tasks of the campaign now, numbers and texts of each; a hash of all."""

    items: int
    tasks: int
    numbers: int
    texts: int
    hash: str


@dataclass(frozen=True, slots=True)
class ChangedLabels:
    """How many labels of a worker were dropped or restored; ``left`` could not be restored for want of room."""

    changed: int
    left: int = 0


@dataclass(frozen=True, slots=True)
class AuditItem:
    """A task that was drawn for an audit, and the expert's answer if there is one."""

    task: str
    label: str | None
    payload: Any


def lease_id_of(lease: Lease | str) -> str:
    """The id of a lease, which may be given itself."""
    if isinstance(lease, Lease):
        return lease.id
    if not isinstance(lease, str):
        raise InputError(
            f"{lease!r} is not a lease.",
            "Give the lease that ask returned, or its id.",
        )
    if lease.count("-") != 2:
        raise NotFoundError(f"{lease[:60]!r} is not the id of a lease.", "Give the lease that ask returned, or its id.")
    return lease
