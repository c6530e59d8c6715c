"""How many labels are right, by the model's own word, with an interval for what the model does not know.

======== =========== ========= =================================================================================
symbol   code        shape     meaning
======== =========== ========= =================================================================================
p_x      beliefs     (K, C)    probability of each truth; the answer a_x is the likeliest one
A        channels    (W, C, C) P(worker says y | truth c), posterior mean
S        strength    (W, C)    labels that a row of it is worth, those with doubtful truths counted for less
pi       --          (C,)      shares of the truths
======== =========== ========= =================================================================================

    accuracy = 1/K sum_x 1{truth of x is a_x},     E = 1/K sum_x p_x[a_x]
    Var = Var over crowds (A, pi) of 1/K sum_x P(a_x | A, pi)  +  1/K^2 sum_x p_x (1 - p_x)

Crowds are drawn from Dirichlet distributions around what was learnt. The interval is E +- 1.96 sqrt(Var), in 0 to 1.
It covers what chance, few labels per worker and few labels per task leave open, if each worker answers by a channel of
their own, independently given the truth. Workers who are wrong together are not covered: only an audit tells.
Of many tasks a part is looked at (``MOST_TASKS``), evenly spread. Guarantee: approximate; the tests hold the coverage
on drawn crowds. Cost: ``DRAWS`` passes over the labels of that part.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from nextlabel.arrays import Floats, Ints
from nextlabel.crowd.fit import CrowdLabels

#: Crowds that are drawn, and tasks that are looked at.
DRAWS, MOST_TASKS = 48, 4000
#: Two-sided 95%.
WIDTH = 1.96


class ExpectedAccuracy(NamedTuple):
    """The share of tasks expected to be right, with a 95% interval; ``learnt`` is the part of its variance that is
    about workers and shares of the truths, the rest is chance."""

    mean: float
    low: float
    high: float
    learnt: float


class LearntChannels(NamedTuple):
    """What is known of channels and shares: means (W, C, C), strengths (W, C), shares (C,) and tasks behind them."""

    channels: Floats
    strength: Floats
    share: Floats
    share_strength: float


def expected_accuracy(
    labels: CrowdLabels, beliefs: Floats, tilt: Floats, learnt: LearntChannels, tasks: int, draws: int = DRAWS
) -> ExpectedAccuracy:
    """The expected accuracy of ``tasks`` tasks, of which ``beliefs`` (K, C) are all or a part, spread evenly.

    ``labels`` are those of that part; ``tilt`` (K, C) is what is added to the log shares of a task with a prior of its
    own. The same ``draws`` crowds are drawn every time.
    """
    mean = float(beliefs.max(axis=1).mean())
    answer = beliefs.argmax(axis=1)
    right = np.take_along_axis(beliefs, answer[:, None], axis=1)[:, 0]
    chance = float((right * (1.0 - right)).mean()) / tasks
    found = _under_drawn_crowds(labels, answer, tilt, learnt, draws)
    learnt_variance = float(found.var(ddof=1)) if len(labels.task) else 0.0
    half = WIDTH * float(np.sqrt(learnt_variance + chance))
    return ExpectedAccuracy(mean, max(mean - half, 0.0), min(mean + half, 1.0), learnt_variance)


def _under_drawn_crowds(labels: CrowdLabels, answer: Ints, tilt: Floats, learnt: LearntChannels, draws: int) -> Floats:
    """(draws,) mean probability of the answers if the crowd is the one that was drawn."""
    K, C = tilt.shape
    chance = np.random.default_rng(0)
    weights = learnt.channels * learnt.strength[:, :, None]
    share = np.maximum(learnt.share * learnt.share_strength, 1e-3)
    place = labels.worker * C + labels.answer
    out = np.empty(draws)
    for k in range(draws):
        drawn = np.maximum(chance.standard_gamma(np.maximum(weights, 1e-3)), 1e-300)
        logs = np.log(drawn / drawn.sum(axis=2, keepdims=True)).transpose(0, 2, 1).reshape(-1, C)
        law = tilt + np.log(np.maximum(chance.dirichlet(share), 1e-300))
        for c in range(C):
            law[:, c] += np.bincount(labels.task, weights=logs[place, c], minlength=K)
        odds = np.exp(law - law.max(axis=1, keepdims=True))
        out[k] = (odds[np.arange(K), answer] / odds.sum(axis=1)).mean()
    return out


def row_strength(labels: CrowdLabels, beliefs: Floats, pseudo: Floats, counts: Floats) -> Floats:
    """(W, C) labels that each row of a channel is worth: a label counts by how much is known of its task's truth.

    A label whose truth is as doubtful as before says nothing about its worker: it weighs sum_c p_c^2, less what even
    odds have.
    """
    C = labels.answers
    known = (np.square(beliefs).sum(axis=1) - 1.0 / C) / (1.0 - 1.0 / C)
    worth = np.bincount(labels.worker, weights=known[labels.task], minlength=labels.workers)
    many = np.bincount(labels.worker, minlength=labels.workers)
    part = np.divide(worth, many, out=np.ones(labels.workers), where=many > 0)
    found: Floats = pseudo.sum(axis=1)[None, :] + counts.sum(axis=2) * part[:, None]
    return found


def usual_share(start: Floats, learnt: Floats, totals: Floats, strength: float) -> Floats:
    """(C,) shares of the truths for tasks without labels: between what was said at the start and what was learnt.

    Of several shares that are alike the largest one found is too large by chance. So both are weighed: that the shares
    are exactly those of the start, and that they are any others around it (Dirichlet of ``strength`` tasks), by how
    probable they make the truths found so far, ``totals`` (C,) of them.
    """
    n = totals.sum()
    if n <= 0:
        return learnt
    b = strength * start
    any_others = gammaln(strength) - gammaln(strength + n) + (gammaln(b + totals) - gammaln(b)).sum()
    exactly = float(totals @ np.log(start))
    weight = 1.0 / (1.0 + np.exp(np.clip(any_others - exactly, -700.0, 700.0)))
    found: Floats = weight * start + (1.0 - weight) * learnt
    return found
