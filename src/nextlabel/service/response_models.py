"""What the service answers, as documented by OpenAPI: the types of ``Campaign`` and ``Client``, with times in ISO 8601.

Routes send JSON that ``to_json`` makes of those types.
"""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Annotated, Any, Literal, get_type_hints

from pydantic import BaseModel, Field, create_model

from nextlabel.campaign.events import Event
from nextlabel.campaign.given_labels import GivenLabel
from nextlabel.campaign.replies import Added, AddedPredictions, AuditItem, ChangedLabels, Lease, Told
from nextlabel.campaign.results import Result
from nextlabel.campaign.states import Reason
from nextlabel.campaign.visits import Visit
from nextlabel.campaign.webhooks import Webhook
from nextlabel.campaigns.audited_accuracy import AuditedAccuracy
from nextlabel.campaigns.certificate import Certificate, More
from nextlabel.campaigns.import_status import ImportStatus
from nextlabel.campaigns.links import AuditLink, CampaignLinks, JoinLink, WorkerLink
from nextlabel.campaigns.status import CampaignStatus
from nextlabel.campaigns.visits import Effect
from nextlabel.campaigns.worker_reports import WorkerReport
from nextlabel.service.times import iso_or_none

_NEXT = "``next`` is the ``after`` of the following page, null on the last."
Time = Annotated[str, Field(description="ISO 8601, UTC", examples=["2026-07-01T12:00:00.000Z"])]


class HookResponse(BaseModel):
    """What an event of a platform has done; ``unknown``: it is about nothing that began here."""

    effect: Effect


def is_time(name: str) -> bool:
    """Whether a field of that name is a time."""
    return name in ("at", "deadline") or name.endswith("_at")


def to_json(value: Any, **replaced: Any) -> dict[str, Any]:
    """A dataclass as JSON, with its times in ISO 8601."""
    found = {name: iso_or_none(one) if is_time(name) else one for name, one in asdict(value).items()}
    return {**found, **replaced}


def status_json(status: CampaignStatus) -> dict[str, Any]:
    """The status of a campaign as JSON."""
    found = {one.name: getattr(status, one.name) for one in fields(status)}
    found |= {name: iso_or_none(value) for name, value in found.items() if is_time(name)}
    found["settings"] = {**status.settings.to_dict(), "deadline": found["deadline"]}
    found["rates"] = {"arrivals": found.pop("arrival_rate"), "completions": found.pop("completion_rate")}
    return found


def webhook_json(webhook: Webhook) -> dict[str, Any]:
    """A webhook as JSON."""
    next_at = iso_or_none(webhook.next_at) if webhook.failures else None
    return to_json(webhook, types=list(webhook.types), next_at=next_at, state=webhook.state)


def _model(source: type, document: str, **replaced: Any) -> Any:
    """The model of a dataclass: its fields, times as text, those named replaced or, where None, left out."""
    columns: dict[str, Any] = {}
    for name, kind in get_type_hints(source).items():
        if is_time(name):
            kind = Time | None if kind == float | None else Time
        columns[name] = (replaced.get(name, kind), ...)
    columns |= {name: (kind, ...) for name, kind in replaced.items()}
    kept = {name: column for name, column in columns.items() if column[0] is not None}
    return create_model(f"{source.__name__}Response", __doc__=document, **kept)


def _list_of(kind: Any) -> Any:
    return list.__class_getitem__(kind)


def _list(name: str, document: str, paged: bool = False, **items: Any) -> Any:
    columns: dict[str, Any] = {key: (_list_of(kind), ...) for key, kind in items.items()}
    if paged:
        columns["next"] = (int | None, ...)
    return create_model(name, __doc__=document, **columns)


def _described(kind: Any, description: str) -> Any:
    return Annotated[kind, Field(description=description)]


class RatesResponse(BaseModel):
    """Learnt rates per second; null until enough is known."""

    arrivals: float | None
    completions: float | None


