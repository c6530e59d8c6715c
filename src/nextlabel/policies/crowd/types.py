"""Workers of alike channels as one type, so that the relaxation has few prices however many workers there are.

    sqrt-angles of the channels, first rounded to cells, then merged two by two: each time the pair whose merging moves
    the channels least, weighed by the labels that they are expected to give (Ward).

Guarantee: deterministic; a heuristic. Cost: O(cells^2) per merge, some hundred cells whatever the number of workers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.policies.crowd.chain import matched_accuracy

#: Types of workers at most.
MOST_TYPES = 6
#: Types of known channels at most, before the nearest are merged.
MOST_KNOWN = 12
#: Size of a cell, in radians: 0.08 is from .75 to .68, or from .95 to .91.
CELL = 0.08
#: Types that are nearer to each other than this are one.
ALIKE = 0.04


@dataclass(frozen=True, slots=True, eq=False)
class CrowdTypes:
    """``kind`` (W,) the type of each worker, ``channels`` (M, C, C) of the types, ``share`` (M,) of the labels."""

    kind: Ints
    channels: Floats
    share: Floats


def same_channels(channels: Floats, weights: Floats, most: int = MOST_KNOWN) -> CrowdTypes | None:
    """Workers whose channels are equal as one type; None if there are more than ``most`` types."""
    different, kind = np.unique(channels, axis=0, return_inverse=True)
    if len(different) > most:
        return None
    share = np.bincount(kind.ravel(), np.maximum(weights, 0.0), minlength=len(different)).astype(np.float64)
    whole = float(share.sum())
    return CrowdTypes(kind.ravel().astype(np.int64), different, share / whole if whole > 0 else share)


def group_workers(channels: Floats, weights: Floats, most: int = MOST_TYPES) -> CrowdTypes:
    """At most ``most`` types for W workers with these channels (W, C, C) and expected labels to come (W,)."""
    answers = channels.shape[1]
    if answers == 2:
        features = np.arcsin(np.sqrt(np.clip(channels[:, :, 1], 0.0, 1.0)))
    else:
        rounded, back = np.unique(np.round(channels, 2), axis=0, return_inverse=True)
        right = np.array([matched_accuracy(one) for one in rounded])[back.ravel()]
        features = np.arcsin(np.sqrt(right))[:, None]
    weight = np.maximum(weights, 1e-9)
    _, cell = np.unique(np.floor(features / CELL), axis=0, return_inverse=True)
    cell = cell.ravel()
    mass = np.bincount(cell, weight).astype(np.float64)
    centre = np.column_stack([np.bincount(cell, weight * f) / mass for f in features.T])
    kind = _merge(centre, mass, most)[cell]
    M = int(kind.max()) + 1
    share = np.bincount(kind, weight, minlength=M)
    mean = np.zeros((M, answers, answers))
    np.add.at(mean, kind, weight[:, None, None] * channels)
    return CrowdTypes(kind.astype(np.int64), mean / share[:, None, None], share / share.sum())


def _merge(centre: Floats, mass: Floats, most: int) -> Ints:
    """The type of each cell, numbered in the order of the cells."""
    centre, mass = centre.copy(), mass.copy()
    group = np.arange(len(mass))
    alive = np.ones(len(mass), dtype=bool)
    distance = np.sum((centre[:, None] - centre[None]) ** 2, axis=2)
    cost = distance * (mass[:, None] * mass[None] / (mass[:, None] + mass[None]))
    np.fill_diagonal(cost, np.inf)
    while True:
        near = np.where(distance <= ALIKE**2, cost, np.inf)
        pick = near if np.isfinite(near).any() else cost
        if pick is cost and int(alive.sum()) <= most:
            break
        a, b = sorted(int(k) for k in np.unravel_index(np.argmin(pick), pick.shape))
        whole = mass[a] + mass[b]
        centre[a] = (mass[a] * centre[a] + mass[b] * centre[b]) / whole
        mass[a] = whole
        group[group == b] = a
        alive[b] = False
        for table in (cost, distance):
            table[b, :] = table[:, b] = np.inf
        far = np.sum((centre - centre[a]) ** 2, axis=1)
        others = alive & (np.arange(len(mass)) != a)
        distance[a, others] = distance[others, a] = far[others]
        cost[a, others] = cost[others, a] = (far * mass * whole / (mass + whole))[others]
    return np.searchsorted(np.unique(group), group)
