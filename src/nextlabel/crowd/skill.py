"""What is known of each worker's channel, with intervals, and what one more label of theirs is worth.

========= ============ ========= =============================================================================
symbol    code         shape     meaning
========= ============ ========= =============================================================================
m         channels     (W, C, C) P(worker says y | truth c), posterior mean
S         strength     (W, C)    labels behind a row of it, pseudo-counts included
w         weights      (W, C)    weights of the truths in an accuracy, sum_c w_c m[c, c]
g         --           (n, C)    how far a label moves the number if its task's truth is c
V         variance     --        posterior variance of the number
========= ============ ========= =============================================================================

    V0   = variance with all truths known:  m (1 - m) / (S + 1)  for an entry of a channel, weighted for an accuracy
    V1   = sum over their labels of Var[g of the truth],   g_c = w_c (1{said y} - m[c, y]) / S_c
    V    = V0 / (1 - V1 / V0)

The last line is the missing-information principle [Lou82]: V1 / V0 is the share of the information that went missing
with the truths. An accuracy is that on tasks like the worker's own, and workers who are wrong together, which no label
shows, are allowed for: ``TOGETHER`` squared is added to its variance. Intervals are those of the Beta distribution with
this mean and variance. Guarantee: approximate; the tests hold the coverage on drawn crowds near its level, and
``python -m benchmarks.recorded_crowds`` measures it on recorded ones. Cost: O(n C + W C^2).

A label of worker j on task x is worth  sum_y max_c p_x[c] A_j[c, y] - max_c p_x[c]  tasks right: one step ahead, at no
price.

What stands out about a worker, and when it may be said.

======================= ===================================================================================
flag                    said when
======================= ===================================================================================
at chance               the interval of the balanced accuracy holds chance (with three answers or more: a tenth of the
                        way to perfect), and its upper end is less than three tenths of the way: their labels say
                        next to nothing
against the grain       the whole interval of the balanced accuracy is below chance: useful, turned round
always the same answer  one answer throughout, where an average worker would have given it throughout with a
                        chance below 1% for the whole crowd
copying                 see ``copying``
fails controls          see ``controls``; so are the next two
good on controls, at chance elsewhere
changed                 right at first, then not
======================= ===================================================================================

Intervals are 95%; who has given few labels has wide ones and is not flagged. Somebody who passes the known tasks is
neither at chance nor against the grain, whatever others say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import betaincinv, xlogy

from nextlabel.arrays import Bools, Floats
from nextlabel.crowd.controls import NEAR, Controls
from nextlabel.crowd.copying import Copying
from nextlabel.crowd.fit import CrowdFit, CrowdLabels

#: Two-sided level of every interval of a worker.
LEVEL = 0.95

#: Share of the information that may be missing; above it an interval says little anyway.
MOST_MISSING = 0.9

#: Tasks among which the one is looked for where a label helps most: the least certain ones, fewer with many answers.
MOST_LOOKED_AT = 8000
AT_CHANCE, AGAINST, SAME, COPYING = "at chance", "against the grain", "always the same answer", "copying"
FAILS, ONLY_CONTROLS, CHANGED = "fails controls", "good on controls, at chance elsewhere", "changed"

#: How far off all beliefs together may put an accuracy (a standard deviation), and the tasks that the shares of all
#: truths are worth beside a worker's own.
TOGETHER, USUAL_TASKS = 0.035, 10.0
#: By how much variances are larger because a worker's coin is an estimate too.
COIN_DOUBT = 1.2
#: Labels per truth that a worker's channel is worth for their accuracy, beside the labels themselves.
CHANNEL_LABELS = 6.0

#: How far from chance to perfect somebody at chance may surely be with more than two answers, of which a spammer may
#: know one or two.
LITTLE = 0.1
#: With fewer labels nobody is said to be at chance or against the grain.
NOBODY = 10

#: Chance, for a whole crowd, of calling an average worker one who always gives the same answer.
CONSTANT_LEVEL = 0.01


class Intervals(NamedTuple):
    """Means with the ends of their intervals, arrays of one shape."""

    mean: Floats
    low: Floats
    high: Floats

    def at(self, place: int | tuple[int, ...]) -> Estimate:
        """The one at a place."""
        return Estimate(*(float(part[place]) for part in self))


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with the ends of its 95% interval."""

    mean: float
    low: float
    high: float

    def as_dict(self) -> dict[str, float]:
        """As ``--json`` prints it."""
        return asdict(self)

    def __format__(self, spec: str) -> str:
        return f"{format(self.mean, spec)} [{format(self.low, spec)}, {format(self.high, spec)}]"


def channel_variance(labels: CrowdLabels, fit: CrowdFit) -> Floats:
    """(W, C, C) posterior variance of every channel."""
    m = fit.channels
    strength = (fit.prior.pseudo + fit.counts).sum(axis=2, keepdims=True)
    p = fit.beliefs[labels.task]
    by_answer = _summed(labels, p * (1.0 - p))
    others = by_answer.sum(axis=2, keepdims=True) - by_answer
    known = COIN_DOUBT * m * (1.0 - m) / (strength + 1.0)
    return _with_missing(known, (by_answer * (1.0 - m) ** 2 + others * m**2) / strength**2)


def _accuracy_variance(labels: CrowdLabels, fit: CrowdFit, weights: Floats, m: Floats, strength: Floats) -> Floats:
    """(W,) posterior variance of each worker's accuracy with these weights (W, C) of the truths."""
    said = labels.answer[:, None] == np.arange(labels.answers)
    g = weights[labels.worker] * (said - m[labels.worker]) / strength[labels.worker]
    p = fit.beliefs[labels.task]
    doubt = (p * g**2).sum(axis=1) - (p * g).sum(axis=1) ** 2
    known = COIN_DOUBT * (m * (1.0 - m) / (strength + 1.0) * weights**2).sum(axis=1)
    return _with_missing(known, np.bincount(labels.worker, doubt, labels.workers).astype(np.float64))


