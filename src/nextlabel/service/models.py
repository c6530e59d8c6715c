"""What clients send to the service, and what it answers, as OpenAPI documents them.

What the service answers, as documented by OpenAPI: the types of ``Campaign`` and ``Client``, with times in ISO 8601.

Routes send JSON that ``to_json`` makes of those types.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import cache
from inspect import signature
from operator import attrgetter
from typing import Annotated, Any, Literal, TypeVar, get_type_hints

from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from nextlabel.application.certificate import Certificate, More, Worth
from nextlabel.application.guarantees import GuaranteeStatus
from nextlabel.application.imports import ImportStatus
from nextlabel.application.status import AuditLink, CampaignLinks, CampaignStatus, Cost, JoinLink, WorkerLink
from nextlabel.application.visits import Effect
from nextlabel.application.worker_reports import WorkerReport
from nextlabel.campaign.declaration import (
    LARGEST,
    LONGEST_COMMENT,
    LONGEST_INSTRUCTIONS,
    LONGEST_WORKER,
    MOST_ANSWERS,
    bounds,
    declared,
    kind,
    names,
    offer,
)
from nextlabel.campaign.events import Event
from nextlabel.campaign.notices import Action, Kind, notice_table
from nextlabel.campaign.records import AccessToken, Activity, Role, Visit
from nextlabel.campaign.replies import Added, AddedFeatures, AddedPredictions, AuditItem, ChangedLabels, Lease, Receipt
from nextlabel.campaign.results import GivenLabel, Result
from nextlabel.campaign.states import LONGEST_REASON, Reason, Standing
from nextlabel.campaign.webhooks import LONGEST_URL, TYPES, Webhook
from nextlabel.crowd.audit import Audit
from nextlabel.integrations.platforms import PlatformName
from nextlabel.wording import iso_or_none

B = TypeVar("B", bound="RequestBody")

#: Cursors fit into the whole numbers of JavaScript.
LARGEST_CURSOR = 2**53
Name = Annotated[str, Field(min_length=1, max_length=200)]

Worker = Annotated[
    str, Field(min_length=1, max_length=LONGEST_WORKER, description="The worker's name", examples=["ann"])
]

Comment = Annotated[
    str, Field(max_length=LONGEST_COMMENT, description="What the worker says about the task, for the requester")
]
ReasonText = Annotated[str, Field(max_length=LONGEST_REASON, description="For the log", examples=["guesses"])]
_NEXT = "``next`` is the ``after`` of the following page, null on the last."
Time = Annotated[str, Field(description="ISO 8601, UTC", examples=["2026-07-01T12:00:00.000Z"])]


class RequestBody(BaseModel):
    """A JSON body."""

    model_config = ConfigDict(strict=True, extra="forbid")

    @classmethod
    def parse(cls: type[B], data: bytes) -> B:
        """Parse JSON; an empty body counts as an empty object."""
        try:
            return cls.model_validate_json(data or b"{}")
        except ValidationError as error:
            errors = [{**one, "loc": ("body", *one["loc"])} for one in error.errors(include_url=False)]
            raise RequestValidationError(errors) from None


class QueryParameters(BaseModel):
    """Query parameters."""

    model_config = ConfigDict(extra="forbid")


class PageQuery(QueryParameters):
    """One page of a list."""

    after: int = Field(0, ge=0, le=LARGEST_CURSOR, description="``next`` of the previous page")
    limit: int = Field(100, ge=1, le=1000)


class ResultsQuery(PageQuery):
    """One page of results, or all of them as a file."""

    after: int = Field(-1, ge=-1, le=LARGEST_CURSOR, description="``next`` of the previous page")
    limit: int = Field(1000, ge=1, le=10_000)
    format: Literal["json", "csv", "jsonl", "xlsx"] = Field("json", description="csv, jsonl and xlsx: all results")


class LabelsQuery(ResultsQuery):
    """One page of labels, or all of them as a file."""

    limit: int = Field(1000, ge=1, le=1000, description="Tasks whose labels are on the page")
    format: Literal["json", "csv", "jsonl", "xlsx"] = Field("json", description="csv, jsonl and xlsx: all labels")
    unanswered: bool = Field(False, description="Also leases without an answer")
    dropped: bool = Field(False, description="Also labels that were dropped")


class WorkersQuery(QueryParameters):
    """The workers with the most labels."""

    limit: int = Field(1000, ge=1, le=10_000)
    format: Literal["json", "csv", "jsonl", "xlsx"] = Field("json", description="csv, jsonl and xlsx: all workers")


class VisitsQuery(QueryParameters):
    """Which visits of platforms' workers."""

    platform: PlatformName | None = Field(None, description="Left out: of all platforms")
    limit: int = Field(1000, ge=1, le=100_000)


