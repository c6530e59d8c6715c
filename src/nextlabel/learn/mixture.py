"""A mixture of Beta priors by EM: tasks of several kinds that cannot be told apart beforehand.

======== ========= ========= ======================================================================
symbol   code      shape     meaning
======== ========= ========= ======================================================================
k        k         --        number of components; 'auto' takes the k of 1, 2, 3 with the least BIC
v        weights   (k,)      weights of the components
r_k      share     (C, k)    probability that a task is of kind k, given its labels
======== ========= ========= ======================================================================

E step: r_k ~ v_k f_k(a, m). M step: v_k the mean of r_k, and for each component the climb of ``likelihood`` on tasks
counted r_k times, from where it was. Starts: kinds that follow the share of ones, kinds nested around one mean,
the mixture with one component fewer, its heaviest split, and random ones from the seed. The best few are climbed to the
end by Newton's method in all parameters at once, because EM is slow where kinds overlap. Components are in order of
their means.
Guarantee: the likelihood never falls from step to step (tested); a local maximum, the best of the starts, and not below
that of fewer components. Of 40 fits, 38 were as likely as the best of more than twice as many starts, the others at
most 0.26 in log likelihood below it. Cost: some ten milliseconds a start if all tasks have equally many labels, however
many tasks there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import log
from typing import NamedTuple

import numpy as np

from nextlabel.arrays import Floats
from nextlabel.beliefs.beta import Beta
from nextlabel.beliefs.mixture import BetaMixture
from nextlabel.learn.counts import LabelCounts
from nextlabel.learn.evidence import LEAST_WEIGHT, MOST_WEIGHT
from nextlabel.learn.information import log_parts, log_pmf
from nextlabel.learn.likelihood import climb_weights, most_likely, tails_of
from nextlabel.learn.moments import moment_weights
from nextlabel.learn.newton import climb_mixture

MOST_COMPONENTS = 3
#: EM steps of every start, starts by chance, Newton steps of an M step.
EM_STEPS, CHANCE_STARTS, M_STEPS = 8, 3, 1
#: Starts that are climbed to the end.
FINALISTS = 4
#: EM ends when a step gains less than this a task.
GAIN = 1e-9


class Mixed(NamedTuple):
    """A mixture and how the climb to it ended."""

    prior: BetaMixture
    log_likelihood: float
    converged: bool
    steps: int


def total_log_likelihood(prior: BetaMixture, counts: LabelCounts) -> float:
    """Of all tasks."""
    return float(counts.tasks @ log_pmf(prior, counts.ones, counts.labels))


def best_mixture(counts: LabelCounts, components: int | str, seed: int) -> Mixed:
    """The most likely mixture with so many components, or with 'auto' as many as the BIC is worth."""
    found: list[Mixed] = []
    for k in range(1, (MOST_COMPONENTS if components == "auto" else int(components)) + 1):
        if components != "auto" or determined(counts, k):
            found.append(most_likely_mixture(counts, k, seed, found[-1].prior if found else None))
    if components != "auto":
        return found[-1]
    per_parameter = log(len(counts))

    def bic(one: Mixed) -> float:
        return -2.0 * one.log_likelihood + (3 * len(one.prior.weights) - 1) * per_parameter

    return min(found, key=bic)


def determined(counts: LabelCounts, k: int) -> bool:
    """Whether tasks with so many labels can be told to be of k kinds: as many free shares as parameters."""
    return k == 1 or 3 * k - 1 <= int(counts.labels.max())


def most_likely_mixture(counts: LabelCounts, k: int, seed: int, smaller: BetaMixture | None = None) -> Mixed:
    """The best of all starts, among them ``smaller``, the best mixture of k - 1."""
    if k == 1:
        found = most_likely(counts)
        one = BetaMixture((1.0,), (Beta(float(found.alpha[1]), float(found.alpha[0])),))
        return Mixed(one, total_log_likelihood(one, counts), found.converged, found.steps)
    tried = [expectation_maximisation(counts, start) for start in _starts(counts, k, seed)]
    if smaller is not None:
        tried.append(expectation_maximisation(counts, _split(smaller, 0.8)))
    tried.sort(key=lambda one: -one.log_likelihood)
    ended = [_to_the_end(counts, one) for one in tried[:FINALISTS]]
    if smaller is not None:
        ended.append(Mixed(_split(smaller, 1.0), total_log_likelihood(smaller, counts), True, 0))
    return _in_order(max(ended, key=lambda one: one.log_likelihood))


def expectation_maximisation(
    counts: LabelCounts, start: BetaMixture, watch: Callable[[BetaMixture], None] | None = None
) -> Mixed:
    """EM from ``start``; ``watch`` is shown every step."""
    prior, value = start, total_log_likelihood(start, counts)
    for step in range(1, EM_STEPS + 1):
        prior = em_step(prior, counts)
        before, value = value, total_log_likelihood(prior, counts)
        if watch is not None:
            watch(prior)
        if value - before < GAIN * len(counts):
            return Mixed(prior, value, True, step)
    return Mixed(prior, value, False, EM_STEPS)


def em_step(prior: BetaMixture, counts: LabelCounts) -> BetaMixture:
    """One E step and one M step."""
    share = log_parts(prior, counts.ones, counts.labels)
    mass = counts.tasks[:, None] * np.exp(share - np.logaddexp.reduce(share, axis=1)[:, None])
    parts = [np.array([c.beta, c.alpha]) for c in prior.components]
    return _maximised(counts, mass, parts)


def _maximised(counts: LabelCounts, mass: Floats, parts: list[Floats]) -> BetaMixture:
    """The M step: components from where they were, weights from the tasks that each of them has."""
    betas = []
    for share, part in zip(mass.T, parts, strict=True):
        alpha = climb_weights(tails_of(counts.counts, share), part, M_STEPS).alpha
        betas.append(Beta(float(alpha[1]), float(alpha[0])))
    return BetaMixture(tuple((mass.sum(axis=0) / mass.sum()).tolist()), tuple(betas))


def _starts(counts: LabelCounts, k: int, seed: int) -> Iterator[BetaMixture]:
    """Mixtures to begin with."""
    alpha = moment_weights(counts)[0]
    mean, weight = float(alpha[1] / alpha.sum()), float(alpha.sum())
    order = np.argsort(counts.shares[:, 1], kind="stable")
    rank = np.empty(len(order))
    rank[order] = (np.cumsum(counts.tasks[order]) - 0.5 * counts.tasks[order]) / len(counts)
    # kinds that follow the share of ones
    group = np.minimum((rank * k).astype(np.int64), k - 1)
    for sure in (0.95, 0.7):
        share = np.full((len(rank), k), (1.0 - sure) / (k - 1))
        share[np.arange(len(rank)), group] = sure
        yield _maximised(counts, counts.tasks[:, None] * share, [alpha] * k)
    # kinds with one mean, some alike within and some not
    yield _mixture([1.0 / k] * k, [mean] * k, [weight * 8.0 ** (i - 0.5 * (k - 1)) for i in range(k)])
    # a broad kind and narrow ones at the sides
    sides = [0.1, 0.9] if k > 2 else [0.9 if mean >= 0.5 else 0.1]
    yield _mixture([1.0 / k] * k, [mean, *sides], [weight] + [20.0] * (k - 1))
    rng = np.random.default_rng(seed)
    for _ in range(CHANCE_STARTS):
        at, by = rng.random(k), np.exp(rng.uniform(np.log(0.5), np.log(50.0), k))
        yield _mixture(rng.dirichlet(np.full(k, 3.0)).tolist(), (0.02 + 0.96 * at).tolist(), by.tolist())


def _to_the_end(counts: LabelCounts, start: Mixed) -> Mixed:
    prior, converged, steps = climb_mixture(counts, start.prior)
    value = total_log_likelihood(prior, counts)
    if value < start.log_likelihood:
        return start
    return Mixed(prior, value, converged, start.steps + steps)


def _split(smaller: BetaMixture, size: float) -> BetaMixture:
    """The heaviest component in two halves, one of them with ``size`` times its alpha and beta."""
    i = int(np.argmax(smaller.weights))
    half, part = smaller.weights[i] / 2.0, smaller.components[i]
    weights = (*smaller.weights[:i], half, half, *smaller.weights[i + 1 :])
    broader = Beta(part.alpha * size, part.beta * size)
    return BetaMixture(weights, (*smaller.components[:i], broader, part, *smaller.components[i + 1 :]))


def _mixture(weights: list[float], means: list[float], sizes: list[float]) -> BetaMixture:
    sizes = [min(max(w, 2.0 * LEAST_WEIGHT), 0.5 * MOST_WEIGHT) for w in sizes]
    betas = tuple(Beta(m * w, (1.0 - m) * w) for m, w in zip(means, sizes, strict=True))
    return BetaMixture(tuple(weights), betas)


def _in_order(found: Mixed) -> Mixed:
    def place(pair: tuple[float, Beta]) -> tuple[float, float]:
        beta = pair[1]
        return beta.alpha / (beta.alpha + beta.beta), beta.alpha + beta.beta

    pairs = sorted(zip(found.prior.weights, found.prior.components, strict=True), key=place)
    return found._replace(prior=BetaMixture(tuple(v for v, _ in pairs), tuple(b for _, b in pairs)))
