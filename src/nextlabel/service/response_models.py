"""What the service answers, as documented by OpenAPI."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from nextlabel.campaign.states import Reason, State
from nextlabel.campaign.transitions import LeaseStatus

Time = Annotated[str, Field(description="ISO 8601, UTC", examples=["2026-07-01T12:00:00.000Z"])]


class RatesResponse(BaseModel):
    """Learnt rates per second; null until enough is known."""

    arrivals: float | None
    completions: float | None


class CampaignResponse(BaseModel):
    """A campaign's settings and counters."""

    id: str
    state: State
    closed_reason: Reason | None
    closed_by: int | None = Field(description="Number of the event that closed the campaign")
    settings: dict[str, Any] = Field(description="As created, with the current budget, deadline and lease_seconds")
    created_at: Time
    last_at: Time = Field(description="Time of the last event")
    seq: int = Field(description="Number of the last event")
    tasks: int
    full: int = Field(description="Tasks that can have no more labels")
    budget: int
    spent: int
    reserved: int = Field(description="Leases held by workers")
    left: int
    deadline: Time | None
    given: int = Field(description="Leases granted so far")
    kept: int = Field(description="Labels told, whether counted or not")
    late: int
    expired: int
    released: int
    lease_seconds: float = Field(description="Seconds that the next lease will last")
    rates: RatesResponse
    rho: float = Field(description="Labels in flight for which the policy's tables were computed")


class CampaignsResponse(BaseModel):
    """All campaigns, newest first."""

    campaigns: list[CampaignResponse]


class TasksAddedResponse(BaseModel):
    """How many tasks were added, how many were known before, how many there are now, and what was met in the body."""

    added: int
    known: int
    tasks: int
    read: list[str]


class WorkerLinkResponse(BaseModel):
    """A worker's personal link."""

    worker: str
    token: str
    url: str


class JoinLinkResponse(BaseModel):
    """The link for a platform, which adds the worker's id to it."""

    token: str
    url: str
    prolific: str = Field(description="The same with Prolific's placeholder")


class LinksResponse(BaseModel):
    """Links of one campaign."""

    campaign: str
    links: list[WorkerLinkResponse]
    join: JoinLinkResponse


class LeaseResponse(BaseModel):
    """A task that is leased to a worker."""

    id: str
    campaign: str
    task: str
    payload: Any
    worker: str
    status: str
    leased_at: Time
    expires_at: Time


class AskResponse(BaseModel):
    """A lease, or the reason why there is none and when to ask again."""

    lease: LeaseResponse | None
    reason: Reason | None
    detail: str | None
    retry_after: float | None = Field(description="Seconds")


class TellResponse(BaseModel):
    """The status of a lease after a command."""

    lease: str
    task: str
    status: LeaseStatus
    label: str | None
    counted: bool | None
    expires_at: Time | None


class ResultResponse(BaseModel):
    """What is known about one task."""

    task: str
    label: str
    probability: float
    labels: int
    counts: dict[str, int]
    in_flight: int
    closed: bool
    closed_by: int | None
    closed_reason: str | None
    payload: Any


class ResultsResponse(BaseModel):
    """One page of results; ``next`` is the ``after`` of the following page, null on the last."""

    results: list[ResultResponse]
    next: int | None


class EventResponse(BaseModel):
    """One event of the log; times in ``data`` are seconds since 1970."""

    seq: int
    at: Time
    kind: str
    data: dict[str, Any]


class EventsResponse(BaseModel):
    """One page of events; ``next`` is the ``after`` of the following page, null on the last."""

    events: list[EventResponse]
    next: int | None


class WorkerResponse(BaseModel):
    """What one worker has done."""

    worker: str
    given: int
    labels: int
    late: int
    expired: int
    released: int
    mean_seconds: float | None = Field(description="Over labels told in time")
    last_at: Time


class WorkersResponse(BaseModel):
    """Workers, those with the most labels first."""

    workers: list[WorkerResponse]


class ExtraBudgetResponse(BaseModel):
    """The most that more labels could buy."""

    labels: int
    upper: float
    gain: float


class CertificateResponse(BaseModel):
    """What a task of the campaign is worth, and the most it can be worth in the end."""

    campaign: str
    seq: int
    at: Time
    tasks: int
    budget: int
    spent: int
    in_flight: int
    left: int
    now: float
    upper: float
    gap: float
    slack: float = Field(description="How much a longer computation could still lower the upper bound")
    price: float = Field(description="The most that one more label can add, summed over the tasks")
    ceiling: float
    arrivals: float | None = Field(description="Workers expected before the deadline")
    more: list[ExtraBudgetResponse]
    seconds: float


class HealthResponse(BaseModel):
    """The service runs and its database answers."""

    status: Literal["ok"]
    version: str


class ProblemDetails(BaseModel):
    """An error (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    hint: str
    request_id: str
