"""What a store keeps beside the logs of campaigns: who may use it, visits of platforms' workers, imports, deletions.

Secrets themselves are never stored. A token and a session are kept as hashes, and links are signed with a key that is
in a file of its own, so that a copy of the database opens nothing. A platform knows a worker's work by an id of its
own, a submission (Prolific) or an assignment (Mechanical Turk), and speaks of that id later; a visit says whose it was.
Of a deleted campaign the id and the time are remembered for good: links to it may still be in workers' hands.

An import of many tasks is watched, and taken over by others if its process ends:

========== ==================================================================================================
state      meaning
========== ==================================================================================================
staging    tasks are read, checked and set aside; nothing is in the campaign's log. What was set aside is thrown
           away if it ends here
publishing all tasks have been checked and are written to the log, hidden; whoever finds the import without an owner
           carries on with it
done       ``added`` tasks are new, ``known`` ones were there before
failed     nothing was added; ``error`` says why
========== ==================================================================================================
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from nextlabel.errors import ConflictError, GoneError, NotFoundError

ImportState = Literal["staging", "publishing", "done", "failed"]
ACTIVE: Final = ("staging", "publishing")
Role = Literal["administrator", "requester", "auditor", "viewer"]

#: The link of a campaign's platform has a version too, under this name; no worker can be called so.
JOIN_LINK = ""

#: So have the links of experts who answer an audit.
AUDIT_LINK = " "


@dataclass(slots=True)
class ImportRow:
    """One import into campaign ``campaign`` (which may still have to be created, with ``config``).

    ``rows`` is the number of tasks that were read, ``first`` the number of the first new task. ``owner`` is the process
    at work on it (``campaigns.imports``), heard of last at ``beat_at``. ``priors`` are those that are
    new, as JSON.
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
    alike: int = 0
    digest: str | None = None
    config: str | None = None
    priors: str = "[]"
    error: str | None = None

    @property
    def active(self) -> bool:
        """Whether it has not ended."""
        return self.state in ACTIVE


@dataclass(frozen=True, slots=True)
class AccessToken:
    """A token by its name; ``hash`` is all that is kept of it.

    It opens the campaigns of ``owner``, or with an empty one everybody's; if ``campaigns`` names some, only those.
    """

    name: str
    role: Role
    hash: str
    created_at: float
    owner: str = ""
    campaigns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Activity:
    """Something that was changed with a token of ``owner``: a request to the API or the dashboard, or a command."""

    at: float
    token: str
    owner: str
    campaign: str
    request: str


@dataclass(frozen=True, slots=True)
class Session:
    """A signed-in browser: the hash of its cookie, and that of the token with which it signed in."""

    hash: str
    token_hash: str
    created_at: float


#: The campaign of visits that a platform tells of and that never began here.
UNCLAIMED = ""


@dataclass(frozen=True, slots=True)
class Visit:
    """One submission or assignment: ``id`` is the platform's, ``study`` the study or HIT that it belongs to.

    ``labels_before`` is what the worker had given in the campaign when the visit began; ``status`` is empty until the
    platform says something, which it did at ``status_at``.
    """

    campaign: str
    platform: str
    id: str
    worker: str
    study: str
    begun_at: float
    labels_before: int
    status: str = ""
    status_at: float | None = None


class Deletion(NamedTuple):
    """A campaign that was deleted; ``rows`` is about how many it had."""

    id: str
    deleted_at: float
    rows: int


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
