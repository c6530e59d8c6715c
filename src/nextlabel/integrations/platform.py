"""What a platform is that sends workers: how they arrive, what becomes of their work, and what is paid back.

A platform is one subclass of ``Platform`` and its place in ``integrations.platforms``. Its workers arrive by the
campaign's link, to which the platform adds the worker's id; a *visit* is the piece of work that the platform counts, a
submission (Prolific) or an assignment (Mechanical Turk). What it says of a visit later means one of three things:

``keeps``    the worker goes on, or has done their work
``ends``     they have left; what they hold goes to others
``rejects``  likewise, and their work is not paid
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import ClassVar, Literal, NamedTuple

Meaning = Literal["keeps", "ends", "rejects"]


class StatusChange(NamedTuple):
    """A visit has another status."""

    visit: str
    worker: str
    status: str


class Bonus(NamedTuple):
    """What is still to be paid to a worker for a visit."""

    worker: str
    visit: str
    amount: Decimal


class Platform:
    """A platform; the attributes say how its workers arrive."""

    #: What the platform is called in addresses, in the names of its workers (``name:id``) and on pages.
    name: ClassVar[str]
    title: ClassVar[str]
    #: The parameters in which its link has the ids of the worker, of the visit and of what the visit belongs to.
    worker: ClassVar[str]
    visit: ClassVar[str] = ""
    study: ClassVar[str] = ""
    #: What its link ends with: the platform puts ids in place of the names in it.
    query: ClassVar[str] = ""
    #: Where workers go with the campaign's completion code, which is added to it; empty if they type the code.
    complete: ClassVar[str] = ""
    #: Whether the platform shows the page in a frame of its own: visits then begin there.
    framed: ClassVar[bool] = False
    #: Whether a bonus is paid for a visit, so that workers without one can have none.
    bonus_needs_visit: ClassVar[bool] = False
    #: Whether the platform tells of its visits: others are neither paid nor deducted.
    confirms: ClassVar[bool] = False
    #: The currency of bonuses, as a form says it.
    currency: ClassVar[str] = ""
    #: What its statuses mean; others change nothing.
    meanings: ClassVar[Mapping[str, Meaning]] = {}

    @property
    def prefix(self) -> str:
        """What the names of its workers begin with: nobody can join under the name of a worker with a link."""
        return f"{self.name}:"

    def link(self, address: str) -> str:
        """The campaign's link as the platform takes it."""
        return address + self.query

    def completion_address(self, code: str) -> str:
        """Where a worker goes with a completion code; empty if there is no such address."""
        return self.complete and self.complete + code

    def normal_status(self, status: str) -> str:
        """A status in one spelling."""
        return " ".join(status.upper().replace("_", " ").replace("-", " ").split())

    def meaning_of(self, status: str) -> Meaning:
        """What a status means for the work of a worker; one that is not known changes nothing."""
        return self.meanings.get(self.normal_status(status), "keeps")

    def bonus_csv(self, bonuses: Iterable[Bonus], reason: str) -> str:
        """The bonuses in the form that the platform takes: by default a line 'worker,amount' for each."""
        return "".join(f"{one.worker},{one.amount}\n" for one in bonuses)
