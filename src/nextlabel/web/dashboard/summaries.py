"""A campaign summed up: its tasks by state.

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
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.beliefs.prior import Prior
from nextlabel.campaign.crowd_model import CrowdSnapshot
from nextlabel.campaign.results import levels, truths
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.crowd.answers import Answer
from nextlabel.policies.allocation import Group

#: Bins of the probabilities; groups of hard tasks.
BINS, HARD_GROUPS = 20, 200


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