class BonusesQuery(QueryParameters):
    """Whose workers are paid, and what the platform pays them for a visit already."""

    platform: PlatformName
    reward: float = Field(0.0, ge=0, le=100_000, allow_inf_nan=False)


class ProlificEventRequest(BaseModel):
    """An event as Prolific sends it (docs.prolific.com, Webhooks, Receiving); others than this one change nothing."""

    event_type: str = Field(examples=["submission.status.change"])
    resource_id: str = Field(description="The submission, that is the SESSION_ID of the study link")
    participant_id: str
    status: str = Field(examples=["RETURNED"])


class TasksQuery(QueryParameters):
    """How tasks are read."""

    id_column: Name | None = Field(None, description="The column or key with the task's id")
    score_column: Name | None = Field(
        None,
        description="The column or key with a model's score, to start from; in tables no column is one by its name",
    )
    gold_column: Name | None = Field(
        None, description="The column or key with the answer where it is known, which workers are not shown"
    )
    batch: Name | None = Field(None, description="A batch is added once, however often it is sent")


class FeaturesQuery(QueryParameters):
    """Whether they take the place of those that are there."""

    replace: bool = Field(False, description="Take away the features that are there")


class PredictionsQuery(QueryParameters):
    """Whose predictions they are, and what one costs."""

    model: Annotated[str, Field(min_length=1, max_length=170, description="The model's name", examples=["v2"])]
    cost: float = Field(0.0, ge=0, le=1000, allow_inf_nan=False, description="Labels of the budget that one costs")
    task_column: Name | None = Field(None, description="The column or key with the task's id")


def _settings_model(name: str, changing: bool) -> type[RequestBody]:
    """The settings of a campaign, or those that may change, as JSON has them."""
    columns: dict[str, Any] = {}
    for setting in names():
        info, json_type = declared(setting), offer(setting).json
        if not changing or offer(setting).changeable:
            default = 1 if changing and info.is_required() else info.default
            lax = False if kind(setting) is tuple else None  # an array of JSON is a list
            limits = bounds(setting) if json_type is None or kind(setting) is not int else {}
            field = Field(default, description=info.description, examples=info.examples, strict=lax, **limits)
            columns[setting] = (json_type or info.annotation, field)
    return create_model(name, __base__=RequestBody, **columns)


class CreateCampaignRequest(_settings_model("Settings", changing=False)):  # type: ignore[misc]
    """A campaign's settings; only the budget is required."""

    id: str | None = Field(None, description="1 to 48 lower-case letters, digits and underscores; random if left out")


class ChangeCampaignRequest(_settings_model("Changes", changing=True)):  # type: ignore[misc]
    """The settings to change; null removes those that may be left out, e.g. a deadline or a limit per worker."""


#: An answer: by name or as a number, several names in a list, by question in a table.
Said = (
    Annotated[str, Field(max_length=LONGEST_INSTRUCTIONS)]
    | Annotated[int, Field(ge=-LARGEST, le=LARGEST)]
    | Annotated[list[Name], Field(max_length=MOST_ANSWERS)]
    | dict[Name, Name | list[Name] | int | float]
)