CampaignResponse = _model(
    CampaignStatus,
    "A campaign's settings and counters.",
    closed_by=_described(int | None, "Number of the event that closed the campaign"),
    settings=_described(dict[str, Any], "As created, with the current budget, deadline and lease_seconds"),
    seq=_described(int, "Number of the last event"),
    full=_described(int, "Tasks that can have no more labels"),
    reserved=_described(int, "Leases held by workers"),
    given=_described(int, "Leases granted so far"),
    kept=_described(int, "Labels told, whether counted or not"),
    turned_away=_described(int, "Workers who were told that there is nothing for them (setting turn_away)"),
    lease_seconds=_described(float, "Seconds that the next lease will last"),
    rho=_described(float, "Labels in flight for which the policy's tables were computed"),
    arrival_rate=None,
    completion_rate=None,
    rates=RatesResponse,
)
CampaignsResponse = _list("CampaignsResponse", "All campaigns, newest first.", campaigns=CampaignResponse)
AddedResponse = _model(
    Added,
    "How many tasks were added, how many were known before, and how many there are now.",
    read=_described(list[str], "How the body was read: what was guessed, and rows that were left out"),
)
AddedPredictionsResponse = _model(
    AddedPredictions,
    "How many predictions were added, how many were known before, and how many labels of the budget they cost.",
    read=_described(list[str], "How the body was read: what was guessed, and rows that were left out"),
)
ImportResponse = _model(
    ImportStatus,
    "An import of tasks: ``staging`` until all of them have been checked, ``publishing`` until they are there.",
    rows=_described(int, "Tasks that were read"),
    published=_described(int, "New tasks that are in the log; workers get them when all are"),
    error=_described(str | None, "Why nothing was added"),
)
ImportsResponse = _list("ImportsResponse", "The last imports, newest first.", imports=ImportResponse)
WorkerLinkResponse = _model(WorkerLink, "A worker's personal link.")
JoinLinkResponse = _model(
    JoinLink,
    "The link for a platform, which adds the worker's id to it.",
    prolific=_described(str, "The same with Prolific's placeholder"),
)
CampaignLinksResponse = _model(
    CampaignLinks, "Links to one campaign.", links=_list_of(WorkerLinkResponse), join=JoinLinkResponse
)
AuditLinkResponse = _model(AuditLink, "A link by which an expert answers the items of an audit.")
LeaseResponse = _model(Lease, "A task that is leased to a worker.")
AskResponse = create_model(
    "AskResponse",
    __doc__="A lease, or the reason why there is none and when to ask again.",
    lease=(LeaseResponse | None, ...),
    reason=(Reason | None, ...),
    detail=(str | None, ...),
    retry_after=(_described(float | None, "Seconds"), ...),
)
ToldResponse = _model(Told, "The status of a lease after a command.")
ResultResponse = _model(Result, "What is known about one task.")
ResultsResponse = _list("ResultsResponse", f"Results. {_NEXT}", results=ResultResponse, paged=True)
LabelResponse = _model(
    GivenLabel, "One worker's answer to one task.", counted=_described(bool, "Whether the label was bought")
)
LabelsResponse = _list("LabelsResponse", f"Labels, task by task. {_NEXT}", labels=LabelResponse, paged=True)
EventResponse = _model(Event, "One event of the log; times in ``data`` are seconds since 1970.")
EventsResponse = _list("EventsResponse", f"Events. {_NEXT}", events=EventResponse, paged=True)
WorkerResponse = _model(
    WorkerReport,
    "What one worker did, is owed and is worth; what was not learnt is null.",
    bought=_described(int, "Labels that the budget paid for"),
    dropped=_described(int, "Of these, labels that are left out of the results"),
    mean_seconds=_described(float | None, "Over labels told in time"),
    amount=_described(float, "Bought labels times the pay per label"),
    agreement=_described(float | None, "Share of the labels that agree with the likeliest truth"),
    accuracy=_described(float | None, "Chance that a label is right"),
    flags=_described(list[str], "What stands out, e.g. at chance"),
)
ChangedLabelsResponse = _model(
    ChangedLabels,
    "How many labels were dropped or restored.",
    left=_described(int, "Labels that were not restored for want of room"),
)
WorkersResponse = _list("WorkersResponse", "Workers, those with the most labels first.", workers=WorkerResponse)
CertificateResponse = _model(
    Certificate,
    "What a task of the campaign is worth now, what is forecast, and the most it can be worth in the end.",
    low=_described(float | None, "Of the 95% interval of ``now``, where workers are told apart; null elsewhere"),
    rests_on=_described(str, "What ``now`` rests on, in a sentence"),
    audit=_described(
        _model(AuditedAccuracy, "The accuracy as audited items correct it, with a 95% interval.") | None,
        "Null without audited items",
    ),
    forecast=_described(float | None, "Expected at the end of the budget, where workers are told apart"),
    forecast_low=_described(float | None, "Of the 90% range of the forecast"),
    upper=_described(float | None, "If what ``assumes`` says is so; null if it is not known"),
    assumes=_described(str, "What ``upper`` assumes, in a sentence"),
    slack=_described(float | None, "How much a longer computation could still lower the upper bound"),
    price=_described(float | None, "The most that one more label can add, summed over the tasks"),
    arrivals=_described(float | None, "Workers expected before the deadline"),
    more=_list_of(_model(More, "The most that more labels could buy.")),
    curve=None,
    history=None,
)


class DeletedResponse(BaseModel):
    """A campaign that is deleted."""

    id: str
    deleted_at: Time


class GoldResponse(BaseModel):
    """How many answers are new or corrected."""

    changed: int


AuditResponse = _list(
    "AuditResponse", "Items that were drawn for an audit.", items=_model(AuditItem, "An item, and the expert's answer.")
)
VisitResponse = _model(Visit, "A submission or assignment by which a platform sent a worker.")
VisitsResponse = _list("VisitsResponse", "Visits to one campaign, newest first.", visits=VisitResponse)

WebhookResponse = _model(
    Webhook,
    "A webhook, and how far it has got.",
    position=_described(int, "The last event that was told or passed over"),
    failures=_described(int, "Tries in a row that have failed"),
    first_failed_at=_described(Time | None, "Since when they fail"),
    next_at=_described(Time | None, "When it is tried again; null if nothing failed"),
    disabled=_described(str | None, "Why it has been given up; null if it has not"),
    state=_described(Literal["active", "failing", "disabled"], "In one word"),
)
WebhooksResponse = _list("WebhooksResponse", "Webhooks of a campaign, oldest first.", webhooks=WebhookResponse)


class NewWebhookResponse(BaseModel):
    """A webhook that was just made; the secret is not shown again."""

    webhook: WebhookResponse  # type: ignore[valid-type]
    secret: str


class TrialResponse(BaseModel):
    """What came of a message that was sent on trial."""

    ok: bool
    said: str


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
