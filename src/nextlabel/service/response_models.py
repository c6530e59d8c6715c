"""What the service answers, as the OpenAPI document tells it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from nextlabel.campaign.replies import REASONS

Reason = Annotated[str, Field(json_schema_extra={"enum": [*REASONS]})]
Time = Annotated[str, Field(description="ISO 8601, UTC", examples=["2026-07-01T12:00:00.000Z"])]


class Rates(BaseModel):
    """What was learnt, per second; null until enough is known."""

    arrivals: float | None
    completions: float | None


class Status(BaseModel):
    """A campaign as it stands."""

    id: str
    state: Literal["open", "paused", "closed"]
    closed_reason: Reason | None
    closed_by: int | None = Field(description="Number of the event that closed it")
    settings: dict[str, Any] = Field(description="As created; budget, deadline and lease_seconds as they are now")
    created_at: Time
    last_at: Time = Field(description="Of the last event")
    seq: int = Field(description="Number of the last event")
    tasks: int
    full: int = Field(description="Tasks that can have no more labels")
    budget: int
    spent: int
    reserved: int = Field(description="Leases that are out")
    left: int
    deadline: Time | None
    given: int = Field(description="Leases ever given out")
    kept: int = Field(description="Labels told, counted or not")
    late: int
    expired: int
    released: int
    lease_seconds: float = Field(description="How long the next lease lasts")
    rates: Rates
    rho: float = Field(description="Labels in flight that the policy's tables are for")


class Campaigns(BaseModel):
    """All campaigns, newest first."""

    campaigns: list[Status]


class TasksAdded(BaseModel):
    """Tasks that came in, those that were there before, and all of them now."""

    added: int
    known: int
    tasks: int


class Link(BaseModel):
    """A worker's own link."""

    worker: str
    token: str
    url: str


class Join(BaseModel):
    """The link for a platform, which adds the worker's id to the address."""

    token: str
    url: str
    prolific: str = Field(description="As Prolific wants it: with its placeholder")


class LinksMade(BaseModel):
    """Links of one campaign."""

    campaign: str
    links: list[Link]
    join: Join


class LeaseOut(BaseModel):
    """A task in a worker's hands."""

    id: str
    campaign: str
    task: str
    payload: Any
    worker: str
    status: str
    leased_at: Time
    expires_at: Time


class AskReply(BaseModel):
    """A lease, or why there is none and when to ask again."""

    lease: LeaseOut | None
    reason: Reason | None
    detail: str | None
    retry_after: float | None = Field(description="Seconds")


class ToldReply(BaseModel):
    """What became of a lease."""

    lease: str
    task: str
    status: Literal["leased", "labelled", "expired", "released", "late"]
    label: str | None
    counted: bool | None
    expires_at: Time | None


class ResultOut(BaseModel):
    """What is known of one task."""

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


class Results(BaseModel):
    """Some results; ``next`` is the ``after`` of the following ones, null at the end."""

    results: list[ResultOut]
    next: int | None


class EventOut(BaseModel):
    """One event of the log; times inside ``data`` are seconds since 1970, as the log has them."""

    seq: int
    at: Time
    kind: str
    data: dict[str, Any]


class Events(BaseModel):
    """Some events; ``next`` is the ``after`` of the following ones, null at the end."""

    events: list[EventOut]
    next: int | None


class WorkerOut(BaseModel):
    """What one worker did."""

    worker: str
    given: int
    labels: int
    late: int
    expired: int
    released: int
    mean_seconds: float | None = Field(description="Of the labels told in time")
    last_at: Time


class Workers(BaseModel):
    """Workers with most labels first."""

    workers: list[WorkerOut]


class MoreOut(BaseModel):
    """What more labels could buy at most."""

    labels: int
    upper: float
    gain: float


class CertificateOut(BaseModel):
    """What the campaign is worth and can be worth at most, a task."""

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
    slack: float = Field(description="What a longer computation could still take off the upper bound")
    price: float = Field(description="What one more label can add at most, summed over the tasks")
    ceiling: float
    arrivals: float | None = Field(description="Workers expected before the deadline")
    more: list[MoreOut]
    seconds: float


class Health(BaseModel):
    """The service runs and its store answers."""

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
