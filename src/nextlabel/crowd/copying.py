"""Pairs of workers who agree more often than their skill or the difficulty of their tasks explains.

====== ======= ======== ==============================================================================
symbol code    shape    meaning
====== ======= ======== ==============================================================================
m      shared  (P,)     tasks that both workers of a pair labelled
s      alike   (P,)     of these, answered alike
h      --      --       largest chance that the one answers as the other did, task by task
mu     excused (P,)     sum of h
====== ======= ======== ==============================================================================

    h_x = max over both workers of max{ P(says the other's answer | belief in x less half of both labels, own channel),
                                        share of x's other labels with that answer }
    p   = exp( - m KL(s/m || mu/m) )   for s > mu                                            [Hoe63]

The first chance excuses two good workers who are both right, the second two workers who fall for the same hard item.
Under either, answers given independently agree at most s times but with probability p, whatever the h_x. A pair is
shown if p times the number of pairs looked at is below ``LEVEL``: at most that chance of one false alarm in a crowd.
Guarantee: the level, given h. Cost: O(sum over tasks of labels squared).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.crowd.fit import CrowdFit, CrowdLabels

#: Chance of one false alarm or more among all pairs of a crowd.
LEVEL = 0.01
#: Fewer shared tasks say nothing about a pair.
LEAST_SHARED = 10
#: Labels that the model's word counts for in the share of a task's other labels.
SMOOTHING = 1.0
#: Pairs of labels of one task: with more, copying is not looked for.
MOST_PAIRS = 10_000_000


@dataclass(frozen=True, slots=True)
class Copying:
    """Two workers, by number or name, who agree on ``alike`` of ``shared`` tasks; ``excused`` is the most to expect."""

    workers: tuple[Any, Any]
    shared: int
    alike: int
    excused: float
    p_value: float


def find_copying(labels: CrowdLabels, fit: CrowdFit) -> tuple[tuple[Copying, ...], int]:
    """The pairs that stand out, the surest first, and the number of pairs looked at (-1: too many labels to look)."""
    order = np.argsort(labels.task, kind="stable")
    per_task = np.bincount(labels.task, minlength=labels.tasks)
    if int((per_task * (per_task - 1) // 2).sum()) > MOST_PAIRS:
        return (), -1
    first, second = pairs_of_labels(per_task, order)
    agree = (labels.answer[first] == labels.answer[second]).astype(np.float64)
    excuse = _excuse(labels, fit, per_task, first, second)
    one = np.minimum(labels.worker[first], labels.worker[second])
    other = np.maximum(labels.worker[first], labels.worker[second])
    keep = one != other  # a worker may have labelled a task twice
    pair, place = np.unique((one * labels.workers + other)[keep], return_inverse=True)
    shared = np.bincount(place, minlength=len(pair))
    alike, excused = (np.bincount(place, x[keep], len(pair)).astype(np.float64) for x in (agree, excuse))
    looked = shared >= LEAST_SHARED
    p = np.ones(len(pair))
    p[looked] = tail(shared[looked], alike[looked], excused[looked])
    found = np.flatnonzero(looked & (p * looked.sum() < LEVEL))
    found = found[np.argsort(p[found], kind="stable")]
    shown = [
        Copying(divmod(int(pair[k]), labels.workers), int(shared[k]), int(alike[k]), float(excused[k]), float(p[k]))
        for k in found
    ]
    return tuple(shown), int(looked.sum())


def copying_groups(pairs: Sequence[Copying]) -> list[tuple[int, ...]]:
    """Workers who are linked by such pairs, three or more together, the largest group first."""
    group: dict[int, set[int]] = {}
    for pair in pairs:
        joined = {other for one in pair.workers for other in group.get(one, {one})}
        for worker in joined:
            group[worker] = joined
    different = {id(members): tuple(sorted(members)) for members in group.values()}
    return sorted((one for one in different.values() if len(one) > 2), key=lambda one: (-len(one), one))


def tail(shared: Ints, alike: Floats, excused: Floats) -> Floats:
    """A bound on P(at least ``alike`` agreements of ``shared``) where ``excused`` are expected."""
    a = alike / shared
    b = np.clip(excused / shared, 1e-12, 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        some = np.where(a > 0, a * np.log(a / b), 0.0)
        rest = np.where(a < 1, (1 - a) * np.log((1 - a) / (1 - b)), 0.0)
    p: Floats = np.where(a > b, np.exp(-shared * (some + rest)), 1.0)
    return p


def pairs_of_labels(per_task: Ints, order: Ints) -> tuple[Ints, Ints]:
    """Rows of both labels of every pair of labels of one task, ``order`` having the rows grouped by task."""
    start = np.cumsum(per_task) - per_task
    ones, others = [], []
    for n in np.unique(per_task[per_task > 1]):
        rows = order[start[per_task == n][:, None] + np.arange(n)]
        i, j = np.triu_indices(int(n), 1)
        ones.append(rows[:, i].ravel())
        others.append(rows[:, j].ravel())
    if not ones:
        none = np.zeros(0, dtype=np.int64)
        return none, none
    return np.concatenate(ones), np.concatenate(others)


def _excuse(labels: CrowdLabels, fit: CrowdFit, per_task: Ints, first: Ints, second: Ints) -> Floats:
    """h of every pair of labels."""
    C = labels.answers
    votes = np.bincount(labels.task * C + labels.answer, minlength=labels.tasks * C).reshape(labels.tasks, C)
    task = labels.task[first]
    out = np.zeros(len(first))
    said = labels.answer[first], labels.answer[second]
    # what the two say together must not excuse them: half of what each says is taken out of the belief
    both = fit.channels[labels.worker[first], :, said[0]] * fit.channels[labels.worker[second], :, said[1]]
    belief = np.maximum(fit.beliefs[task], 1e-12) / np.sqrt(both)
    belief /= belief.sum(axis=1, keepdims=True)
    for me, my, theirs in ((first, said[0], said[1]), (second, said[1], said[0])):
        model = np.einsum("ic,ic->i", belief, fit.channels[labels.worker[me], :, theirs])
        others = votes[task, theirs] - 1 - (my == theirs)
        share = (others + SMOOTHING * model) / (per_task[task] - 2 + SMOOTHING)
        out = np.maximum(out, np.maximum(model, share))
    return out
