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
amended                  settings that were changed since the creation, as JSON (``campaign.amendments``)
rules                    what the log says about limits, ranking and the memory of rates
node, w                  a task's belief (``beliefs.simplex``) and its labels in flight
place                    where a task stands when any task of its group will do, uniform in [0, 1)
gold                     the answer that the requester knows; the task is a control question
controls                 how many of the tasks are
score                    value of a label for the task, only where tasks are ranked; None: it can have no label now
======================== ==============================================================================
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from nextlabel.campaign.rules import NEW_RULES, Rules
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.campaign.standing import Standing
from nextlabel.campaign.states import Reason, State
from nextlabel.campaign.transitions import LeaseStatus
from nextlabel.problem.state import TaskState

#: A group: class, node, labels in flight.
Group = tuple[int, int, int]


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
    score: float | None = None
    last_seq: int | None = None
    closed_seq: int | None = None
    gold: int | None = None

    @property
    def state(self) -> TaskState:
        """Belief and labels in flight."""
        return TaskState(self.node, self.w)

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


@dataclass(slots=True)
class WorkerRow:
    """What one worker did; ``seconds`` spent on the labels told in time.

    ``bought`` of their labels counted for the budget, and ``dropped`` of those are left out of the results.
    ``tested`` of their leases were control questions, ``free`` of their labels count without the budget.
    ``turned_away`` is how often they were told that there is nothing for them (``campaign.turning_away``).
    ``standing`` is one of ``campaign.standing``, ``reason`` the requester's word on it.
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


def new_row(id: str, config: CampaignSettings, now: float) -> CampaignRow:
    """A campaign before its first event."""
    return CampaignRow(id, config, now, config.budget, config.deadline, config.lease_seconds, config.rho)