def _summed(labels: CrowdLabels, values: Floats) -> Floats:
    """(W, C, C) sums of the numbers (n, C) of each label and truth, by worker, truth and answer."""
    C, place = labels.answers, labels.worker * labels.answers + labels.answer
    sums = [np.bincount(place, column, labels.workers * C).reshape(labels.workers, C) for column in values.T]
    return np.stack(sums, axis=1).astype(np.float64)


def _with_missing(known: Floats, unknown: Floats) -> Floats:
    """The variance, given that with the truths known and that which the doubt about them adds at first."""
    share = np.clip(unknown / known, 0.0, MOST_MISSING)
    return known / (1.0 - share)


def intervals(mean: Floats, variance: Floats) -> Intervals:
    """Intervals of Beta distributions with these means and variances."""
    inside = np.clip(mean, 1e-9, 1.0 - 1e-9)
    weight = np.maximum(inside * (1.0 - inside) / np.maximum(variance, 1e-300) - 1.0, 1e-3)
    tail = 0.5 * (1.0 - LEVEL)
    low, high = (betaincinv(inside * weight, (1.0 - inside) * weight, q) for q in (tail, 1.0 - tail))
    return Intervals(mean, np.minimum(low, mean), np.maximum(high, mean))


def accuracies(labels: CrowdLabels, fit: CrowdFit) -> tuple[Intervals, Intervals]:
    """Accuracy on tasks like theirs, and on tasks with all truths equally frequent (the balanced accuracy)."""
    counts = _summed(labels, fit.beliefs[labels.task])  # labels on hard tasks count in full: they are labels too
    given, right = counts.sum(axis=2), np.diagonal(counts, axis1=1, axis2=2)
    held = np.minimum(fit.prior.pseudo.sum(axis=1), CHANNEL_LABELS)
    strength = given + held
    m = (right + held * np.diagonal(fit.channels, axis1=1, axis2=2)) / strength
    own = given + USUAL_TASKS * fit.share
    own /= own.sum(axis=1, keepdims=True)
    accuracy = intervals((m * own).sum(axis=1), _accuracy_variance(labels, fit, own, m, strength) + TOGETHER**2)
    equal = np.full_like(own, 1.0 / labels.answers)
    return accuracy, intervals(m.mean(axis=1), _accuracy_variance(labels, fit, equal, m, strength))


def bits(fit: CrowdFit) -> Floats:
    """(W,) mutual information between the truth and an answer, in bits."""
    joint = fit.share[None, :, None] * fit.channels
    apart = fit.share[None, :, None] * joint.sum(axis=1, keepdims=True)
    found: Floats = (xlogy(joint, joint) - xlogy(joint, apart)).sum(axis=(1, 2)) / np.log(2.0)
    return np.maximum(found, 0.0)


def worth(fit: CrowdFit) -> Floats:
    """(W,) expected tasks right that one more label of each worker adds, on the task where it adds most."""
    sure = fit.beliefs.max(axis=1)
    order = np.argsort(sure, kind="stable")[: max(50, MOST_LOOKED_AT // fit.beliefs.shape[1] ** 2)]
    beliefs = np.unique(np.round(fit.beliefs[order], 6), axis=0)
    before = beliefs.max(axis=1)
    out = np.zeros(len(fit.channels))
    for j, channel in enumerate(fit.channels):
        after = (beliefs[:, :, None] * channel[None]).max(axis=1).sum(axis=1)
        out[j] = float((after - before).max())
    # what is left of a label that changes no answer is rounding
    return np.where(out > 1e-12, out, 0.0)


def flags_by_worker(
    labels: CrowdLabels, fit: CrowdFit, balanced: Intervals, copying: Sequence[Copying], controls: Controls
) -> list[tuple[str, ...]]:
    """What stands out about each worker."""
    free = (np.bincount(labels.worker, minlength=labels.workers) >= NOBODY) & ~controls.passes
    chance = 1.0 / labels.answers
    little = chance + (LITTLE * (1.0 - chance) if labels.answers > 2 else 0.0)
    against = free & (balanced.high < chance)
    at_chance = free & ~against & (balanced.low <= little) & (balanced.high < chance + NEAR * (1.0 - chance))
    same, copiers = always_same(labels, fit), {j for pair in copying for j in pair.workers}
    out = []
    for j in range(labels.workers):
        said = (
            (controls.fails[j], FAILS), (controls.only_controls[j], ONLY_CONTROLS), (at_chance[j], AT_CHANCE),
            (against[j], AGAINST), (controls.changed[j], CHANGED), (same[j], SAME), (j in copiers, COPYING),
        )  # fmt: skip
        out.append(tuple(name for true, name in said if true))
    return out


def always_same(labels: CrowdLabels, fit: CrowdFit) -> Bools:
    """Who gave one answer throughout where an average worker would hardly have."""
    average = fit.prior.pseudo / fit.prior.pseudo.sum(axis=1, keepdims=True)
    expected = (fit.beliefs @ average)[labels.task, labels.answer]
    chance = np.bincount(labels.worker, np.log(expected), labels.workers)
    C = labels.answers
    said = np.bincount(labels.worker * C + labels.answer, minlength=labels.workers * C).reshape(labels.workers, C)
    found: Bools = ((said > 0).sum(axis=1) == 1) & (chance < np.log(CONSTANT_LEVEL / labels.workers))
    return found
