"""The accuracy of a campaign's results as audited items correct it, whatever its policy (``crowd.audit``)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nextlabel.arrays import Bools, Floats, Ints
from nextlabel.beliefs.prior import Prior
from nextlabel.campaign.group_truths import levels, truths
from nextlabel.campaign.rows import Group, TaskRow
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.crowd.audit import estimate

#: The level of the interval.
LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class AuditedAccuracy:
    """``right`` of ``audited`` random items were right: so many of all items are, with a 95% interval."""

    accuracy: float
    low: float
    high: float
    audited: int
    right: int


def audited_accuracy(beliefs: Floats, audited: Mapping[int, int], gold: Ints | None = None) -> AuditedAccuracy | None:
    """The accuracy of all tasks, from the true answers of some that were drawn at random: task number to answer.

    Control questions (``gold`` is not negative) are left out: their truth was not found by labels.
    """
    if gold is not None and (gold >= 0).any():
        asked = gold < 0
        number = np.cumsum(asked) - 1
        audited = {int(number[task]): answer for task, answer in audited.items() if asked[task]}
        beliefs = beliefs[asked]
    if not audited:
        return None
    tasks = np.fromiter(audited, dtype=np.int64, count=len(audited))
    truth = np.fromiter(audited.values(), dtype=np.int64, count=len(audited))
    known = np.zeros(len(beliefs), dtype=np.bool_)
    known[tasks] = True
    right = beliefs.argmax(axis=1)[tasks] == truth
    return _estimated(beliefs.max(axis=1), known, right[np.argsort(tasks)])


def audited_by_state(
    config: CampaignSettings,
    classes: Sequence[Prior],
    groups: Mapping[Group, int],
    audited: Sequence[tuple[TaskRow, int]],
) -> AuditedAccuracy | None:
    """The same where workers are taken to be alike: tasks by state, and audited tasks with their true answers."""
    found = [(task, answer) for task, answer in audited if task.gold is None]
    if not found:
        return None
    others = Counter({group: count for group, count in groups.items() if group[0] >= 0})
    others.subtract(task.group for task, _ in found)
    states = [task.group for task, _ in found] + list(others)
    many = np.array([1] * len(found) + [max(count, 0) for count in others.values()], dtype=np.int64)
    klass, node, _ = np.array(states, dtype=np.int64).T
    truth = truths(config, classes, klass, node, levels(config, node))
    right = truth[: len(found)].argmax(axis=1) == np.array([answer for _, answer in found])
    known = np.arange(int(many.sum())) < len(found)
    return _estimated(np.repeat(truth.max(axis=1), many), known, right)


def _estimated(expected: Floats, known: Bools, right: Bools) -> AuditedAccuracy:
    found = estimate(expected, known, right, LEVEL)
    return AuditedAccuracy(found.accuracy, found.low, found.high, found.audited, found.right)
