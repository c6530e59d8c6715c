"""How workers are doing: speed, and agreement with the campaign's current belief, over their latest labels.

A worker's own labels are part of that belief, so agreement favours workers with many labels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

import numpy as np

from nextlabel.beliefs.prior import Prior
from nextlabel.campaign.crowd_snapshot import CrowdSnapshot
from nextlabel.campaign.group_truths import truths
from nextlabel.campaign.overview import Overview, RecentAnswer
from nextlabel.campaign.rows import CampaignRow, WorkerRow
from nextlabel.campaigns.worker_reports import Skill

#: Most workers, and most labels of each, that are considered.
MOST_WORKERS, MOST_LABELS = 50, 2000


@dataclass(frozen=True, slots=True)
class WorkerSummary:
    """A worker's median seconds per label, and the share of ``labels`` that agree with the campaign's belief."""

    median_s: float | None
    agreement: float | None
    labels: int
    skill: Skill | None = None


def summarise_workers(
    row: CampaignRow, classes: Sequence[Prior], workers: Sequence[WorkerRow], overview: Overview
) -> dict[str, WorkerSummary]:
    """Summaries of the workers with the most labels."""
    return {
        one.worker: _summary(row, classes, overview.recent_answers(row.id, one.worker, MOST_LABELS))
        for one in workers[:MOST_WORKERS]
        if one.labels > 0
    }


def with_agreement(found: Mapping[str, WorkerSummary], crowd: CrowdSnapshot) -> dict[str, WorkerSummary]:
    """The same with the agreement of all labels that count with what was learnt."""
    told = dict(zip(crowd.workers, zip(crowd.labels.tolist(), crowd.agreeing.tolist(), strict=True), strict=True))
    out = {}
    for name, one in found.items():
        labels, agreeing = told.get(name, (0, 0))
        out[name] = WorkerSummary(one.median_s, agreeing / labels if labels else None, labels)
    return out


def with_skills(found: Mapping[str, WorkerSummary], skills: Mapping[str, Skill]) -> dict[str, WorkerSummary]:
    """The same with what was learnt of each worker."""
    return {name: replace(one, skill=skills.get(name)) for name, one in found.items()}


def _summary(row: CampaignRow, classes: Sequence[Prior], said: Sequence[RecentAnswer]) -> WorkerSummary:
    seconds = [one.seconds for one in said if one.seconds is not None]
    if not said:
        return WorkerSummary(None, None, 0)
    label, klass, node, level = np.array([(s.label, s.class_number, s.node, s.labels) for s in said], dtype=np.int64).T
    believed = truths(row.config, classes, klass, node, level).argmax(axis=1)
    return WorkerSummary(median(seconds) if seconds else None, float((believed == label).mean()), len(said))
