"""What annotating needs of a campaign: ``nextlabel.Campaign`` on a database has it, and here a service's campaigns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from nextlabel.campaign.predictions import PREFIX
from nextlabel.campaign.replies import AddedPredictions, ChangedLabels, Lease, NoTask, Told
from nextlabel.campaign.results import GivenLabel, Result
from nextlabel.campaigns.status import CampaignStatus
from nextlabel.campaigns.worker_reports import WorkerReport
from nextlabel.client.client import Client
from nextlabel.errors import ConflictError


class AnnotatedCampaign(Protocol):
    """One campaign."""

    id: str

    @property
    def status(self) -> CampaignStatus:
        """State, settings and counters."""
        ...

    def ask(self, worker: str) -> Lease | NoTask:
        """A task for the worker, or the reason why there is none."""
        ...

    def tell(self, lease: Lease | str, label: Any) -> Told:
        """Answer a lease."""
        ...

    def release(self, lease: Lease | str, comment: str | None = None) -> Told:
        """Give a task back."""
        ...

    def add_predictions(self, model: str, predictions: Any, *, cost: float = 0.0) -> AddedPredictions:
        """Add what a model predicts."""
        ...

    def results(self) -> Iterator[Result]:
        """Every task with what is known about it."""
        ...

    def labels(self) -> Iterator[GivenLabel]:
        """Every answer that was not dropped."""
        ...

    def workers(self) -> list[WorkerReport]:
        """What each worker has done."""
        ...

    def drop_labels(self, worker: str, reason: str = "") -> ChangedLabels:
        """Leave a worker's labels out of the results."""
        ...


class ServiceCampaign:
    """One campaign of a service, with the methods of ``nextlabel.Campaign``."""

    def __init__(self, client: Client, id: str) -> None:
        self._client, self.id = client, id

    @property
    def status(self) -> CampaignStatus:
        """State, settings and counters."""
        return self._client.status(self.id)

    def ask(self, worker: str) -> Lease | NoTask:
        """A task for the worker, or the reason why there is none."""
        return self._client.ask(self.id, worker)

    def tell(self, lease: Lease | str, label: Any) -> Told:
        """Answer a lease."""
        return self._client.tell(lease, label)

    def release(self, lease: Lease | str, comment: str | None = None) -> Told:
        """Give a task back."""
        return self._client.release(lease, comment)

    def add_predictions(self, model: str, predictions: Any, *, cost: float = 0.0) -> AddedPredictions:
        """Add what a model predicts."""
        return self._client.add_predictions(self.id, model, predictions, cost)

    def results(self) -> Iterator[Result]:
        """Every task with what is known about it."""
        return self._client.results(self.id)

    def labels(self) -> Iterator[GivenLabel]:
        """Every answer that was not dropped."""
        return self._client.labels(self.id)

    def workers(self) -> list[WorkerReport]:
        """What each worker has done."""
        return self._client.workers(self.id)

    def drop_labels(self, worker: str, reason: str = "") -> ChangedLabels:
        """Leave a worker's labels out of the results."""
        return self._client.drop_labels(self.id, worker, reason)


def check_annotatable(status: CampaignStatus) -> None:
    """Refuse campaigns in which a model would count like a person, and those without tasks."""
    if not status.settings.knows_workers:
        raise ConflictError(
            f"campaign {status.id!r} has the policy {status.settings.policy!r}, which takes all workers to be alike: a "
            "model among them would count like a person.",
            "Use a campaign with the policy crowd, which is the default.",
        )
    if status.tasks == 0:
        raise ConflictError(f"campaign {status.id!r} has no tasks.", "Add them first: nextlabel campaign add.")


def by_people(campaign: AnnotatedCampaign) -> Iterator[GivenLabel]:
    """The labels that people gave and that count; no model's, which a learner must not be taught by."""
    return (one for one in campaign.labels() if one.counted and not one.worker.startswith(PREFIX))


@dataclass(frozen=True, slots=True)
class Outcome:
    """``labels`` that the model gave and that the campaign has now, ``known`` tasks that it had answered before,
    ``failed`` tasks on which its function was given up, ``passed`` tasks for which it returned None, ``charged`` labels
    of the budget; ``version`` of a learner; why the run ended, as a sentence."""

    model: str
    labels: int
    ended: str
    known: int = 0
    failed: int = 0
    passed: int = 0
    charged: int = 0
    version: int | None = None
