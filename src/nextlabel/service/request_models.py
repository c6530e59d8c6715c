"""What clients send to the service. Types are not converted, and unknown fields are refused."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from nextlabel.campaign.commands import LONGEST_WORKER
from nextlabel.campaign.config import LEASE_RANGE, LONGEST_LABEL, LONGEST_NAME, LONGEST_QUESTION, MOST_ANSWERS
from nextlabel.policies.base import MOST_IN_FLIGHT, MOST_LABELS
from nextlabel.problem.problem import LARGEST

B = TypeVar("B", bound="RequestBody")
#: Cursors fit into the whole numbers of JavaScript.
LARGEST_CURSOR = 2**53
Name = Annotated[str, Field(min_length=1, max_length=200)]
TimeField = Annotated[
    str | float | None,
    Field(
        description="ISO 8601 with a time zone, or seconds since 1970; null for none",
        examples=["2026-07-01T12:00:00Z"],
    ),
]
LeaseSeconds = Annotated[
    float | None, Field(ge=LEASE_RANGE[0], le=LEASE_RANGE[1], description="null: learnt from completion times")
]
Worker = Annotated[
    str, Field(min_length=1, max_length=LONGEST_WORKER, description="The worker's name", examples=["ann"])
]


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


class WorkersQuery(QueryParameters):
    """The workers with the most labels."""

    limit: int = Field(1000, ge=1, le=10_000)


class TasksQuery(QueryParameters):
    """How tasks are read."""

    id_column: Name | None = Field(None, description="The column or key with the task's id")
    score_column: Name | None = Field(None, description="The column or key with the model's score")
    batch: Name | None = Field(None, description="A batch is added once, however often it is sent")


class CreateCampaignRequest(RequestBody):
    """A campaign's settings; only the budget is required."""

    id: str | None = Field(None, description="1 to 48 lower-case letters, digits and underscores; random if left out")
    budget: int = Field(ge=1, le=LARGEST, description="Labels that may be bought")
    labels: list[str] = Field(
        ["0", "1"], min_length=2, max_length=MOST_ANSWERS, description="Scores are probabilities of the second"
    )
    name: str = Field("", max_length=LONGEST_NAME)
    question: str = Field("", max_length=LONGEST_QUESTION, description="What workers are asked")
    deadline: TimeField = None
    lease_seconds: LeaseSeconds = None
    policy: str = Field("index", description="How the next task is chosen")
    prior: list[float] | dict[str, Any] | None = Field(None, description="One weight per label, or an object")
    threshold: float = Field(0.5, gt=0, lt=1)
    reward: str | dict[str, Any] = Field({"kind": "accuracy"}, description="accuracy, or an object")
    strength: float = Field(4.0, gt=0, description="Number of labels that a task's score is worth")
    accuracy: float | None = Field(None, gt=0.5, lt=1, description="Workers' accuracy, for one-coin priors from scores")
    label_cost: float = Field(0.0, ge=0, description="In the unit of the reward")
    most_labels: int = Field(MOST_LABELS, ge=1, le=MOST_LABELS, description="Most labels per task")
    most_in_flight: int = Field(MOST_IN_FLIGHT, ge=1, le=MOST_IN_FLIGHT, description="Most labels in flight per task")
    rho: float = Field(0.25, gt=0, description="Expected labels in flight until rates have been learnt")
    seed: int = Field(0, ge=0, le=LARGEST)


class ChangeCampaignRequest(RequestBody):
    """The settings to change; null removes a deadline or lease time."""

    budget: int = Field(0, ge=1, le=LARGEST)
    deadline: TimeField = None
    lease_seconds: LeaseSeconds = None


class AskRequest(RequestBody):
    """The worker on whose behalf a requester asks; with a worker's token it is ignored."""

    worker: Worker | None = None


class TellRequest(RequestBody):
    """The label, by name or number."""

    label: Annotated[str, Field(max_length=LONGEST_LABEL)] | Annotated[int, Field(ge=-LARGEST, le=LARGEST)]


class CreateLinksRequest(RequestBody):
    """Workers who get a personal link."""

    workers: list[Worker] = Field([], max_length=10_000)
