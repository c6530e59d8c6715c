"""How a campaign stands: state, settings, counters and learnt rates, in Python and over HTTP alike."""

from __future__ import annotations

from dataclasses import dataclass

from nextlabel.campaign.notices import Notice
from nextlabel.campaign.rates import arrival_rate, completion_rate, lease_seconds
from nextlabel.campaign.rows import CampaignRow
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.campaign.states import Reason, State
from nextlabel.wording import counted


@dataclass(frozen=True, slots=True)
class Cost:
    """What a campaign costs, fees included: so far, and with all of its budget; ``on_top`` of it for controls."""

    so_far: float
    at_most: float
    on_top: float
    per_label: float
    currency: str
    sentence: str


def cost_of(row: CampaignRow) -> Cost | None:
    """What a campaign costs, if it has a pay."""
    price, free = row.config.price, row.free
    if price.pay == 0:
        return None
    said = (
        f"{price.of(row.spent + free)} so far, {price.of(row.budget + free)} with all of the budget, at "
        f"{price.describe()} a label. "
    )
    if row.config.gold_in_budget:
        said += "Control questions are paid from the budget."
    else:
        said += f"Control questions come on top: {price.of(free)} so far, which is in both."
    return Cost(
        round((row.spent + free) * price.each, 6), round((row.budget + free) * price.each, 6),
        round(free * price.each, 6), price.each, price.currency, said,
    )  # fmt: skip


def questions_lacking(row: CampaignRow) -> list[str]:
    """That the qualification has more questions than there are, if so: nobody gets beyond it."""
    asked, there = row.config.qualification or 0, row.controls - len(row.adjudicated)
    if asked <= there:
        return []
    return [
        f"The qualification has {counted(asked, 'control question')}, and there are {there}: nobody gets other items "
        "before you add some."
    ]


@dataclass(frozen=True, slots=True)
class CampaignStatus:
    """A campaign after event ``seq``; times are seconds since 1970, rates are per second and None until learnt.

    ``settings`` has the current budget, deadline and lease time; ``lease_seconds`` is how long the next lease lasts,
    ``closed_by`` the number of the event that closed the campaign. ``reserved`` labels are leased now, ``given`` is the
    number of leases so far, ``kept`` of labels, ``full`` of tasks that can have no more labels, ``rho`` of labels in
    flight for which the policy's tables were computed, ``turned_away`` of workers who were told that there is nothing
    for them; ``notices`` are what the requester should do something about;
    ``paused_because`` says why, if the campaign paused itself (``stop_at``), ``cost`` what the labels cost.
    """

    id: str
    state: State
    closed_reason: Reason | None
    closed_by: int | None
    settings: CampaignSettings
    created_at: float
    last_at: float
    seq: int
    tasks: int
    full: int
    budget: int
    spent: int
    reserved: int
    left: int
    deadline: float | None
    given: int
    kept: int
    late: int
    expired: int
    released: int
    turned_away: int
    lease_seconds: float
    arrival_rate: float | None
    completion_rate: float | None
    rho: float
    notices: tuple[Notice, ...] = ()
    paused_because: str = ""
    cost: Cost | None = None


def status_of(row: CampaignRow) -> CampaignStatus:
    """The status of a campaign's row."""
    return CampaignStatus(
        row.id, row.state, row.closed_reason, row.closed_seq, row.config,
        row.created_at, row.last_at, row.seq, row.tasks, row.full, row.budget, row.spent, row.reserved, row.left,
        row.deadline, row.given, row.kept, row.late, row.expired, row.released, row.turned_away_workers,
        lease_seconds(row), arrival_rate(row), completion_rate(row), row.rho, row.noticed,
        row.paused_because, cost_of(row),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class WorkerLink:
    """A worker's personal link."""

    worker: str
    token: str
    url: str


@dataclass(frozen=True, slots=True)
class JoinLink:
    """The link to which a platform adds the worker's id.

    ``prolific`` has Prolific's placeholders; ``frame`` may be framed by Mechanical Turk.
    """

    token: str
    url: str
    prolific: str
    frame: str = ""


@dataclass(frozen=True, slots=True)
class CampaignLinks:
    """The links to one campaign; ``warning`` says so if only the service's own machine reaches them."""

    campaign: str
    links: tuple[WorkerLink, ...]
    join: JoinLink
    warning: str | None = None


@dataclass(frozen=True, slots=True)
class AuditLink:
    """The link for an expert, who answers ``items`` items of an audit."""

    token: str
    url: str
    items: int
    warning: str | None = None
