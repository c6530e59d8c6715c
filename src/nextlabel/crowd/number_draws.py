"""Crowds that give numbers, drawn from what their labels say: how many items are right, and at most can be.

    z = b_j + a_j x_i + e,   e ~ N(0, 1 / tau_j),   x ~ N(m, s),   b ~ N(0, s_b),   a ~ N(1, s_a),   tau ~ Gamma

is ``crowd.numbers``'s model of bent numbers. It is learnt there by variational Bayes, which takes each quantity for
surer than it is while labels are few. Here all of them are drawn together (Gibbs), so that

    E = mean over draws of 1/K sum_i P(|what is read out - x_i| <= tolerance | labels, rest of the draw)

counts what is not known of any of them. Of many items a part is drawn, and the labels of the others count for their
workers, by the items as learnt. Gains and the scale of x trade against each other; labels know only their
product, so that x is measured by what the workers, by their reliability, say of it.
Guarantee: approximate; the tests hold bias and coverage on drawn crowds. Cost: ``DRAWS`` + ``WARM_UP`` passes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, ndtr

from nextlabel.arrays import Bools, Floats, Ints
from nextlabel.crowd.answers import Number
from nextlabel.crowd.expected import DRAWS, MOST_TASKS, WIDTH, ExpectedAccuracy
from nextlabel.crowd.numbers import (
    GAIN_HOLD,
    GAIN_VARIANCE,
    ITEM_HOLD,
    NumberFit,
    NumberLabels,
    standardised,
)

#: Passes before the first draw, and passes from one draw to the next.
WARM_UP, APART = 100, 2
#: How alike the precisions of workers are: shapes of their law, each as likely as any other before the labels.
HOLDS = np.array([1.0, 1.5, 2.5, 4.0, 6.0, 12.0, 24.0])


class DrawnNumbers(NamedTuple):
    """A crowd: ``own`` (W,) is the precision of a label of each worker, ``new`` of newcomers.

    By this crowd items have ``mean`` (K,), a number, and the precision ``total`` (K,); ``scale`` takes a standard
    deviation of x to one of numbers.
    """

    own: Floats
    new: Floats
    mean: Floats
    total: Floats
    scale: float


class Part(NamedTuple):
    """Of many items a part, ``items``, evenly spread, that are drawn; ``labels`` are theirs, with items by place.

    ``others`` (6, W) sums 1, x, x^2, z, z x and z^2 by worker over all other labels, of items as the fit has them: they
    say as much of their workers as those of the part.
    """

    items: Ints
    labels: NumberLabels
    others: Floats


def part_of(fit: NumberFit, data: NumberLabels, asked: Bools) -> Part:
    """The part of the items ``asked`` (K,)."""
    there = np.flatnonzero(asked)
    items = there[:: -(-len(there) // MOST_TASKS) or 1]
    place = np.full(len(asked), -1)
    place[items] = np.arange(len(items))
    inside = place[data.task] >= 0
    t, w, y = data.task[inside], data.worker[inside], data.number[inside]
    start, slope = fit.scale[2:]
    estimate, sd = fit.read(data)
    rest, others = data.task[~inside], data.worker[~inside]
    x, z = ((estimate - start) / slope)[rest], standardised(fit, data.number[~inside])
    sums = _sums(others, x, z, data.workers)
    sums[2] += np.bincount(others, (sd[rest] / slope) ** 2, data.workers)
    return Part(items, NumberLabels(place[t], w, y, len(items), data.workers), sums)


def _sums(worker: Ints, x: Floats, z: Floats, workers: int) -> Floats:
    """(6, W) sums of 1, x, x^2, z, z x and z^2 over the labels of each worker."""
    return np.stack([np.bincount(worker, one, workers) for one in (np.ones(len(x)), x, x * x, z, z * x, z * z)])


def draw_numbers(fit: NumberFit, part: Part, draws: int = DRAWS, newcomers: int = 0) -> Iterator[DrawnNumbers]:
    """Crowds that may have given these labels, and ``newcomers`` of each; the same every time."""
    t, w, number, K, W = part.labels
    z, many = standardised(fit, number), np.bincount(w, minlength=W) + part.others[0]
    told, unknown = many > 0, W - len(fit.line)  # since the fit
    line, start, slope = np.vstack([fit.line, np.tile([0.0, 1.0], (unknown, 1))]), *fit.scale[2:]
    weight = many * (np.append(fit.reliability * (fit.gain > 0), np.zeros(unknown)) + 1e-9)
    weight /= weight.sum()
    usual = weight @ line
    (m, s), s_b, s_a, noise, hold = fit.first, 0.1, GAIN_VARIANCE, 0.5, HOLDS[-1]
    rng, tau = np.random.default_rng(0), np.full(W, 1.0 / noise)
    for r in range(WARM_UP + draws * APART):
        b, a = line[w].T
        total = np.bincount(t, tau[w] * a * a, K) + 1.0 / s
        mean = (np.bincount(t, tau[w] * a * (z - b), K) + m / s) / total
        if r >= WARM_UP and (r - WARM_UP) % APART == 0:
            off, wide = (weight @ line - [usual[0], 0.0]) / usual[1]
            new = rng.gamma(hold, 1.0 / (hold * noise), newcomers) * rng.normal(1.0, np.sqrt(s_a), newcomers) ** 2
            at = np.asarray(start + slope * (off + wide * mean))
            yield DrawnNumbers(tau * line[:, 1] ** 2, new, at, np.asarray(total), float(abs(slope * wide)))
        x = mean + rng.standard_normal(K) / np.sqrt(total)
        m = float(x.mean() + rng.standard_normal() * np.sqrt(s / K))
        s = (ITEM_HOLD * 0.5 + float(((x - m) ** 2).sum())) / (2.0 * rng.gamma((ITEM_HOLD + K) / 2.0))
        n, sx, sxx, sz, szx, szz = _sums(w, x[t], z, W) + part.others
        inverse = np.empty((W, 2, 2))
        inverse[:, 0, 0], inverse[:, 1, 1] = tau * n + 1.0 / s_b, tau * sxx + 1.0 / s_a
        inverse[:, 0, 1] = inverse[:, 1, 0] = tau * sx
        cov = np.linalg.inv(inverse)
        line = np.einsum("wij,wj->wi", cov, np.stack([tau * sz, tau * szx + 1.0 / s_a], axis=1))
        line += np.einsum("wij,wj->wi", np.linalg.cholesky(cov), rng.standard_normal((W, 2)))
        s_b = (0.1 + float((line[told, 0] ** 2).sum())) / (2.0 * rng.gamma((1.0 + told.sum()) / 2.0))
        apart = float(((line[told, 1] - 1.0) ** 2).sum())
        s_a = (GAIN_HOLD * GAIN_VARIANCE + apart) / (2.0 * rng.gamma((GAIN_HOLD + told.sum()) / 2.0))
        b, a = line.T
        error = szz - 2.0 * (b * sz + a * szx) + n * b * b + 2.0 * a * b * sx + a * a * sxx  # sum (z - b - a x)^2
        tau = rng.gamma(hold + many / 2.0) / (hold * noise + np.maximum(error, 0.0) / 2.0)
        noise = rng.gamma(hold * told.sum() + 1.0) / (hold * float(tau[told].sum()) + 2.0)
        alike = float((np.log(tau[told]) - noise * tau[told]).sum())
        logp = told.sum() * (HOLDS * np.log(HOLDS * noise) - gammaln(HOLDS)) + HOLDS * alike
        hold = float(HOLDS[(logp + rng.gumbel(size=len(HOLDS))).argmax()])


def expected_numbers(
    kind: Number, fit: NumberFit, data: NumberLabels, asked: Bools, read: Floats, draws: int = DRAWS
) -> ExpectedAccuracy:
    """The share of the items ``asked`` (K,) for which ``read`` (K,) is within the tolerance, with a 95% interval."""
    part, items = part_of(fit, data, asked), int(asked.sum())
    if not items:
        return ExpectedAccuracy(np.nan, 0.0, 1.0, 0.0)
    found, doubt, said = list[float](), 0.0, read[part.items]
    for one in draw_numbers(fit, part, draws):
        sd = one.scale / np.sqrt(one.total)
        below, above = (ndtr((said + side * kind.tolerance - one.mean) / sd) for side in (-1.0, 1.0))
        found.append(float((above - below).mean()))
        doubt += float(((above - below) * (1.0 - above + below)).mean()) / draws
    mean, learnt = float(np.mean(found)), float(np.var(found, ddof=1))
    half = WIDTH * float(np.sqrt(learnt + doubt / items)) + 0.5 / items
    return ExpectedAccuracy(mean, max(mean - half, 0.0), min(mean + half, 1.0), learnt)