#: What bodies of commands hold, by the parameters of the methods of ``Campaign``.
FIELDS: dict[str, Any] = {
    "answers": Annotated[
        dict[Name, Said],
        Field(min_length=1, max_length=10_000, description="By the ids of tasks", examples=[{"t17": "yes"}]),
    ],
    "tasks": Annotated[list[Name], Field(min_length=1, max_length=10_000, examples=[["t17"]])],
    "audits": Annotated[
        int | list[int] | None,
        Field(description="Left out, as the probabilities say; several for several looks", examples=[92, [80, 150]]),
    ],
    "of": Annotated[
        Name | None, Field(description="The label or question that it is about, if one", examples=["harmful"])
    ],
    "items": Annotated[int, Field(ge=1, le=2000, examples=[60])],
    "seed": Annotated[int, Field(ge=0, le=LARGEST)],
    "worker": Worker,
    "standing": Standing,
    "reason": ReasonText,
}


def body_model(method: Callable[..., Any]) -> type[RequestBody] | None:
    """The body of a command: what the method takes; None if that is nothing but what the address says."""
    taken = [one for one in signature(method).parameters.values() if one.name not in ("self", "id")]
    columns: dict[str, Any] = {
        one.name: (FIELDS[one.name], ... if one.default is one.empty else one.default) for one in taken
    }
    name = "".join(word.capitalize() for word in method.__name__.split("_"))
    return create_model(f"{name}Request", __base__=RequestBody, __doc__=method.__doc__, **columns) if columns else None


class AskRequest(RequestBody):
    """The worker on whose behalf a requester asks; with a worker's token it is ignored."""

    worker: Worker | None = None


class TellRequest(RequestBody):
    """The label, by name or number, several in a list, by question in a table; and a comment if there is one."""

    label: Said
    comment: Comment | None = None


class ReleaseRequest(RequestBody):
    """What the worker says about a task that they pass on; the body may be left out."""

    comment: Comment | None = None


class CreateLinksRequest(RequestBody):
    """Workers who get a personal link."""

    workers: list[Worker] = Field([], max_length=10_000)


class RevokeLinksRequest(RequestBody):
    """Whose links end; ``join`` is the platforms' link, ``audit`` those of experts, with all who came by them."""

    workers: list[Worker] = Field([], max_length=1000)
    join: bool = False
    audit: bool = False


class CreateWebhookRequest(RequestBody):
    """Where to tell what happens; all types of events if none is named."""

    url: str = Field(min_length=1, max_length=LONGEST_URL, examples=["https://example.org/hooks/labels"])
    types: list[Annotated[str, Field(max_length=40)]] = Field([], max_length=len(TYPES), examples=[list(TYPES)])
    from_start: bool = Field(False, description="Also tell what happened before")


class CreateTokenRequest(RequestBody):
    """A further token; a requester's is an owner's of its own name, unless ``owner`` is another one."""

    name: str = Field(min_length=1, max_length=64, examples=["grafana"])
    role: Role = "requester"
    owner: str | None = Field(None, max_length=64, description="Whose campaigns it opens; usually those of the maker")
    campaigns: list[Annotated[str, Field(max_length=48)]] = Field(
        [], max_length=200, description="Campaigns that it is limited to; none for no limit"
    )


class OwnerRequest(RequestBody):
    """Whose a campaign is; empty for nobody's, which administrators alone see."""

    owner: str = Field(max_length=64, examples=["ann"])


class ActivityQuery(QueryParameters):
    """What was done to one campaign, or to all that the token opens."""

    campaign: str = Field("", max_length=48)
    limit: int = Field(200, ge=1, le=10_000)


class HookResponse(BaseModel):
    """What an event of a platform has done; ``unknown``: it is about nothing that began here."""

    effect: Effect


def is_time(name: str) -> bool:
    """Whether a field of that name is a time."""
    return name in ("at", "deadline") or name.endswith("_at")


