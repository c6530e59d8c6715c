"""What annotating asks of a campaign, and what becomes of a run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from nextlabel.campaign.results import GivenLabel
from nextlabel.campaign.states import PREFIX
from nextlabel.campaigns.facade import Campaign
from nextlabel.campaigns.status import CampaignStatus
from nextlabel.client.client import ServiceCampaign
from nextlabel.errors import ConflictError

#: A campaign on a database, or behind a service's address: both have the same methods.
AnnotatedCampaign = Campaign | ServiceCampaign


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
