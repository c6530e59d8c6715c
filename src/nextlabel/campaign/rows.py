"""What a store keeps of a campaign beside its events: all of it follows from them.

======================== ==============================================================================
field                    meaning
======================== ==============================================================================
config                   the settings as they are now
rho                      r / mu that the policy's tables are for
paused_because           why, if the campaign paused itself
hidden                   tasks after the last one that are in the log, but not published yet
controls                 how many of the tasks are control questions, or adjudicated
ranked                   tasks are chosen by a score of each, and no longer by groups of equal tasks
spent, reserved          labels counted, and leases that are out; spent <= budget at all times
given                    leases ever given out
kept                     labels told, counted or not
free                     labels of control questions that count outside of the budget
arrivals, arrival_s      workers who got a lease and the seconds between them, both with fading memory of
                         ``rate_memory`` of them; ``hours``: the same by the hour of the day (``campaign.rates``)
completions, work_s      labels told in time and the seconds that leases were out, both with fading memory
turned_away              how often workers were, and how many different ones (``turned_away_workers``)
predicted                labels that came from models; those of ``dropped_models`` are left out of the results
audit                    tasks that were drawn for an audit, each with the expert's answer or ``NOT_ANSWERED``, in the
                         order of the draw, which was made with ``audit_seed``. It is about the first ``audit_of``
                         tasks, and with all answers about ``audit_next``, those of the last draw
adjudicated              tasks whose answer the requester has set; like controls they have gold, and unlike them nobody
                         gets them to be tested
guarantee                the event that froze the labels for a guarantee, 0 if they are not frozen
noticed                  what the requester should do something about (``campaign.notices``)
features                 the hash of those that were given beside the tasks
node, w                  a task's belief (``model.simplex``) and its labels in flight
place                    where a task stands when any task of its group will do, uniform in [0, 1)
gold                     the answer that the requester knows; the task is a control question
======================== ==============================================================================
"""

from __future__ import annotations

import hmac
import re
import secrets
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from pydantic import SkipValidation

from nextlabel.campaign.notices import Notice
from nextlabel.campaign.rates import NOTHING_SEEN, Hours
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.campaign.states import Reason, Standing, State
from nextlabel.campaign.transitions import LeaseStatus
from nextlabel.errors import InputError

#: A task that was drawn for an audit and has no answer yet.
NOT_ANSWERED: Final = -1

#: What a campaign may be called in addresses.
PATTERN = r"[a-z0-9][a-z0-9_]{0,47}"
#: What a worker whose name was erased is called: this, and their number in the campaign.
ERASED: Final = "erased:"
#: Name of the store's setting that holds the database's part of the links' key.
LINK_SECRET = "link_secret"
#: In the place of a secret, for leases that nobody held: a model's predictions.
MODEL: Final = "model"
_SECRET, _NUMBER = re.compile(r"[0-9a-f]{12}"), re.compile(r"0|[1-9][0-9]{0,17}")


@dataclass(slots=True)
class CampaignRow:
    """Settings and counters of one campaign."""

    id: str
    config: SkipValidation[CampaignSettings]  # checked when it was given
    created_at: float
    rho: float
    paused: bool = False
    paused_because: str = ""
    seq: int = 0
    last_at: float = 0.0
    tasks: int = 0
    hidden: int = 0
    full: int = 0
    controls: int = 0
    classes: int = 0
    ranked: bool = False
    spent: int = 0
    reserved: int = 0
    given: int = 0
    kept: int = 0
    late: int = 0
    expired: int = 0
    released: int = 0
    free: int = 0
    closed_seq: int | None = None
    closed_reason: Reason | None = None
    rate_memory: int = 1
    arrivals: float = 0.0
    arrival_s: float = 0.0
    completions: float = 0.0
    work_s: float = 0.0
    last_arrival: float | None = None
    hours: Hours = NOTHING_SEEN
    turned_away: int = 0
    turned_away_workers: int = 0
    predicted: int = 0
    dropped_models: tuple[str, ...] = ()
    audit: tuple[tuple[int, int], ...] = ()
    audit_of: int = 0
    audit_next: int = 0
    audit_seed: int = 0
    adjudicated: tuple[int, ...] = ()
    guarantee: int = 0
    noticed: tuple[Notice, ...] = ()
    features: str = ""

    @property
    def state(self) -> State:
        """Open, paused or closed; ``closed_reason`` says why it is closed."""
        return "closed" if self.closed_seq is not None else "paused" if self.paused else "open"

    @property
    def budget(self) -> int:
        """Labels that may be bought."""
        return self.config.budget

    @property
    def deadline(self) -> float | None:
        """When the campaign ends, if a time is set."""
        return self.config.deadline

    @property
    def left(self) -> int:
        """Labels that can still be given out."""
        return max(self.budget - self.spent - self.reserved, 0)

    @property
    def audited(self) -> dict[int, int]:
        """What the expert said of tasks that were drawn for an audit."""
        return {task: answer for task, answer in self.audit if answer != NOT_ANSWERED}