@cache
def _fields_of(kind: type) -> tuple[list[str], Callable[[Any], tuple[Any, ...]], list[str]]:
    """The fields of a dataclass, how they are read, and which are times: replies to workers ask at every request."""
    names = [one.name for one in fields(kind)]
    read = attrgetter(*names) if len(names) > 1 else lambda value: (getattr(value, names[0]),)
    return names, read, [name for name in names if is_time(name)]


def to_json(value: Any, **replaced: Any) -> dict[str, Any]:
    """A dataclass as JSON, with its times in ISO 8601; dataclasses within it are left to FastAPI."""
    names, read, times = _fields_of(type(value))  # type: ignore[arg-type]  # types are hashable
    found = dict(zip(names, read(value), strict=True))
    for name in times:
        found[name] = iso_or_none(found[name])
    return found | replaced


def status_json(status: CampaignStatus) -> dict[str, Any]:
    """The status of a campaign as JSON."""
    found = to_json(status, notices=[notice_table(one) for one in status.notices])
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
    for name, hint in get_type_hints(source).items():
        if is_time(name):
            hint = Time | None if hint == float | None else Time
        columns[name] = (replaced.get(name, hint), ...)
    columns |= {name: (kind, ...) for name, kind in replaced.items()}
    kept = {name: column for name, column in columns.items() if column[0] is not None}
    return create_model(f"{source.__name__}Response", __doc__=document, **kept)


def _list_of(kind: Any) -> Any:
    return list.__class_getitem__(kind)


def _dict_of(kind: Any) -> Any:
    return dict.__class_getitem__((str, kind))


def _list(name: str, document: str, paged: bool = False, **items: Any) -> Any:
    columns: dict[str, Any] = {key: (_list_of(kind), ...) for key, kind in items.items()}
    if paged:
        columns["next"] = (int | None, ...)
    return create_model(name, __doc__=document, **columns)


def _described(kind: Any, description: str) -> Any:
    return Annotated[kind, Field(description=description)]


class NoticeResponse(BaseModel):
    """Something that the requester should do something about."""

    kind: Kind
    worker: str | None
    labels: int = Field(description="Of the worker, or left of the budget; items with a known answer")
    text: str
    actions: list[Action] = Field(description="What can be done: see the calls on workers and links")


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
    cost=_described(_model(Cost, "What labels cost, in a currency of your choice.") | None, "Null without a pay"),
    notices=_described(list[NoticeResponse], "What needs to be done; a viewer is not told about workers"),
)
CampaignsResponse = _list("CampaignsResponse", "All campaigns, newest first.", campaigns=CampaignResponse)

AddedResponse = _model(
    Added,
    "How many tasks were added, how many were known before, and how many there are now.",
    alike=_described(int, "Tasks without an id with the contents of another one: each is a task of its own"),
    read=_described(list[str], "How the body was read: what was guessed, and rows that were left out"),
)

AddedPredictionsResponse = _model(
    AddedPredictions,
    "How many predictions were added, how many were known before, and how many labels of the budget they cost.",
    read=_described(list[str], "How the body was read: what was guessed, and rows that were left out"),
)

AddedFeaturesResponse = _model(
    AddedFeatures,
    "Items with features, how many of them are tasks of the campaign now, numbers and texts of each; a hash of all.",
)

ImportResponse = _model(
    ImportStatus,
    "An import of tasks: ``staging`` until all of them have been checked, ``publishing`` until they are there.",
    rows=_described(int, "Tasks that were read"),
    alike=_described(int, "Tasks without an id with the contents of another one: each is a task of its own"),
    published=_described(int, "New tasks that are in the log; workers get them when all are"),
    error=_described(str | None, "Why nothing was added"),
)
ImportsResponse = _list("ImportsResponse", "The last imports, newest first.", imports=ImportResponse)

