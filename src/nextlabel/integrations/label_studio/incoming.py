"""Tasks and predictions of a project that the campaign does not have yet."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from nextlabel.campaign.predictions import workers_of
from nextlabel.campaigns.service import CampaignService
from nextlabel.errors import ConflictError
from nextlabel.integrations.label_studio.project import Control, prediction_rows, task_table


def add_new_tasks(service: CampaignService, campaign: str, tasks: Sequence[Mapping[str, Any]], url: str) -> int:
    """Add the tasks that are not there; returns how many."""
    known = service.store.tasks_by_key(campaign, [str(task["id"]) for task in tasks])
    new = [task_table(task, url) for task in tasks if str(task["id"]) not in known]
    return service.add_tasks(campaign, new).added if new else 0


def add_new_predictions(
    service: CampaignService,
    campaign: str,
    tasks: Sequence[Mapping[str, Any]],
    control: Control,
    tell: Callable[[str], None],
) -> None:
    """Add predictions of tasks that their model has none for; a model that has changed its mind needs another name."""
    found = prediction_rows(tasks, control)
    if not found or not service.store.row(campaign).config.knows_workers:
        return
    rows = service.store.tasks_by_key(campaign, [str(task["id"]) for task in tasks])
    keys = {row.number: key for key, row in rows.items()}
    leases = service.store.leases(campaign, list(keys))
    for model, predictions in found.items():
        names = set(workers_of(model))
        there = {keys[lease.task] for lease in leases if lease.worker in names}
        new = [row for row in predictions if row["task"] not in there]
        if new:
            try:
                service.add_predictions(campaign, model, new)
            except ConflictError as error:
                tell(f"Predictions of {model} were left out: {error}")
