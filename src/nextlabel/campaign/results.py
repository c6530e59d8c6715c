"""What a campaign has found out: each task's most likely label, how sure, from how many labels, and what ended it.

    label = argmax_q P(truth = q | labels),   probability = that maximum.

With the policy ``crowd`` the probabilities are those of the model of its workers (``campaign.crowd_model``), else those
of workers who are alike. A task is closed by the event that gave it the last label it can have, or by the event that
closed the campaign.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from nextlabel.arrays import Floats
from nextlabel.beliefs.prior import Prior
from nextlabel.beliefs.simplex import simplex
from nextlabel.campaign.rows import CampaignRow, TaskRow
from nextlabel.campaign.settings import CampaignSettings

#: Beliefs are worked out this many labels deep at a time.
STEP = 8


@dataclass(frozen=True, slots=True)
class Result:
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
    control: bool = False


def results_of(
    row: CampaignRow, classes: Sequence[Prior], tasks: Sequence[TaskRow], beliefs: Floats | None = None
) -> list[Result]:
    """Results of some tasks; ``beliefs`` (K, C) of all tasks where workers were learnt."""
    names = row.config.labels
    out: list[Result] = []
    for task in tasks:
        if beliefs is None:
            truth, counts = belief(row.config, classes[task.class_number], task.labels, task.node)
        else:
            truth, counts = beliefs[task.number], label_counts(row.config, task.labels, task.node)
        if task.gold is not None:
            truth = np.eye(len(names))[task.gold]
        best = int(np.argmax(truth))
        event, reason = (task.closed_seq, "most_labels") if task.closed_seq else (row.closed_seq, row.closed_reason)
        out.append(
            Result(
                task.key,
                names[best],
                float(truth[best]),
                task.labels,
                dict(zip(names, counts, strict=True)),
                task.w,
                event is not None,
                event,
                reason,
                task.payload,
                task.gold is not None,
            )
        )
    return out


def belief(config: CampaignSettings, prior: Prior, labels: int, node: int) -> tuple[Floats, tuple[int, ...]]:
    """Posterior probabilities of the truths, and the labels of each answer, of a task in ``node``."""
    truth = _beliefs(prior, config.threshold, STEP * (1 + labels // STEP))
    return truth[node], label_counts(config, labels, node)


def label_counts(config: CampaignSettings, labels: int, node: int) -> tuple[int, ...]:
    """The labels of each answer of a task with so many in ``node``."""
    counts = simplex(config.answers, STEP * (1 + labels // STEP))[2]
    return tuple(int(c) for c in counts[node])


@lru_cache(maxsize=256)
def _beliefs(prior: Prior, threshold: float, depth: int) -> Floats:
    return prior.believe(threshold, depth)[1]
