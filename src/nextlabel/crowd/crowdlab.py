"""Two baselines beside which features are judged: CROWDLAB's consensus and ActiveLab's score.

From Goh, Tkachenko and Mueller (2022) and Goh and Mueller (2023), in our own words. A classifier's out-of-fold chances
and the annotators are averaged, each with a weight that says how much better than a guess they are:

    w_j = 1 - (1 - A_j) / (1 - A_0),      w_M = (1 - (1 - A_M) / (1 - A_0)) sqrt(labels per labelled item)

A_j: how often annotator j agrees with the others on the same items; A_M: how often the classifier agrees with the
majority; A_0: how often the most frequent answer does. An annotator who said y stands for probability P of y, the rest
shared evenly, P being how often annotators agree with the majority. ActiveLab adds an even vote of the mean annotator's
weight, so that an item with few labels is worth another, and labels the item of the lowest score next.
"""

from __future__ import annotations

import numpy as np

from nextlabel.arrays import Floats
from nextlabel.crowd.fit import CrowdLabels

#: The least weight of an annotator or of the classifier.
LEAST = 1e-3


def crowdlab(labels: CrowdLabels, chance: Floats, even: bool = False) -> Floats:
    """(K, C) CROWDLAB's probabilities, ``chance`` (K, C) being the classifier's; ``even`` adds ActiveLab's vote."""
    K, C = chance.shape
    votes = np.zeros((K, C))
    np.add.at(votes, (labels.task, labels.answer), 1.0)
    many = votes.sum(axis=1)
    labelled, several = many > 0, many > 1
    majority = (votes + 1e-3 * chance).argmax(axis=1)
    shared = several[labels.task]
    judged = several if several.any() else labelled
    guess = float(np.bincount(majority[labelled], minlength=C).max() / max(labelled.sum(), 1))
    others = (votes[labels.task, labels.answer] - 1.0) / np.maximum(many[labels.task] - 1.0, 1.0)
    met = np.bincount(labels.worker[shared], minlength=labels.workers)
    mean = float(others[shared].mean()) if shared.any() else 0.5 * (1.0 + guess)
    agrees = np.bincount(labels.worker[shared], others[shared], minlength=labels.workers)
    agrees = np.where(met > 0, agrees / np.maximum(met, 1), mean)
    weight = np.maximum(1.0 - (1.0 - agrees) / max(1.0 - guess, LEAST), LEAST)
    right = float((chance[judged].argmax(axis=1) == majority[judged]).mean())
    own = max(1.0 - (1.0 - right) / max(1.0 - guess, LEAST), LEAST) * float(np.sqrt(many[labelled].mean()))
    sure = float((labels.answer == majority[labels.task])[shared].mean()) if shared.any() else mean
    sure = min(max(sure, 1.0 / C), 0.99)
    total, whole = own * chance, np.full(K, own)
    np.add.at(total, labels.task, (weight * (1.0 - sure) / (C - 1))[labels.worker][:, None])
    np.add.at(total, (labels.task, labels.answer), weight[labels.worker] * (sure - (1.0 - sure) / (C - 1)))
    np.add.at(whole, labels.task, weight[labels.worker])
    if even:
        total, whole = total + weight.mean() / C, whole + weight.mean()
    return np.asarray(total / whole[:, None])


def activelab(labels: CrowdLabels, chance: Floats) -> Floats:
    """(K,) ActiveLab's score of each item, the lowest to be labelled next."""
    return np.asarray(crowdlab(labels, chance, even=True).max(axis=1))
