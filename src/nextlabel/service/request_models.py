"""What is sent to the service, checked as it comes in: types as they are written, no unknown fields."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from nextlabel.campaign.commands import LONGEST_WORKER
from nextlabel.campaign.settings import LEASE_RANGE, LONGEST_LABEL, LONGEST_NAME, LONGEST_QUESTION, MOST_ANSWERS
from nextlabel.policies.base import MOST_IN_FLIGHT, MOST_LABELS
from nextlabel.problem.problem import LARGEST

B = TypeVar("B", bound="Body")
#: Cursors are whole numbers that JavaScript can hold.
LARGEST_CURSOR = 2**53
Name = Annotated[str, Field(min_length=1, max_length=200)]
GivenTime = Annotated[
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


class Body(BaseModel):
    """Something sent: types as they are written, no unknown fields."""

    model_config = ConfigDict(strict=True, extra="forbid")

    @classmethod
    def read(cls: type[B], data: bytes) -> B:
        """From JSON; nothing at all is an empty object."""
        try:
            return cls.model_validate_json(data or b"{}")
        except ValidationError as error:
            first = [{**one, "loc": ("body", *one["loc"])} for one in error.errors(include_url=False)]
            raise RequestValidationError(first) from None


class Parameters(BaseModel):
    """Parameters of an address: no unknown ones."""

    model_config = ConfigDict(extra="forbid")


class PageQuery(Parameters):
    """A part of something long."""

    after: int = Field(0, ge=0, le=LARGEST_CURSOR, description="``next`` of the page before")
    limit: int = Field(100, ge=1, le=1000)


class ResultsPage(PageQuery):
    """Some results, or all of them."""

    after: int = Field(-1, ge=-1, le=LARGEST_CURSOR, description="``next`` of the page before")
    limit: int = Field(1000, ge=1, le=10_000)
    format: Literal["json", "csv", "jsonl"] = Field("json", description="csv and jsonl: all results")


class WorkersPage(Parameters):
    """The first workers."""

    limit: int = Field(1000, ge=1, le=10_000)


class TaskColumns(Parameters):
    """How tasks are read."""

    id_column: Name | None = Field(None, description="The column or key that has the task's id")
    score_column: Name | None = Field(None, description="The column or key that has the model's score")
    batch: Name | None = Field(None, description="A batch comes in once, however often it is sent")


class NewCampaign(Body):
    """A campaign's settings; all but the budget may be left out."""

    id: str | None = Field(None, description="1 to 48 small letters, digits and underscores; made up if left out")
    budget: int = Field(ge=1, le=LARGEST, description="Labels that may be bought")
    labels: list[str] = Field(
        ["0", "1"], min_length=2, max_length=MOST_ANSWERS, description="The second is what scores mean"
    )
    name: str = Field("", max_length=LONGEST_NAME)
    question: str = Field("", max_length=LONGEST_QUESTION, description="What workers are asked")
    deadline: GivenTime = None
    lease_seconds: LeaseSeconds = None
    policy: str = Field("index", description="How the next task is chosen")
    prior: list[float] | dict[str, Any] | None = Field(None, description="One weight a label, or a table with a kind")
    threshold: float = Field(0.5, gt=0, lt=1)
    reward: str | dict[str, Any] = Field({"kind": "accuracy"}, description="accuracy, or a table with a kind")
    strength: float = Field(4.0, gt=0, description="Labels that a task's score is worth")
    accuracy: float | None = Field(None, gt=0.5, lt=1, description="Of workers, for one-coin priors from scores")
    label_cost: float = Field(0.0, ge=0, description="In the unit of the reward")
    most_labels: int = Field(MOST_LABELS, ge=1, le=MOST_LABELS, description="Labels a task at most")
    most_in_flight: int = Field(MOST_IN_FLIGHT, ge=1, le=MOST_IN_FLIGHT, description="Labels a task at once")
    rho: float = Field(0.25, gt=0, description="Labels in flight expected before rates are learnt")
    seed: int = Field(0, ge=0, le=LARGEST)


class Change(Body):
    """What is to change; null takes a deadline or lease time away."""

    budget: int = Field(0, ge=1, le=LARGEST)
    deadline: GivenTime = None
    lease_seconds: LeaseSeconds = None


class WhoAsks(Body):
    """The worker that a requester asks for; a worker's link says it itself."""

    worker: Worker | None = None


class Answer(Body):
    """A label by name."""

    label: Annotated[str, Field(max_length=LONGEST_LABEL)] | Annotated[int, Field(ge=-LARGEST, le=LARGEST)]


class NewLinks(Body):
    """Workers who get a link of their own."""

    workers: list[Worker] = Field([], max_length=10_000)