@dataclass(slots=True)
class TaskRow:
    """One task; ``number`` counts from 0 in a campaign, ``key`` is the user's name for it."""

    number: int
    key: str
    payload: Any
    class_number: int
    place: float
    node: int = 0
    w: int = 0
    labels: int = 0
    closed_seq: int | None = None
    gold: int | None = None


class BatchRow(NamedTuple):
    """A batch of tasks: how many it added, and the digest of all that it consisted of, None in logs before 0.3."""

    tasks: int
    digest: str | None


@dataclass(slots=True)
class LeaseRow:
    """One task in one worker's hands; ``label`` is the answer's number.

    ``counted``: the label was bought, or with ``free``, which is a control question's, taken in without the budget;
    ``dropped``: it was, and is left out of the results. ``comment``: what the worker said with the answer or the skip.
    """

    id: str
    task: int
    worker: str
    status: LeaseStatus
    leased_at: float
    expires_at: float
    seq: int
    ended_at: float | None = None
    label: int | None = None
    counted: bool | None = None
    dropped: bool = False
    free: bool = False
    comment: str | None = None
    #: Counts the leases of a campaign from 0 on.
    number: int = -1

    @property
    def predicted(self) -> bool:
        """Whether it is a model's prediction."""
        return self.id.endswith(MODEL)


@dataclass(slots=True)
class WorkerRow:
    """What one worker did; ``seconds`` spent on the labels told in time.

    ``bought`` of their labels counted for the budget, and ``dropped`` of those are left out of the results.
    ``tested`` of their leases were control questions, ``free`` of their labels count without the budget.
    ``turned_away`` is how often they were told that there is nothing for them (``campaign.commands``).
    ``standing`` is one of ``campaign.states``, ``reason`` the requester's word on it.
    """

    worker: str
    given: int = 0
    labels: int = 0
    late: int = 0
    expired: int = 0
    released: int = 0
    seconds: float = 0.0
    last_at: float = 0.0
    bought: int = 0
    dropped: int = 0
    standing: Standing = "active"
    reason: str = ""
    tested: int = 0
    free: int = 0
    turned_away: int = 0


def erased_number(worker: str) -> int | None:
    """The number of a worker whose name was erased; None for any other name."""
    return int(worker.removeprefix(ERASED)) if worker.startswith(ERASED) else None


def link_name(secret: bytes, campaign: str, worker: str) -> str:
    """What the version of a worker's link is kept under: not their name, which may have to be erased."""
    if not worker.strip():  # of a platform, or of experts
        return worker
    return hmac.digest(secret, f"{campaign} {worker}".encode(), "sha256").hex()[:32]


def new_campaign_id() -> str:
    """A random id."""
    return "c" + secrets.token_hex(6)


def checked_campaign_id(id: object) -> str:
    """An id that a user chose."""
    if not isinstance(id, str) or re.fullmatch(PATTERN, id) is None:
        raise InputError(
            f"campaign id {str(id)[:60]!r} is not allowed.",
            "Use 1 to 48 small letters, digits and underscores, beginning with a letter or digit.",
        )
    return id


def lease_id(campaign: str, number: int, secret: int | None = None) -> str:
    """Id of a lease: the campaign, the lease's number, and a secret that nobody can guess (-1: of a model's)."""
    if secret is None:
        secret = secrets.randbits(48)
    return f"{campaign}-{number}-{MODEL}" if secret < 0 else f"{campaign}-{number}-{secret:012x}"


def lease_number(lease: str) -> int:
    """The number of a lease in its campaign, from 0 on in the order in which leases were given out."""
    return int(lease.split("-", 2)[1])


def split_lease_id(id: str) -> tuple[str, int, int]:
    """The inverse: campaign, number and secret; an empty campaign and -1 if it is none."""
    campaign, _, rest = id.partition("-")
    number, _, secret = rest.partition("-")
    if _NUMBER.fullmatch(number) is None or (secret != MODEL and _SECRET.fullmatch(secret) is None):
        return "", -1, -1
    return campaign, int(number), -1 if secret == MODEL else int(secret, 16)


def campaign_of(lease: str) -> str:
    """The campaign that a lease belongs to."""
    return lease.partition("-")[0]
