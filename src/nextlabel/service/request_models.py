"""What clients send to the service. Types are not converted, and unknown fields are refused."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from nextlabel.campaign.declaration import LARGEST, LONGEST_COMMENT, LONGEST_LABEL, LONGEST_WORKER, REQUIRED, declared
from nextlabel.campaign.standing import LONGEST_REASON, Standing
from nextlabel.campaign.webhooks import LONGEST_URL, TYPES
from nextlabel.campaigns.visits import Platform

B = TypeVar("B", bound="RequestBody")
#: Cursors fit into the whole numbers of JavaScript.
LARGEST_CURSOR = 2**53
Language = Literal["en", "de", "fr", "es", "pt", "zh", "hi", "ar"]
Name = Annotated[str, Field(min_length=1, max_length=200)]
Worker = Annotated[
    str, Field(min_length=1, max_length=LONGEST_WORKER, description="The worker's name", examples=["ann"])
]
Comment = Annotated[
    str, Field(max_length=LONGEST_COMMENT, description="What the worker says about the task, for the requester")
]
ReasonText = Annotated[str, Field(max_length=LONGEST_REASON, description="For the log", examples=["guesses"])]


def setting_field(name: str) -> Any:
    """A field with the default, range and description of a campaign's setting."""
    setting = declared(name)
    default = ... if setting.default is REQUIRED else setting.default
    default = list(default) if isinstance(default, tuple) else default
    return Field(default, description=setting.help, examples=[setting.example] if name == "deadline" else None,
                 **setting.bounds)  # fmt: skip


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
    format: Literal["json", "csv", "jsonl"] = Field("json", description="csv and jsonl: all results")


class LabelsQuery(ResultsQuery):
    """One page of labels, or all of them as a file."""

    limit: int = Field(1000, ge=1, le=1000, description="Tasks whose labels are on the page")
    format: Literal["json", "csv", "jsonl"] = Field("json", description="csv and jsonl: all labels")
    unanswered: bool = Field(False, description="Also leases without an answer")
    dropped: bool = Field(False, description="Also labels that were dropped")


class WorkersQuery(QueryParameters):
    """The workers with the most labels."""

    limit: int = Field(1000, ge=1, le=10_000)
    format: Literal["json", "csv", "jsonl"] = Field("json", description="csv and jsonl: all workers")


class VisitsQuery(QueryParameters):
    """Which visits of platforms' workers."""

    platform: Platform | None = Field(None, description="Left out: of all platforms")
    limit: int = Field(1000, ge=1, le=100_000)


class BonusesQuery(QueryParameters):
    """Whose workers are paid, and what the platform pays them for a visit already."""

    platform: Platform
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


class PredictionsQuery(QueryParameters):
    """Whose predictions they are, and what one costs."""

    model: Annotated[str, Field(min_length=1, max_length=170, description="The model's name", examples=["v2"])]
    cost: float = Field(0.0, ge=0, le=1000, allow_inf_nan=False, description="Labels of the budget that one costs")
    task_column: Name | None = Field(None, description="The column or key with the task's id")


class ChangeableSettings(RequestBody):
    """The settings that need not be given and may change while a campaign runs."""

    name: str = setting_field("name")
    question: str = setting_field("question")
    display_names: list[str] | None = setting_field("display_names")
    instructions: str = setting_field("instructions")
    language: Language | None = setting_field("language")
    show: list[str] | None = setting_field("show")
    deadline: str | float | None = setting_field("deadline")
    lease_seconds: float | None = setting_field("lease_seconds")
    pay_per_label: float = setting_field("pay_per_label")
    most_labels_per_worker: int | None = setting_field("most_labels_per_worker")
    completion_code: str = setting_field("completion_code")
    turn_away: bool = setting_field("turn_away")


class CreateCampaignRequest(ChangeableSettings):
    """A campaign's settings; only the budget is required."""

    id: str | None = Field(None, description="1 to 48 lower-case letters, digits and underscores; random if left out")
    budget: int = setting_field("budget")
    labels: list[str] = setting_field("labels")
    policy: str = setting_field("policy")
    prior: list[float] | dict[str, Any] | None = setting_field("prior")
    threshold: float = setting_field("threshold")
    reward: str | dict[str, Any] = setting_field("reward")
    strength: float = setting_field("strength")
    accuracy: float | None = setting_field("accuracy")
    label_cost: float = setting_field("label_cost")
    most_labels: int = setting_field("most_labels")
    most_in_flight: int = setting_field("most_in_flight")
    rho: float = setting_field("rho")
    seed: int = setting_field("seed")
    gold_in_budget: bool = setting_field("gold_in_budget")


class ChangeCampaignRequest(ChangeableSettings):
    """The settings to change; null removes those that may be left out, e.g. a deadline or a limit per worker."""

    budget: int = Field(0, ge=1, le=LARGEST, description=declared("budget").help)


class GoldRequest(RequestBody):
    """Known answers, by the ids of tasks."""

    answers: dict[Name, Annotated[str, Field(max_length=LONGEST_LABEL)]] = Field(
        min_length=1, max_length=10_000, examples=[{"t17": "yes"}]
    )


class DrawAuditRequest(RequestBody):
    """How many items are drawn at random for an audit."""

    items: int = Field(ge=1, le=2000, examples=[60])
    seed: int = Field(0, ge=0, le=LARGEST)


class StandingRequest(RequestBody):
    """How a worker stands from now on; the reason is for the log and the requester."""

    worker: Worker
    standing: Standing
    reason: ReasonText = ""


class DropLabelsRequest(RequestBody):
    """Whose labels are left out of the results, and why."""

    worker: Worker
    reason: ReasonText = ""


class RestoreLabelsRequest(RequestBody):
    """Whose dropped labels are taken in again."""

    worker: Worker


class AskRequest(RequestBody):
    """The worker on whose behalf a requester asks; with a worker's token it is ignored."""

    worker: Worker | None = None


class TellRequest(RequestBody):
    """The label, by name or number, and a comment on the task if there is one."""

    label: Annotated[str, Field(max_length=LONGEST_LABEL)] | Annotated[int, Field(ge=-LARGEST, le=LARGEST)]
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
