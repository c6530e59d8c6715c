"""A mixture of Beta priors from recorded labels: tasks of several kinds that cannot be told apart beforehand.

======== ========= ========= ======================================================================
symbol   code      shape     meaning
======== ========= ========= ======================================================================
k        k         --        number of components; 'auto' takes the k of 1, 2, 3 with the least BIC
v        weights   (k,)      weights of the components
f_k      log_f     (C, k)    log probability of a ones among m labels under component k
r_k      share     (C, k)    probability that a task is of kind k, given its labels
phi      --        (P,)      v_1 ... v_{k-1}, then alpha_1, beta_1, ..., alpha_k, beta_k; P = 3k - 1
======== ========= ========= ======================================================================

    log f = log C(m, a) + sum_{r<a} log(alpha + r) + sum_{r<m-a} log(beta + r) - sum_{r<m} log(alpha + beta + r)
    score of a task          S = sum_k r_k S_k,             S_k the gradient of log v_k f_k in phi
    its Hessian              sum_k r_k (S_k S_k' + H_k) - S S'              [Lou82]

A Beta prior is a mixture of one. The likelihood is maximised in x = (log v_1 / v_k, ..., log v_{k-1} / v_k) and the box
coordinates (``weights``) of each component, by SciPy's L-BFGS-B, from several starts: kinds that follow the share of
ones, kinds nested around one mean, the mixture with one component fewer, its heaviest split, and random ones from the
seed. The best few are taken to the end. Components are in order of their means.
Guarantee: exact derivatives; a local maximum, the best of the starts, and not below that of fewer components.
Cost: some ten milliseconds a start if all tasks have equally many
labels, however many tasks there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import log
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from nextlabel.arrays import Floats, Ints
from nextlabel.model.beta import Beta, BetaMixture
from nextlabel.model.prior import Prior
from nextlabel.model.prior_weights import (
    LEAST_WEIGHT,
    MOST_STEPS,
    MOST_WEIGHT,
    NEAR,
    TOLERANCE,
    LabelCounts,
    corners,
    covariance,
    free_weights,
    from_box,
    likelihood,
    maximise,
    moment_weights,
    most_likely_weights,
    slope_in_box,
    tails_of,
    to_box,
)

MOST_COMPONENTS = 3
#: Tolerance and steps of every start; starts by chance; starts that are taken to the end.
ROUGHLY, FEW_STEPS, CHANCE_STARTS, FINALISTS = 1e-9, 100, 3, 4
#: The least weight of a component relative to another, as a logarithm.
LIGHTEST = 9.0


class Mixed(NamedTuple):
    """A mixture and how the search for it ended."""

    prior: BetaMixture
    log_likelihood: float
    converged: bool
    steps: int


# --- one mixture ----------------------------------------------------------------------------------


def as_mixture(prior: Prior) -> BetaMixture:
    """A Beta as the mixture that it is."""
    if isinstance(prior, Beta):
        return BetaMixture((1.0,), (prior,))
    if not isinstance(prior, BetaMixture):
        raise TypeError(f"{prior.describe()} is neither a Beta nor a mixture of them.")
    return prior


def parameter_names(prior: Prior) -> list[str]:
    """The parameters phi by name."""
    k = len(as_mixture(prior).weights)
    if k == 1:
        return ["alpha", "beta"]
    return [f"weight{i + 1}" for i in range(k - 1)] + [f"{name}{i + 1}" for i in range(k) for name in ("alpha", "beta")]


def log_parts(prior: Prior, ones: Ints, labels: Ints) -> Floats:
    """(C, k) log v_k f_k."""
    mixture, zeros, most = as_mixture(prior), labels - ones, int(labels.max(initial=0))
    out = np.empty((len(ones), len(mixture.weights)))
    for i, (v, c) in enumerate(zip(mixture.weights, mixture.components, strict=True)):
        above, below, total = (_sums(np.log, x, most) for x in (c.alpha, c.beta, c.alpha + c.beta))
        out[:, i] = above[ones] + below[zeros] - total[labels] + np.log(v)
    choose = gammaln(labels + 1.0) - gammaln(ones + 1.0) - gammaln(zeros + 1.0)
    return np.asarray(out + choose[:, None], dtype=np.float64)


def log_pmf(prior: Prior, ones: Ints, labels: Ints) -> Floats:
    """(C,) log probability of so many ones among so many labels."""
    return np.asarray(np.logaddexp.reduce(log_parts(prior, ones, labels), axis=1), dtype=np.float64)


def total_log_likelihood(prior: Prior, counts: LabelCounts) -> float:
    """Of all tasks."""
    return float(counts.tasks @ log_pmf(prior, counts.ones, counts.labels))


def scores(prior: Prior, ones: Ints, labels: Ints) -> Floats:
    """(C, P) gradient of ``log_pmf``."""
    share, each = _complete_scores(as_mixture(prior), log_parts(prior, ones, labels), ones, labels)
    return np.asarray(np.einsum("ck,ckp->cp", share, each), dtype=np.float64)


def hessian(prior: Prior, ones: Ints, labels: Ints, tasks: Ints) -> Floats:
    """(P, P) second derivatives of the log likelihood of all tasks."""
    mixture = as_mixture(prior)
    share, each = _complete_scores(mixture, log_parts(prior, ones, labels), ones, labels)
    together = np.einsum("ck,ckp->cp", share, each)
    mass = tasks[:, None] * share
    out = -(tasks[:, None] * together).T @ together
    k = len(mixture.weights)
    v, total = np.array(mixture.weights), mass.sum(axis=0)
    out[: k - 1, : k - 1] -= np.diag((total / v**2)[:-1]) + total[-1] / v[-1] ** 2
    counts = np.column_stack([labels - ones, ones])
    for i, c in enumerate(mixture.components):
        own = each[:, i]
        out += own.T @ (mass[:, i, None] * own)
        at = slice(k - 1 + 2 * i, k + 1 + 2 * i)
        # answers are in the order (0, 1), parameters in the order (alpha, beta)
        out[at, at] += likelihood(tails_of(counts, mass[:, i]), np.array([c.beta, c.alpha]))[2][::-1, ::-1]
    return np.asarray(out, dtype=np.float64)


def standard_errors(prior: Prior, counts: LabelCounts) -> Floats | None:
    """(P,) from the observed information, along active bounds; None where labels leave a parameter open."""
    found = covariance(-hessian(prior, counts.ones, counts.labels, counts.tasks), free_parameters(as_mixture(prior)))
    return None if found is None else np.sqrt(np.diag(found))


def influence(prior: Prior, ones: Ints, labels: Ints, expected: Floats) -> Floats:
    """(C, P) by how much, times the tasks, one task more moves the most likely parameters, along active bounds."""
    free = free_parameters(as_mixture(prior))
    S = scores(prior, ones, labels)
    inner = (expected[:, None] * (S @ free)).T @ (S @ free) / expected.sum()
    return np.asarray(S @ free @ np.linalg.pinv(inner, rcond=1e-10, hermitian=True) @ free.T, dtype=np.float64)


def free_parameters(mixture: BetaMixture) -> Floats:
    """(P, n) directions in which the parameters of a mixture are free."""
    k = len(mixture.weights)
    v = np.array(mixture.weights)
    held = v <= np.exp(-LIGHTEST) * v.max() * (1.0 + NEAR)
    blocks = [np.eye(k - 1)[:, ~held[:-1]]] if not held[-1] else [np.zeros((k - 1, 0))]
    blocks += [free_weights(np.array([c.alpha, c.beta])) for c in mixture.components]
    out = np.zeros((3 * k - 1, sum(block.shape[1] for block in blocks)))
    row = column = 0
    for block in blocks:
        out[row : row + block.shape[0], column : column + block.shape[1]] = block
        row, column = row + block.shape[0], column + block.shape[1]
    return out


def _complete_scores(mixture: BetaMixture, parts: Floats, ones: Ints, labels: Ints) -> tuple[Floats, Floats]:
    """r (C, k) and S_k (C, k, P)."""
    share = np.exp(parts - np.logaddexp.reduce(parts, axis=1)[:, None])
    k, zeros = len(mixture.weights), labels - ones
    each = np.zeros((len(ones), k, 3 * k - 1))
    each[:, :-1, : k - 1] = np.diag(1.0 / np.array(mixture.weights[:-1]))
    each[:, -1, : k - 1] = -1.0 / mixture.weights[-1]
    most = int(labels.max(initial=0))
    for i, c in enumerate(mixture.components):
        above, below, total = (_sums(np.reciprocal, x, most) for x in (c.alpha, c.beta, c.alpha + c.beta))
        each[:, i, k - 1 + 2 * i] = above[ones] - total[labels]
        each[:, i, k + 2 * i] = below[zeros] - total[labels]
    return share, each


def _sums(function: Callable[[Floats], Floats], x: float, most: int) -> Floats:
    """Sums of function(x + r) over r < n, for n = 0 .. most: log Gamma and digamma without their cancellation."""
    return np.concatenate([[0.0], np.cumsum(function(x + np.arange(most, dtype=np.float64)))])


# --- the most likely one --------------------------------------------------------------------------


def best_mixture(counts: LabelCounts, components: int | str, seed: int) -> Mixed:
    """The most likely mixture with so many components, or with 'auto' as many as the BIC is worth."""
    found: list[Mixed] = []
    for k in range(1, (MOST_COMPONENTS if components == "auto" else int(components)) + 1):
        if components != "auto" or determined(counts, k):
            found.append(_most_likely(counts, k, seed, found[-1].prior if found else None))
    if components != "auto":
        return found[-1]
    per_parameter = log(len(counts))

    def bic(one: Mixed) -> float:
        return -2.0 * one.log_likelihood + (3 * len(one.prior.weights) - 1) * per_parameter

    return min(found, key=bic)


def determined(counts: LabelCounts, k: int) -> bool:
    """Whether tasks with so many labels can be told to be of k kinds: as many free shares as parameters."""
    return k == 1 or 3 * k - 1 <= int(counts.labels.max())


def _most_likely(counts: LabelCounts, k: int, seed: int, smaller: BetaMixture | None) -> Mixed:
    """The best of all starts, among them ``smaller``, the best mixture of k - 1."""
    if k == 1 or smaller is None:
        alpha, search = most_likely_weights(counts)
        one = BetaMixture((1.0,), (Beta(float(alpha[1]), float(alpha[0])),))
        return Mixed(one, total_log_likelihood(one, counts), search.converged, search.steps)
    tried = [climb_mixture(counts, start, ROUGHLY, FEW_STEPS) for start in _starts(counts, k, seed, smaller)]
    tried.sort(key=lambda one: -one.log_likelihood)
    ended = [climb_mixture(counts, one.prior) for one in tried[:FINALISTS]]
    same = _split(smaller, 1.0)
    ended.append(Mixed(same, total_log_likelihood(same, counts), True, 0))
    best = max(ended, key=lambda one: one.log_likelihood)
    pairs = sorted(
        zip(best.prior.weights, best.prior.components, strict=True),
        key=lambda pair: (pair[1].alpha / (pair[1].alpha + pair[1].beta), pair[1].alpha + pair[1].beta),
    )
    return best._replace(prior=BetaMixture(tuple(v for v, _ in pairs), tuple(beta for _, beta in pairs)))


def climb_mixture(
    counts: LabelCounts, start: BetaMixture, tolerance: float = TOLERANCE, most_steps: int = MOST_STEPS
) -> Mixed:
    """The most likely mixture near ``start``."""
    k = len(start.weights)
    low, high = (np.concatenate([np.full(k - 1, end), np.tile(corners(2)[i], k)])
                 for i, end in enumerate((-LIGHTEST, LIGHTEST)))  # fmt: skip
    found = maximise(
        lambda x: in_box(counts, x, k), np.clip(to_x(start), low, high), low, high, len(counts), tolerance, most_steps
    )
    prior = _from_x(found.x, k)
    return Mixed(prior, total_log_likelihood(prior, counts), found.converged, found.steps)


def in_box(counts: LabelCounts, x: Floats, k: int) -> tuple[float, Floats]:
    """Log likelihood of the mixture at x, and its gradient there."""
    prior = _from_x(x, k)
    parts = log_parts(prior, counts.ones, counts.labels)
    share, each = _complete_scores(prior, parts, counts.ones, counts.labels)
    gradient = np.einsum("c,ck,ckp->p", counts.tasks, share, each)
    v, of_v = np.array(prior.weights[:-1]), gradient[: k - 1]
    slopes = [v * (of_v - v @ of_v)]
    for c, of_c in zip(prior.components, gradient[k - 1 :].reshape(k, 2), strict=True):
        slopes.append(slope_in_box(np.array([c.beta, c.alpha]), of_c[::-1]))
    return float(counts.tasks @ np.logaddexp.reduce(parts, axis=1)), np.concatenate(slopes)


def to_x(prior: BetaMixture) -> Floats:
    """The point of the box that a mixture is."""
    v = np.array(prior.weights)
    parts = [to_box(np.array([c.beta, c.alpha])) for c in prior.components]
    return np.concatenate([np.log(v[:-1] / v[-1]), *parts])


def _from_x(x: Floats, k: int) -> BetaMixture:
    v = from_box(np.concatenate([[0.0], x[: k - 1]]))
    parts = [from_box(pair) for pair in x[k - 1 :].reshape(k, 2)]
    return BetaMixture((*v[1:].tolist(), float(v[0])), tuple(Beta(float(a), float(b)) for b, a in parts))


def _starts(counts: LabelCounts, k: int, seed: int, smaller: BetaMixture) -> Iterator[BetaMixture]:
    """Mixtures to begin with."""
    alpha = moment_weights(counts)
    mean, weight = float(alpha[1] / alpha.sum()), float(alpha.sum())
    # kinds that follow the share of ones
    share = counts.shares[:, 1]
    order = np.argsort(share, kind="stable")
    rank = (np.cumsum(counts.tasks[order]) - 0.5 * counts.tasks[order]) / len(counts)
    means = np.interp((np.arange(k) + 0.5) / k, rank, share[order])
    for size in (2.0, 8.0):
        yield _mixture([1.0 / k] * k, means.tolist(), [size * weight] * k)
    # kinds with one mean, some alike within and some not
    yield _mixture([1.0 / k] * k, [mean] * k, [weight * 8.0 ** (i - 0.5 * (k - 1)) for i in range(k)])
    # a broad kind and narrow ones at the sides
    sides = [0.1, 0.9] if k > 2 else [0.9 if mean >= 0.5 else 0.1]
    yield _mixture([1.0 / k] * k, [mean, *sides], [weight] + [20.0] * (k - 1))
    yield _split(smaller, 0.25)
    rng = np.random.default_rng(seed)
    for _ in range(CHANCE_STARTS):
        at, by = rng.random(k), np.exp(rng.uniform(np.log(0.5), np.log(50.0), k))
        yield _mixture(rng.dirichlet(np.full(k, 3.0)).tolist(), at.tolist(), by.tolist())


def _split(smaller: BetaMixture, size: float) -> BetaMixture:
    """The heaviest component in two halves, one of them with ``size`` times its alpha and beta."""
    i = int(np.argmax(smaller.weights))
    half, part = smaller.weights[i] / 2.0, smaller.components[i]
    weights = (*smaller.weights[:i], half, half, *smaller.weights[i + 1 :])
    broader = Beta(part.alpha * size, part.beta * size)
    return BetaMixture(weights, (*smaller.components[:i], broader, part, *smaller.components[i + 1 :]))


def _mixture(weights: list[float], means: list[float], sizes: list[float]) -> BetaMixture:
    sizes = [min(max(w, 2.0 * LEAST_WEIGHT), 0.5 * MOST_WEIGHT) for w in sizes]
    means = [min(max(m, 0.02), 0.98) for m in means]
    betas = tuple(Beta(m * w, (1.0 - m) * w) for m, w in zip(means, sizes, strict=True))
    return BetaMixture(tuple(weights), betas)
