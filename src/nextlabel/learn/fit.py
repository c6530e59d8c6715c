"""How well a learnt prior explains the labels: numbers of tasks as they are and as the prior expects them.

======== ========= ========= =====================================================================
symbol   code      shape     meaning
======== ========= ========= =====================================================================
m, a     labels    (C,)      every number of labels that occurs, with every number of ones 0 .. m
O        observed  (C,)      tasks with a ones among m labels
E        expected  (C,)      N_m f(a, m): as many as the prior expects of the N_m tasks with m labels
B        bins      (C,)      cells in order of a / m, pooled until at least LEAST_EXPECTED tasks are expected; of
                             very many cells about MOST_BINS equal bins are made
X2       statistic --        sum over bins of (O - E)^2 / E
psi      influence (C, P)    by how much, times the tasks, one task moves the parameters
======== ========= ========= =====================================================================

The p-value is the share of data sets drawn from the prior, with the same numbers of labels, whose X2 is as large or
larger. A prior learnt from a drawn set would fit it better than the prior that it was drawn from, and X2 must take
that into account: the refit is not run but taken to first order, O - E - (dE/dphi) sum psi (O - E) / tasks, with the
psi of the method; a weight on its cap stays there.
Guarantee: exact up to that first order and to the Monte Carlo error, sqrt(p (1 - p) / draws). It takes tasks to be
independent of each other: where the same workers label many tasks it errs to the small side.
Cost: draws times cells binomial draws; with many cells fewer sets are drawn, at least 99.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.beliefs.beta import Beta
from nextlabel.beliefs.prior import Prior
from nextlabel.learn.counts import LabelCounts
from nextlabel.learn.mixture import influence, log_pmf, scores
from nextlabel.learn.weights import model_influence

DRAWS, MOST_WORK, LEAST_EXPECTED, MOST_BINS = 999, 10_000_000, 5.0, 50


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Numbers of tasks by labels and ones."""

    labels: Ints
    ones: Ints
    observed: Ints
    expected: Floats


@dataclass(frozen=True, slots=True)
class Fit:
    """The test of a fit; ``p_value`` is None where there are no more bins than parameters."""

    statistic: float
    bins: int
    draws: int
    p_value: float | None


def cells_of(counts: LabelCounts, prior: Prior) -> Cells:
    """Observed and expected numbers of tasks."""
    kinds, place = np.unique(counts.labels, return_inverse=True)
    start = np.concatenate([[0], np.cumsum(kinds + 1)])
    labels = np.repeat(kinds, kinds + 1)
    ones = np.arange(start[-1]) - np.repeat(start[:-1], kinds + 1)
    observed = np.zeros(len(ones), dtype=np.int64)
    observed[start[place] + counts.ones] = counts.tasks
    many = np.bincount(place, counts.tasks)
    chance = np.exp(log_pmf(prior, ones, labels))
    return Cells(labels, ones, observed, np.repeat(many / np.add.reduceat(chance, start[:-1]), kinds + 1) * chance)


def goodness_of_fit(
    counts: LabelCounts, prior: Prior, refit: Literal["moments", "likelihood"], seed: int = 0, draws: int = DRAWS
) -> Fit:
    """X2 and its p-value for a prior that was learnt by moments or by likelihood."""
    cells = cells_of(counts, prior)
    bins = _bins(cells)
    S = scores(prior, cells.ones, cells.labels)
    count = int(bins.max()) + 1
    draws = max(99, min(draws, MOST_WORK // len(bins)))
    to_bins = np.zeros((len(bins), count))
    to_bins[np.arange(len(bins)), bins] = 1.0
    expected = to_bins.T @ cells.expected
    residual = to_bins.T @ (cells.observed - cells.expected)
    statistic = float((residual**2 / expected).sum())
    if count - 1 <= S.shape[1]:
        return Fit(statistic, count, 0, None)
    slope = to_bins.T @ (cells.expected[:, None] * S)
    to_residual = to_bins - _pull(cells, prior, refit) @ slope.T / len(counts)
    drawn = _draw(cells, to_residual, np.random.default_rng(seed), draws)
    larger = int(((drawn**2 / expected).sum(axis=1) >= statistic * (1.0 - 1e-12)).sum())
    return Fit(statistic, count, draws, (1 + larger) / (1 + draws))


def _pull(cells: Cells, prior: Prior, refit: str) -> Floats:
    """psi of the refit."""
    if refit == "likelihood" or not isinstance(prior, Beta):
        return influence(prior, cells.ones, cells.labels, cells.expected)
    share = cells.ones / cells.labels
    weights, shares = np.array([prior.beta, prior.alpha]), np.column_stack([1.0 - share, share])
    return model_influence(weights, shares, cells.expected, cells.labels)[:, ::-1]


def _draw(cells: Cells, to_residual: Floats, rng: np.random.Generator, draws: int) -> Floats:
    """(draws, bins) residuals of drawn sets; one number of labels after the other, to save room."""
    out = np.zeros((draws, to_residual.shape[1]))
    for m in np.unique(cells.labels):
        here = np.flatnonzero(cells.labels == m)
        expected = cells.expected[here]
        tasks = int(cells.observed[here].sum())
        out += (rng.multinomial(tasks, expected / expected.sum(), size=draws) - expected) @ to_residual[here]
    return out


def _bins(cells: Cells) -> Ints:
    """The bin of each cell: neighbours in the share of ones, together as large as they need be."""
    least = LEAST_EXPECTED
    if len(cells.ones) > MOST_BINS:
        least = max(least, float(cells.expected.sum()) / MOST_BINS)
    order = np.lexsort((cells.labels, cells.ones / cells.labels))
    bins = np.zeros(len(order), dtype=np.int64)
    now, mass = 0, 0.0
    for cell in order:
        if mass >= least:
            now, mass = now + 1, 0.0
        bins[cell] = now
        mass += cells.expected[cell]
    if mass < least and now > 0:
        bins[bins == now] = now - 1
    return bins