CampaignLinksResponse = _model(
    CampaignLinks,
    "Links to one campaign.",
    links=_list_of(_model(WorkerLink, "A worker's personal link.")),
    join=_model(
        JoinLink,
        "The link for a platform, which adds the worker's id to it.",
        prolific=_described(str, "The same with Prolific's placeholder"),
    ),
)
AuditLinkResponse = _model(AuditLink, "A link by which an expert answers the items of an audit.")

_LEASE = _model(Lease, "A task that is leased to a worker.")
AskResponse = create_model(
    "AskResponse",
    __doc__="A lease, or the reason why there is none and when to ask again.",
    lease=(_LEASE | None, ...),
    reason=(Reason | None, ...),
    detail=(str | None, ...),
    retry_after=(_described(float | None, "Seconds"), ...),
)
ReceiptResponse = _model(Receipt, "The status of a lease after a command.")
ResultsResponse = _list(
    "ResultsResponse", f"Results. {_NEXT}", results=_model(Result, "What is known about one task."), paged=True
)

_LABEL = _model(
    GivenLabel, "One worker's answer to one task.", counted=_described(bool, "Whether the label was bought")
)
LabelsResponse = _list("LabelsResponse", f"Labels, task by task. {_NEXT}", labels=_LABEL, paged=True)
_EVENT = _model(Event, "One event of the log; times in ``data`` are seconds since 1970.")
EventsResponse = _list("EventsResponse", f"Events. {_NEXT}", events=_EVENT, paged=True)

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
        _model(
            Audit,
            "The accuracy as audited items correct it, with a 95% interval.",
            questions=_dict_of(_model(Audit, "The same of one of several questions.", questions=None, read=None)),
        )
        | None,
        "Null without audited items",
    ),
    forecast=_described(float | None, "Expected at the end of the budget, where workers are told apart"),
    forecast_low=_described(float | None, "Of the 90% range of the forecast"),
    upper=_described(float | None, "If what ``assumes`` says is so; null if it is not known"),
    assumes=_described(str, "What ``upper`` assumes, in a sentence"),
    as_of_labels=_described(int, "Labels that count in all of this but ``upper``"),
    upper_as_of=_described(int | None, "Labels that count in ``upper``, where workers are told apart"),
    worth=_described(
        _model(Worth, "What an item's answer is worth on average: now, at most in the end, and if truths were known.")
        | None,
        "Where answers have utilities and workers are told apart",
    ),
    slack=_described(float | None, "How much a longer computation could still lower the upper bound"),
    price=_described(float | None, "The most that one more label can add, summed over the tasks"),
    arrivals=_described(float | None, "Workers expected before the deadline"),
    more=_list_of(_model(More, "The most that more labels could buy.")),
    curve=None,
    history=None,
)


class OlderCertificate(BaseModel):
    """The certificate by the labels that are there now is not ready; ``as_of_labels`` is of the last one."""

    as_of_labels: int | None


class DeletedResponse(BaseModel):
    """A campaign that is deleted."""

    id: str
    deleted_at: Time


class GoldResponse(BaseModel):
    """How many answers are new or corrected."""

    changed: int


GuaranteeResponse = _model(GuaranteeStatus, "How far the guarantee of a campaign is.")
AuditResponse = _list(
    "AuditResponse", "Items that were drawn for an audit.", items=_model(AuditItem, "An item, and the expert's answer.")
)
VisitsResponse = _list(
    "VisitsResponse",
    "Visits to one campaign, newest first.",
    visits=_model(Visit, "A submission or assignment by which a platform sent a worker."),
)

TokenResponse = _model(
    AccessToken, "A token; without an owner it opens the campaigns of all, and with ``campaigns`` only those.",
    hash=None,
)  # fmt: skip
TokensResponse = _list("TokensResponse", "Tokens, oldest first.", tokens=TokenResponse)
ActivityListResponse = _list(
    "ActivityListResponse", "What was changed, newest first.", activity=_model(Activity, "Who changed what.")
)


class NewTokenResponse(TokenResponse):  # type: ignore[valid-type, misc]
    """A token that was just made; it is not shown again."""

    token: str


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
