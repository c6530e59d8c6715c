"""What tasks are believed to be by their states, where workers are taken to be alike: all groups at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.beliefs.prior import Prior
from nextlabel.beliefs.simplex import nodes_of
from nextlabel.campaign.results import STEP
from nextlabel.campaign.settings import CampaignSettings

#: Classes whose beliefs are computed together.
TOGETHER = 2000


def levels(config: CampaignSettings, node: Ints) -> Ints:
    """The number of labels behind each node."""
    last = np.array([nodes_of(config.answers, m) for m in range(config.most_labels + 1)], dtype=np.int64)
    return np.searchsorted(last, node, side="right").astype(np.int64)


def truths(config: CampaignSettings, classes: Sequence[Prior], klass: Ints, node: Ints, level: Ints) -> Floats:
    """Probability of each truth (groups, answers) in each state; classes of one kind are computed together."""
    out = np.zeros((len(node), config.answers))
    order = np.argsort(klass, kind="stable")
    used, start = np.unique(klass[order], return_index=True)
    ends = np.append(start[1:], len(order))
    kinds: dict[type[Prior], list[int]] = {}
    for place, number in enumerate(used):
        kinds.setdefault(type(classes[number]), []).append(place)
    for kind, places in kinds.items():
        for first in range(0, len(places), TOGETHER):
            some = places[first : first + TOGETHER]
            rows = np.concatenate([order[start[p] : ends[p]] for p in some])
            which = np.repeat(np.arange(len(some)), [ends[p] - start[p] for p in some])
            depth = STEP * (1 + int(level[rows].max()) // STEP)
            priors = [classes[int(used[p])] for p in some]
            _, truth = kind.believe_all(priors, np.full(len(some), config.threshold), depth)
            out[rows] = truth[which, node[rows]]
    return out
