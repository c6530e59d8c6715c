"""Who answers at random: a worker's answers have nothing to do with what everybody else says of the same tasks.

====== ============ ========= =========================================================================================
symbol code         shape     meaning
====== ============ ========= =========================================================================================
n_j    counts       (W, C, C) worker j's answers (last axis) by what the *other* labels of each task say of its truth
a_j    right        (W,)      balanced accuracy: mean over truths c of n_j[c, c] / n_j[c]
J_j    informed     (W,)      (a_j - 1/C) / (1 - 1/C): 0 for answers at random, 1 for perfect ones, below 0 turned round
s_j    spread       (W,)      standard error of J_j
M      usual        --        median of J over workers, each counted once for every label
====== ============ ========= =========================================================================================

A worker answers at random if J_j + s_j < M / 2 and J_j > -2 s_j: less than half of what is usual in this crowd, even if
they had bad luck, and not simply the wrong way round. Nobody does while M is below ``LEAST_USUAL``: then nobody knows.
A task's own label is taken out of its belief, because a label that helps to judge itself looks right; doubt about
truths makes every J smaller, M too. Guarantee: heuristic; one standard error calls an average worker random now and
then, and the next fit, which knows the tasks better, takes it back. Cost: O(labels C + W C^2).
"""

from __future__ import annotations

import numpy as np
from scipy.special import softmax

from nextlabel.arrays import Bools, Floats, Ints

#: Share of what is usual that a worker must reach, and the least that must be usual before anybody is called random.
OF_USUAL, LEAST_USUAL = 0.5, 0.15


def answers_at_random(task: Ints, worker: Ints, answer: Ints, logp: Floats, channels: Floats) -> Bools:
    """(W,) who answers at random.

    ``logp`` (K, C) are log beliefs of the tasks, all labels counted, up to a constant (-inf where a truth is known not
    to be); ``channels`` (W, C, C) is P(answer | truth) as it was counted there.
    """
    W, C = channels.shape[:2]
    own = np.log(np.clip(channels[worker, :, answer], 1e-12, 1.0))
    known = ~np.isfinite(logp[task]).all(axis=1, keepdims=True)
    others = softmax(np.where(known, np.maximum(logp[task], -1e9), logp[task] - own), axis=1)
    counts = np.zeros((W, C, C))
    for c in range(C):
        np.add.at(counts[:, c], (worker, answer), others[:, c])
    rows = np.maximum(counts.sum(axis=2), 1e-9)
    right = np.diagonal(counts, axis1=1, axis2=2) / rows
    scale = 1.0 - 1.0 / C
    informed = (right.mean(axis=1) - 1.0 / C) / scale
    # half a label more on each side, so that few labels never look certain
    share = (np.diagonal(counts, axis1=1, axis2=2) + 0.5) / (rows + 1.0)
    spread = np.sqrt((share * (1.0 - share) / (rows + 1.0)).sum(axis=1)) / (C * scale)
    usual = weighted_median(informed, np.bincount(worker, minlength=W).astype(np.float64))
    if usual < LEAST_USUAL:
        return np.zeros(W, dtype=np.bool_)
    out: Bools = (informed + spread < OF_USUAL * usual) & (informed > -2.0 * spread)
    return out


def weighted_median(values: Floats, weights: Floats) -> float:
    """The least value below which half of the weight lies."""
    order = np.argsort(values)
    below = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(below, 0.5 * below[-1])]) if len(below) and below[-1] > 0 else 0.0
