"""What is known of each worker's channel, with intervals, and what one more label of theirs is worth.

========= ============ ========= =============================================================================
symbol    code         shape     meaning
========= ============ ========= =============================================================================
m         channels     (W, C, C) P(worker says y | truth c), posterior mean
S         strength     (W, C)    labels behind a row of it, pseudo-counts included
v         doubt        (n, C)    p (1 - p) for the belief p in truth c of a label's task
--        variance     (W, C, C) posterior variance of m
========= ============ ========= =============================================================================

    variance = m (1 - m) / (S + 1)  +  sum over their labels of v ((1{said y} - m) / S)^2

The first term is that of a Dirichlet with the truths known, the second that of the truths that are not. Intervals are
those of the Beta distribution with this mean and variance. Guarantee: approximate; the tests hold the coverage on drawn
crowds to its level. Cost: O(n C + W C^2).

A label of worker j on task x is worth  sum_y max_c p_x[c] A_j[c, y] - max_c p_x[c]  tasks right: one step ahead, at no
price.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import betaincinv, xlogy

from nextlabel.arrays import Floats
from nextlabel.crowd.fit import CrowdFit
from nextlabel.crowd.labels import CrowdLabels

#: Two-sided level of every interval of a worker.
LEVEL = 0.95
#: Tasks among which the one is looked for where a label helps most: the least certain ones.
MOST_LOOKED_AT = 2000


class Intervals(NamedTuple):
    """Means with the ends of their intervals, arrays of one shape."""

    mean: Floats
    low: Floats
    high: Floats


def channel_variance(labels: CrowdLabels, fit: CrowdFit) -> Floats:
    """(W, C, C) posterior variance of every channel."""
    C, m = labels.answers, fit.channels
    strength = (fit.prior.pseudo + fit.counts).sum(axis=2, keepdims=True)
    p = fit.beliefs[labels.task]
    doubt = p * (1.0 - p)
    by_answer = np.zeros((labels.workers, C, C))
    for c in range(C):
        place = labels.worker * C + labels.answer
        by_answer[:, c] = np.bincount(place, doubt[:, c], labels.workers * C).reshape(labels.workers, C)
    others = by_answer.sum(axis=2, keepdims=True) - by_answer
    variance: Floats = m * (1.0 - m) / (strength + 1.0)
    variance += (by_answer * (1.0 - m) ** 2 + others * m**2) / strength**2
    return variance


def intervals(mean: Floats, variance: Floats) -> Intervals:
    """Intervals of Beta distributions with these means and variances."""
    inside = np.clip(mean, 1e-9, 1.0 - 1e-9)
    weight = np.maximum(inside * (1.0 - inside) / np.maximum(variance, 1e-300) - 1.0, 1e-3)
    tail = 0.5 * (1.0 - LEVEL)
    low, high = (betaincinv(inside * weight, (1.0 - inside) * weight, q) for q in (tail, 1.0 - tail))
    return Intervals(mean, np.minimum(low, mean), np.maximum(high, mean))


def accuracies(labels: CrowdLabels, fit: CrowdFit, variance: Floats) -> tuple[Intervals, Intervals]:
    """Accuracy on tasks like these, and on tasks with all truths equally frequent (the balanced accuracy)."""
    right, spread = (np.diagonal(a, axis1=1, axis2=2) for a in (fit.channels, variance))
    equal = np.full(labels.answers, 1.0 / labels.answers)
    shown = [intervals(right @ weights, spread @ weights**2) for weights in (fit.share, equal)]
    return shown[0], shown[1]


def bits(fit: CrowdFit) -> Floats:
    """(W,) mutual information between the truth and an answer, in bits."""
    joint = fit.share[None, :, None] * fit.channels
    apart = fit.share[None, :, None] * joint.sum(axis=1, keepdims=True)
    found: Floats = (xlogy(joint, joint) - xlogy(joint, apart)).sum(axis=(1, 2)) / np.log(2.0)
    return np.maximum(found, 0.0)


def worth(fit: CrowdFit) -> Floats:
    """(W,) expected tasks right that one more label of each worker adds, on the task where it adds most."""
    sure = fit.beliefs.max(axis=1)
    order = np.argsort(sure, kind="stable")[:MOST_LOOKED_AT]
    beliefs = np.unique(np.round(fit.beliefs[order], 6), axis=0)
    before = beliefs.max(axis=1)
    out = np.zeros(len(fit.channels))
    for j, channel in enumerate(fit.channels):
        after = (beliefs[:, :, None] * channel[None]).max(axis=1).sum(axis=1)
        out[j] = float((after - before).max())
    # what is left of a label that changes no answer is rounding
    return np.where(out > 1e-12, out, 0.0)
