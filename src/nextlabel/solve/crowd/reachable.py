"""One task with many answers: only beliefs that its own can lead to, the most likely first.

A grid of the simplex has too few points per answer from five answers on. Here the points are the beliefs that labels
of the types lead to, breadth first, as long as tasks are not decided; whatever lies beyond is written as one of them
and certainty (``kernels.crowd_points``). Where the answers can change names without changing anything (one-coin
workers, answers all alike before the first label), beliefs are sorted, which leaves a small part of them.

Guarantee: an upper bound for any set of points. It is tight for the first labels and loose for what comes after the
last point, where a part of every task counts as decided. Cost: see ``kernels.crowd_points``.
"""

from __future__ import annotations

import numpy as np

from nextlabel.arrays import Floats
from nextlabel.kernels.crowd_bellman import Chain
from nextlabel.kernels.crowd_grid import SimplexGrid
from nextlabel.kernels.crowd_points import fill_point_chain, place_at_points
from nextlabel.solve.crowd.single_task import Rewards, SingleTask

#: Points at most, unless told otherwise, and comparisons of beliefs with points, about.
POINTS, COMPARISONS = 3000, 2e8
#: A belief above this is decided, and leads nowhere.
DECIDED = 1.0 - 1e-5
#: Digits in which beliefs must agree to be one point.
DIGITS = 12


def make_reachable_task(
    beliefs: Floats, members: Floats, channel: Floats, rewards: Rewards, points: int | None
) -> SingleTask:
    """The chain over beliefs that can be reached; one reward for all tasks."""
    utility = rewards.utilities[0]
    C = beliefs.shape[1]
    symmetric = is_symmetric(channel, utility, beliefs)
    most = int(min(points or POINTS, np.sqrt(COMPARISONS / (max(len(channel), 1) * C))))
    found = reachable_beliefs(beliefs, members, channel, most, symmetric=symmetric)
    law = np.concatenate([np.eye(C), found])
    stop = (law[:, None, :] * utility).sum(axis=2).max(axis=1)
    ceiling = (law * utility.max(axis=0)).sum(axis=1)
    gain = np.sqrt(np.maximum(ceiling - stop, 0.0))
    to = np.zeros((len(channel), len(law), 2 * C), dtype=np.int64)
    weight = np.zeros(to.shape)
    fill_point_chain(law, gain, channel, symmetric, to, weight)
    mass = np.zeros(len(law))
    place_at_points(law, gain, np.ascontiguousarray(beliefs), np.ascontiguousarray(members / members.sum()), mass)
    none = np.zeros((0, 0), dtype=np.int64)
    grid = SimplexGrid(np.empty(0), law, np.arange(C, dtype=np.int64), none)
    return SingleTask(grid, channel, Chain(to, weight, stop), ceiling, mass)


def is_symmetric(channel: Floats, utility: Floats, beliefs: Floats) -> bool:
    """Whether any two neighbouring answers, hence any two, can change names without changing anything."""
    if not (beliefs == beliefs[:, :1]).all():
        return False
    rows = sorted(utility.tolist())
    for a in range(channel.shape[1] - 1):
        swap = np.arange(channel.shape[1])
        swap[[a, a + 1]] = a + 1, a
        if not (channel[:, swap][:, :, swap] == channel).all() or sorted(utility[:, swap].tolist()) != rows:
            return False
    return True


def reachable_beliefs(beliefs: Floats, members: Floats, channel: Floats, most: int, *, symmetric: bool) -> Floats:
    """Up to ``most`` beliefs that are not decided, level by level; of a level that is too large the most likely."""
    here, likely = _merge(beliefs, members / members.sum(), symmetric)
    found = here[:0]
    while len(here) and len(found) < most:
        known = {tuple(row) for row in np.round(found, DIGITS)}
        new = np.array([tuple(row) not in known for row in np.round(here, DIGITS)])
        new &= here.max(axis=1) <= DECIDED
        here, likely = here[new], likely[new]
        first = np.argsort(-likely, kind="stable")[: most - len(found)]
        here, likely = here[first], likely[first]
        found = np.concatenate([found, here])
        joint = here[:, None, :, None] * channel[None]  # belief, type, truth, answer
        chance = joint.sum(axis=2)
        after = np.moveaxis(joint, 2, 3)[chance > 0.0]
        weight = (likely[:, None, None] * chance)[chance > 0.0] / max(len(channel), 1)
        here, likely = _merge(after / after.sum(axis=1, keepdims=True), weight, symmetric)
    return np.ascontiguousarray(found)


def _merge(beliefs: Floats, weight: Floats, symmetric: bool) -> tuple[Floats, Floats]:
    """Different beliefs, and the weight of each."""
    if len(beliefs) == 0:
        return beliefs, weight
    if symmetric:
        beliefs = np.sort(beliefs, axis=1)[:, ::-1]
    _, first, number = np.unique(np.round(beliefs, DIGITS), axis=0, return_index=True, return_inverse=True)
    total = np.bincount(number.ravel(), weights=weight).astype(np.float64)
    return np.ascontiguousarray(beliefs[first]), total
