"""A campaign summed up: its tasks by state, and how its workers are doing.

=============== ===================================================================================
field           meaning
=============== ===================================================================================
accuracy        expected share of tasks whose most likely label is right, if the campaign stopped here
by_labels       tasks with 0, 1, 2, ... labels
by_probability  tasks with a label, in ``BINS`` bins of the probability of the second of two labels, else of the best
hardest         groups of tasks with a label whose two likeliest labels are closest, closest first
hard_tasks      such tasks by number, where workers were learnt and no two tasks are alike
low, high       95% interval of the accuracy, where workers were learnt
=============== ===================================================================================

Cost: a few milliseconds for few classes; a second per 100,000 tasks with priors of their own.

How workers are doing: speed, and agreement with the campaign's current belief, over their latest labels.

A worker's own labels are part of that belief, so agreement favours workers with many labels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.beliefs.prior import Prior
from nextlabel.campaign.crowd_model import CrowdSnapshot
from nextlabel.campaign.results import levels, truths
from nextlabel.campaign.rows import CampaignRow, RecentAnswer
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.campaigns.worker_reports import Skill
from nextlabel.crowd.answers import Answer
from nextlabel.policies.allocation import Group

#: Bins of the probabilities; groups of hard tasks.
BINS, HARD_GROUPS = 20, 200

#: Most workers, and most labels of each, that are considered.
MOST_WORKERS, MOST_LABELS = 50, 2000


@dataclass(frozen=True, slots=True)
class StateSummary:
    """The tasks of one campaign at one time."""

    tasks: int
    labelled: int
    accuracy: float
    by_labels: tuple[int, ...]
    by_probability: tuple[int, ...]
    hardest: tuple[Group, ...]
    hard_tasks: tuple[int, ...] | None = None
    low: float | None = None
    high: float | None = None


def summarise_states(
    config: CampaignSettings, classes: Sequence[Prior], groups: Mapping[Group, int]
) -> StateSummary | None:
    """None for a campaign without tasks."""
    table = np.array([(*group, count) for group, count in groups.items() if count > 0], dtype=np.int64)
    if not len(table):
        return None
    klass, node, w, members = table.T
    level = levels(config, node)
    summary, hard = _summed(
        config.answer_type, truths(config, classes, klass, node, level), level, members, (node, klass, -level)
    )
    return replace(summary, hardest=tuple((int(klass[k]), int(node[k]), int(w[k])) for k in hard))


def summarise_crowd(config: CampaignSettings, crowd: CrowdSnapshot) -> StateSummary | None:
    """The summary of a campaign that has learnt its workers; None without tasks."""
    tasks = np.arange(len(crowd.beliefs))
    if not len(tasks):
        return None
    summary, hard = _summed(config.answer_type, crowd.beliefs, crowd.told, np.ones_like(tasks), (tasks,))
    low, high = crowd.expected.low, crowd.expected.high
    return replace(summary, accuracy=crowd.expected_accuracy, hard_tasks=tuple(hard), low=low, high=high)


def _summed(
    answers: Answer, truth: Floats, level: Ints, members: Ints, ties: Sequence[Ints]
) -> tuple[StateSummary, list[int]]:
    """Groups of tasks with so many ``members`` each, summed up; and those with labels that are closest to call."""
    told, best, margin = np.flatnonzero(level > 0), answers.certainty(truth), np.round(answers.margin(truth), 12)
    bins = np.minimum(((truth[:, 1] if len(answers.labels) == 2 else best) * BINS).astype(np.int64), BINS - 1)
    hard = told[np.lexsort([*(one[told] for one in ties), margin[told]])[:HARD_GROUPS]]
    summary = StateSummary(
        tasks=int(members.sum()),
        labelled=int(members[told].sum()),
        accuracy=float(best @ members / members.sum()),
        by_labels=tuple(int(n) for n in np.bincount(level, members)),
        by_probability=tuple(int(n) for n in np.bincount(bins[told], members[told], BINS)),
        hardest=(),
    )
    return summary, hard.tolist()


@dataclass(frozen=True, slots=True)
class WorkerSummary:
    """A worker's median seconds per label, and the share of ``labels`` that agree with the campaign's belief."""

    median_s: float | None
    agreement: float | None
    labels: int
    skill: Skill | None = None


def summarise_workers(
    row: CampaignRow, classes: Sequence[Prior], answers: Mapping[str, Sequence[RecentAnswer]]
) -> dict[str, WorkerSummary]:
    """Summaries of workers from their last labels."""
    return {worker: _summary(row, classes, said) for worker, said in answers.items()}


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
    if row.config.knows_workers:  # the model says how many agree
        return WorkerSummary(median(seconds) if seconds else None, None, len(said))
    answers = row.config.answer_type
    agrees = answers.agrees(label, answers.best(truths(row.config, classes, klass, node, level)))
    return WorkerSummary(median(seconds) if seconds else None, float(agrees.mean()), len(said))
