"""What a store keeps of a campaign beside its events: all of it follows from them.

======================== ==============================================================================
field                    meaning
======================== ==============================================================================
spent, reserved          labels counted, and leases that are out; spent <= budget at all times
given                    leases ever given out
kept                     labels told, counted or not
arrivals, arrival_s      workers who got a lease and the seconds between them, both with fading memory
completions, work_s      labels told in time and the seconds that leases were out, both with fading memory
rho                      r / mu that the policy's tables are for
amended                  settings that were changed since the creation, as JSON (``campaign.settings``)
rules                    what the log says about ranking and the memory of rates
node, w                  a task's belief (``model.simplex``) and its labels in flight
place                    where a task stands when any task of its group will do, uniform in [0, 1)
gold                     the answer that the requester knows; the task is a control question
controls                 how many of the tasks are
======================== ==============================================================================
"""

from __future__ import annotations

import hmac
import re
import secrets
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from nextlabel.campaign.notices import Notice
from nextlabel.campaign.rates import NOTHING_SEEN, Hours
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.campaign.states import Reason, Standing, State
from nextlabel.campaign.transitions import LeaseStatus
from nextlabel.errors import InputError
from nextlabel.policies.allocation import Group

#: A task that was drawn for an audit and has no answer yet.
NOT_ANSWERED: Final = -1

#: What a campaign may be called in addresses.
PATTERN = r"[a-z0-9][a-z0-9_]{0,47}"
#: What a worker whose name was erased is called: this, and their number in the campaign.
ERASED: Final = "erased:"
#: Name of the store's setting that holds the database's part of the links' key.
LINK_SECRET = "link_secret"
_SECRET, _NUMBER = re.compile(r"[0-9a-f]{12}"), re.compile(r"0|[1-9][0-9]{0,17}")

#: Random texts drawn ahead.
AT_ONCE = 512
_drawn: list[str] = []


@dataclass(frozen=True, slots=True)
class Rules:
    """``ranked``: tasks are chosen by a score stored with each of them, and no longer by groups of equal tasks.

    ``hidden``: tasks after the last one that are in the log, but not published yet. ``predicted``: labels that came
    from models; those of ``dropped_models`` are left out of the results. ``audit``: tasks that were drawn for an audit,
    each with the expert's answer or ``NOT_ANSWERED``, in the order of the draw, which was made with ``audit_seed``. It
    is about the first ``audit_of`` tasks, and with all answers about ``audit_next``, those of the last draw.
    ``adjudicated``: tasks whose answer the requester has set; like controls they have gold, and unlike them nobody gets
    them to be tested. ``guarantee``: the event that froze the labels for a guarantee, 0 if they are not frozen.
    ``turned_away``: how often workers were, and how many different ones (``turned_away_workers``). ``paused_because``:
    why, if the campaign paused itself. ``hours``: workers and seconds by the hour of the day (``campaign.rates``).
    ``noticed``: what the requester should do something about (``campaign.notices``). ``features``: the hash of those
    that were given beside the tasks. ``free``: labels of control questions that count outside of the budget.
    """

    rate_memory: int
    ranked: bool = False
    hidden: int = 0
    predicted: int = 0
    dropped_models: tuple[str, ...] = ()
    audit: tuple[tuple[int, int], ...] = ()
    audit_of: int = 0
    audit_next: int = 0
    audit_seed: int = 0
    adjudicated: tuple[int, ...] = ()
    guarantee: int = 0
    turned_away: int = 0
    turned_away_workers: int = 0
    paused_because: str = ""
    hours: Hours = NOTHING_SEEN
    noticed: tuple[Notice, ...] = ()
    features: str = ""
    free: int = 0

    @property
    def audited(self) -> dict[int, int]:
        """What the expert said of tasks that were drawn for an audit."""
        return {task: answer for task, answer in self.audit if answer != NOT_ANSWERED}


#: Of a campaign before its first event; ``created`` says what holds.
NEW_RULES: Final = Rules(rate_memory=1)


@dataclass(slots=True)
class CampaignRow:
    """Counters and settings of one campaign."""

    id: str
    config: CampaignSettings
    created_at: float
    budget: int
    deadline: float | None
    lease_seconds: float | None
    rho: float
    rules: Rules = NEW_RULES
    paused: bool = False
    seq: int = 0
    last_at: float = 0.0
    tasks: int = 0
    full: int = 0
    classes: int = 0
    spent: int = 0
    reserved: int = 0
    given: int = 0
    kept: int = 0
    late: int = 0
    expired: int = 0
    released: int = 0
    closed_seq: int | None = None
    closed_reason: Reason | None = None
    arrivals: float = 0.0
    arrival_s: float = 0.0
    completions: float = 0.0
    work_s: float = 0.0
    last_arrival: float | None = None
    amended: str = "{}"
    controls: int = 0

    @property
    def state(self) -> State:
        """Open, paused or closed; ``closed_reason`` says why it is closed."""
        return "closed" if self.closed_seq is not None else "paused" if self.paused else "open"

    @property
    def left(self) -> int:
        """Labels that can still be given out."""
        return max(self.budget - self.spent - self.reserved, 0)


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

    @property
    def group(self) -> Group:
        """The tasks that are as good as this one; those of controls have negative classes, and no policy sees them."""
        return self.class_number if self.gold is None else ~self.class_number, self.node, self.w


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


def lease_id(campaign: str, number: int) -> str:
    """Id of a lease: the campaign, the lease's number, and something that cannot be guessed."""
    return f"{campaign}-{number}-{_random_hex()}"


def prediction_id(campaign: str, number: int) -> str:
    """The id of a prediction's lease: numbered like any other, with nothing to be kept secret."""
    return f"{campaign}-{number}-model"


def is_prediction(lease: str) -> bool:
    """Whether a lease is a model's prediction."""
    return lease.endswith("-model")


def lease_number(lease: str) -> int:
    """The number of a lease in its campaign, from 0 on in the order in which leases were given out."""
    return int(lease.split("-", 2)[1])


def split_lease_id(id: str) -> tuple[str, int, int] | None:
    """Campaign, number and secret of a lease's id (-1: it is a prediction's); None if it is none."""
    campaign, _, rest = id.partition("-")
    number, _, secret = rest.partition("-")
    if _NUMBER.fullmatch(number) is None:
        return None
    if secret == "model":
        return campaign, int(number), -1
    return (campaign, int(number), int(secret, 16)) if _SECRET.fullmatch(secret) else None


def joined_lease_id(campaign: str, number: int, secret: int) -> str:
    """The inverse: the id of a lease."""
    return prediction_id(campaign, number) if secret < 0 else f"{campaign}-{number}-{secret:012x}"


def _random_hex() -> str:
    """Twelve random digits; the system is asked for many at once, which costs as much as asking for one."""
    try:
        return _drawn.pop()
    except IndexError:
        text = secrets.token_hex(6 * AT_ONCE)
        _drawn.extend(text[k : k + 12] for k in range(12, len(text), 12))
        return text[:12]


def campaign_of(lease: str) -> str:
    """The campaign that a lease belongs to."""
    return lease.partition("-")[0]
