"""A model's predictions as the labels of one more worker, ``model:NAME``: how they are named and written.

A model that gives probabilities is several workers, one for each level of its confidence, so that the campaign learns
from people's labels how far the model can be trusted when it is sure and when it is not:

========================== ===========================
worker                     predictions
========================== ===========================
model:NAME                 without probabilities
model:NAME (unsure)        most probable label below 0.6
model:NAME (fairly sure)   from 0.6 to below 0.9
model:NAME (sure)          0.9 and above
========================== ===========================

A prediction is a lease that is answered as it is given out. It is not bought (``counted`` is False), takes none of the
labels that a task may have, and moves nothing but what the policy ``crowd`` knows. What models cost is taken from the
budget as whole labels, rounded up for the whole of an upload.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from nextlabel.campaign.commands import Commands, known_worker
from nextlabel.campaign.declaration import LONGEST_WORKER
from nextlabel.campaign.rows import CampaignRow
from nextlabel.campaign.states import PREFIX
from nextlabel.errors import ConflictError, InputError

#: Levels of confidence, each from this probability on, the surest first.
LEVELS: Final = ((0.9, " (sure)"), (0.6, " (fairly sure)"), (0.0, " (unsure)"))
#: Labels that one prediction may cost.
LARGEST_COST: Final = 1000.0
#: Predictions in one event.
CHUNK: Final = 1000


def checked_model(name: Any) -> str:
    """A model's name, without ``model:``."""
    text = name.strip().removeprefix(PREFIX) if isinstance(name, str) else ""
    longest = LONGEST_WORKER - len(PREFIX) - max(len(level) for _, level in LEVELS)
    if not 0 < len(text) <= longest or not text.isprintable():
        raise InputError(
            f"a model's name is a text of 1 to {longest} characters in one line.", "Give e.g. --model sentiment-v2."
        )
    return text


def checked_cost(cost: Any) -> float:
    """What a prediction costs, in labels."""
    fits = isinstance(cost, int | float) and not isinstance(cost, bool) and 0.0 <= cost <= LARGEST_COST
    if not fits:
        raise InputError(
            f"cost {cost!r} is not a number of labels from 0 to {LARGEST_COST:g}.",
            "Give what a prediction costs compared with a person's label, e.g. 0.01; the default is 0.",
        )
    return float(cost)


def check_policy(row: CampaignRow) -> None:
    """Refuse predictions where nobody would be told apart from people."""
    if not row.config.knows_workers:
        raise ConflictError(
            f"campaign {row.id!r} has the policy {row.config.policy!r}, which takes all workers to be alike: a model "
            "among them would count like a person.",
            "Use a campaign with the policy crowd, or give the model's scores as priors of the tasks (--score-column).",
        )


def drop_predictions(campaign: Commands, worker: str, reason: str) -> int:
    """Leave a model's labels out of the results, all of them; returns how many."""
    row = campaign.state.row
    if not worker.startswith(PREFIX) or worker in row.dropped_models:
        return 0
    tally = known_worker(campaign, worker)
    labels = tally.labels - tally.bought
    if labels:
        campaign.record("predictions_dropped", {"worker": worker, "reason": reason, "labels": labels})
    return labels


def restore_predictions(campaign: Commands, worker: str) -> int:
    """Take a model's labels in again; returns how many."""
    if worker not in campaign.state.row.dropped_models:
        return 0
    labels = known_worker(campaign, worker).dropped
    campaign.record("predictions_restored", {"worker": worker, "labels": labels})
    return labels


def worker_of(model: str, confidence: float | None) -> str:
    """The worker that a prediction is of."""
    level = "" if confidence is None else next(name for least, name in LEVELS if confidence >= least)
    return PREFIX + model + level


def workers_of(model: str) -> tuple[str, ...]:
    """All workers that a model may be."""
    return tuple(PREFIX + model + level for level in ("", *(name for _, name in LEVELS)))


def charge_for(row: CampaignRow, cost: float, predictions: int) -> int:
    """Labels of the budget that so many predictions cost, refused if there are not as many left."""
    charged = math.ceil(cost * predictions - 1e-9)
    if charged > row.left:
        raise ConflictError(
            f"{predictions:,} predictions at {cost:g} cost {charged:,} labels, and {row.left:,} are left.",
            "Raise the budget, or give a smaller cost.",
        )
    return charged


def record_predictions(
    campaign: Commands, worker: str, tasks: Sequence[int], labels: Sequence[int], cost: float, charged: int
) -> None:
    """Write predictions of one worker that have been checked."""
    if worker in campaign.state.row.dropped_models:
        raise ConflictError(
            f"the labels of {worker} were dropped.", "Restore them first, or give the model a new name."
        )
    campaign.record(
        "predicted",
        {
            "worker": worker, "first": campaign.state.row.given, "tasks": list(tasks), "labels": list(labels),
            "cost": cost, "charged": charged,
        },
    )  # fmt: skip
