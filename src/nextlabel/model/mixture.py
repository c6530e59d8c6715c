"""The most likely prior of recorded labels: a Beta, a Dirichlet, or a mixture of Betas for tasks of several kinds.

======== ========= ========= ======================================================================
symbol   code      shape     meaning
======== ========= ========= ======================================================================
k        k         --        number of components; 'auto' takes the k of 1, 2, 3 with the least BIC
v        weights   (k,)      weights of the components
alpha    alpha     (k, J)    Dirichlet weights of each, that of answer 0 first; of a Beta (beta, alpha)
w        --        (k,)      sums of alpha, inside [LEAST_WEIGHT, MOST_WEIGHT]
f_k      log_parts (C, k)    log v_k f_k, f_k the probability of n_j labels of each answer, m in all
r_k      share     (C, k)    probability that a task is of kind k, given its labels
phi      --        (P,)      v_1 ... v_{k-1}, then the alpha of each component; P = k - 1 + k J
======== ========= ========= ======================================================================

    log f = log multinomial(m; n) + sum_j sum_{r<n_j} log(alpha_j + r) - sum_{r<m} log(w + r)      [Min00]
    score of a task          S = sum_k r_k S_k,             S_k the gradient of log v_k f_k in phi
    its Hessian              sum_k r_k (S_k S_k' + H_k) - S S'              [Lou82]

A single prior is a mixture of one. The likelihood is maximised in (log v_1 / v_k, ..., log v_{k-1} / v_k) and, for each
component, (log w, log alpha_1 / alpha_0, ..., log alpha_{J-1} / alpha_0), where the caps are the bounds, by SciPy's
L-BFGS-B: a single prior from the moments; a mixture from kinds that follow the share of ones, kinds nested around one
mean, the mixture with one component fewer, its heaviest split, and random ones from the seed, of which the best few are
taken to the end. Components are in order of their means.
Guarantee: exact derivatives; a local maximum, the best of the starts, and not below that of fewer components. For a
single prior other starts have led to the same maximum on all data tried (tests).
Cost: some ten milliseconds a start if all tasks have equally many labels, however many tasks there are.

A prior on a wall can move along it, not through it: standard errors and refits are taken in the directions that are
left (``free_parameters``).
"""

from __future__ import annotations

from collections.abc import Iterator
from math import log
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import block_diag
from scipy.optimize import Bounds, minimize
from scipy.special import gammaln
from threadpoolctl import ThreadpoolController

from nextlabel.arrays import Floats, Ints
from nextlabel.model.beta import Beta, BetaMixture
from nextlabel.model.dirichlet import Dirichlet
from nextlabel.model.prior import Prior
from nextlabel.model.prior_weights import LEAST_WEIGHT, MOST_WEIGHT, NEAR, LabelCounts, capped, moment_weights

MOST_COMPONENTS = 3
#: Tolerance and steps of every start; starts by chance; starts that are taken to the end.
ROUGHLY, FEW_STEPS, CHANCE_STARTS, FINALISTS = 1e-9, 100, 3, 4
#: Change of the value per task at which a search ends, and its most steps.
TOLERANCE, MOST_STEPS = 1e-16, 1000
#: The least weight of a component relative to another, as a logarithm.
LIGHTEST = 9.0
#: No answer is less likely than this times another.
LEAST_SHARE = 1e-4

_THREADS = ThreadpoolController()


class Mixture(NamedTuple):
    """Weights of components and their Dirichlet weights; and how the search for them ended, if there was one."""

    weights: Floats
    alpha: Floats
    log_likelihood: float = 0.0
    converged: bool = True
    steps: int = 0

    @property
    def parameters(self) -> int:
        """P."""
        return self.alpha.size + len(self.weights) - 1

    def parameter_names(self) -> list[str]:
        """The parameters phi by name."""
        k, J = self.alpha.shape
        own = ["beta", "alpha"] if J == 2 else [f"alpha{j}" for j in range(J)]
        parts = own if k == 1 else [f"{name}{i}" for i in range(1, k + 1) for name in own]
        return [f"weight{i}" for i in range(1, k)] + parts

    def prior(self) -> BetaMixture:
        """As a prior of tasks with two answers."""
        return BetaMixture(tuple(self.weights.tolist()), tuple(Beta(a, b) for b, a in self.alpha.tolist()))


def as_mixture(prior: Prior) -> Mixture:
    """A Beta, a Dirichlet or a mixture of Betas as a mixture."""
    if isinstance(prior, Dirichlet):
        return Mixture(np.ones(1), np.array([prior.weights]))
    if not isinstance(prior, Beta | BetaMixture):
        raise TypeError(f"{prior.describe()} is neither a Beta nor a mixture of them.")
    weights, betas = ((1.0,), (prior,)) if isinstance(prior, Beta) else (prior.weights, prior.components)
    return Mixture(np.array(weights), np.array([(c.beta, c.alpha) for c in betas]))


# --- one mixture ----------------------------------------------------------------------------------


def log_parts(mixture: Mixture, counts: Ints) -> Floats:
    """(C, k) log v_k f_k."""
    sums = _sums(np.log, mixture.alpha, counts)
    choose = gammaln(counts.sum(axis=1) + 1.0) - gammaln(counts + 1.0).sum(axis=1)
    return np.asarray((sums[..., :-1].sum(axis=2) - sums[..., -1] + choose).T + np.log(mixture.weights))


def log_pmf(prior: Prior | Mixture, counts: Ints) -> Floats:
    """(C,) log probability of so many labels of each answer."""
    mixture = prior if isinstance(prior, Mixture) else as_mixture(prior)
    return np.asarray(np.logaddexp.reduce(log_parts(mixture, counts), axis=1), dtype=np.float64)


def log_likelihood(prior: Prior | Mixture, counts: LabelCounts) -> float:
    """Log probability of all tasks' counts, the multinomial coefficients included."""
    return float(counts.tasks @ log_pmf(prior, counts.counts))


def scores(prior: Prior, counts: Ints) -> Floats:
    """(C, P) gradient of ``log_pmf``."""
    mixture = as_mixture(prior)
    share, each = _complete_scores(mixture, log_parts(mixture, counts), counts)
    return np.asarray(np.einsum("ck,ckp->cp", share, each), dtype=np.float64)


def hessian(mixture: Mixture, counts: LabelCounts) -> Floats:
    """(P, P) second derivatives of the log likelihood of all tasks."""
    share, each = _complete_scores(mixture, log_parts(mixture, counts.counts), counts.counts)
    together, mass = np.einsum("ck,ckp->cp", share, each), counts.tasks[:, None] * share
    out = np.einsum("ck,ckp,ckq->pq", mass, each, each) - (counts.tasks[:, None] * together).T @ together
    v, total = mixture.weights, mass.sum(axis=0)
    bends = np.einsum("ck,kcj->kj", mass, _sums(lambda x: -1.0 / x**2, mixture.alpha, counts.counts))
    of_weights = -np.diag((total / v**2)[:-1]) - total[-1] / v[-1] ** 2
    return np.asarray(out + block_diag(of_weights, *(np.diag(bend[:-1]) - bend[-1] for bend in bends)))


def standard_errors(mixture: Mixture, counts: LabelCounts) -> Floats | None:
    """(P,) from the observed information, along active bounds; None where labels leave a parameter open."""
    free = free_parameters(mixture)
    if free.shape[1] == 0:
        return np.zeros(mixture.parameters)
    inner = -free.T @ hessian(mixture, counts) @ free
    size = np.sqrt(np.abs(np.diag(inner)))
    if not (np.isfinite(inner).all() and size.min() > 0):
        return None
    inner = inner / np.outer(size, size)
    if not np.linalg.eigvalsh(inner).min() > 1e-9:
        return None
    step = free / size
    return np.sqrt(np.diag(step @ np.linalg.inv(inner) @ step.T))


def influence(prior: Prior, counts: Ints, expected: Floats) -> Floats:
    """(C, P) by how much, times the tasks, one task more moves the most likely parameters, along active bounds."""
    free = free_parameters(as_mixture(prior))
    S = scores(prior, counts) @ free
    inner = (expected[:, None] * S).T @ S / expected.sum()
    return np.asarray(S @ np.linalg.pinv(inner, rcond=1e-10, hermitian=True) @ free.T, dtype=np.float64)


def free_parameters(mixture: Mixture) -> Floats:
    """(P, n) directions in which the parameters of a mixture are free."""
    v = mixture.weights
    held = v <= np.exp(-LIGHTEST) * v.max() * (1.0 + NEAR)
    return np.asarray(block_diag(np.eye(len(v) - 1)[:, ~held[:-1] & ~held[-1]], *map(_free_weights, mixture.alpha)))


def _free_weights(alpha: Floats) -> Floats:
    """(J, n) directions in which the weights of one component are free."""
    ratios = alpha[:, None] * (np.eye(len(alpha))[:, 1:] - (alpha / alpha.sum())[1:])
    if alpha.min() <= LEAST_SHARE * alpha.max() * (1.0 + NEAR):  # an answer's share is on its wall
        ratios = ratios[:, :0]
    return ratios if capped(float(alpha.sum())) else np.column_stack([alpha, ratios])


def _complete_scores(mixture: Mixture, parts: Floats, counts: Ints) -> tuple[Floats, Floats]:
    """r (C, k) and S_k (C, k, P)."""
    v, (k, J) = mixture.weights, mixture.alpha.shape
    sums = _sums(np.reciprocal, mixture.alpha, counts)
    each = np.zeros((len(counts), k, mixture.parameters))
    each[:, :-1, : k - 1], each[:, -1, : k - 1] = np.diag(1.0 / v[:-1]), -1.0 / v[-1]
    for i in range(k):
        each[:, i, k - 1 + i * J : k - 1 + (i + 1) * J] = sums[i, :, :-1] - sums[i, :, -1:]
    return np.exp(parts - np.logaddexp.reduce(parts, axis=1, keepdims=True)), each


def _sums(function: Any, alpha: Floats, counts: Ints) -> Floats:
    """(k, C, J + 1) sums of function(alpha_j + r) over r < n_j, then of function(w + r) over r < m.

    They are log Gamma and digamma without their cancellation.
    """
    of, n = (np.column_stack([one, one.sum(axis=1)]) for one in (alpha, counts))
    table = np.zeros((*of.shape, int(n.max(initial=0)) + 1))
    np.cumsum(function(of[..., None] + np.arange(table.shape[2] - 1.0)), axis=2, out=table[..., 1:])
    return np.asarray(table[:, np.arange(of.shape[1]), n])


# --- the most likely one --------------------------------------------------------------------------


def best_mixture(counts: LabelCounts, components: int | str, seed: int = 0) -> Mixture:
    """The most likely mixture with so many components, or with 'auto' as many as the BIC is worth."""
    found: list[Mixture] = []
    for k in range(1, (MOST_COMPONENTS if components == "auto" else int(components)) + 1):
        if components != "auto" or determined(counts, k):
            found.append(_most_likely(counts, k, seed, found[-1]) if found else climb(counts))
    if components != "auto":
        return found[-1]
    return min(found, key=lambda one: -2.0 * one.log_likelihood + one.parameters * log(len(counts)))


def determined(counts: LabelCounts, k: int) -> bool:
    """Whether tasks with so many labels can be told to be of k kinds: as many free shares as parameters."""
    return k == 1 or 3 * k - 1 <= int(counts.labels.max())


def climb(
    counts: LabelCounts, start: Mixture | None = None, tolerance: float = TOLERANCE, most_steps: int = MOST_STEPS
) -> Mixture:
    """The most likely mixture near ``start``, or the most likely single prior from the moments."""
    start = Mixture(np.ones(1), moment_weights(counts)[None]) if start is None else start
    (k, J), edge, tasks = start.alpha.shape, -log(LEAST_SHARE), len(counts)
    low = np.array([-LIGHTEST] * (k - 1) + [log(LEAST_WEIGHT), *[-edge] * (J - 1)] * k)
    high = np.array([LIGHTEST] * (k - 1) + [log(MOST_WEIGHT), *[edge] * (J - 1)] * k)

    def loss(x: Floats) -> tuple[float, Floats]:
        value, gradient = in_box(counts, x, k)
        return -value / tasks, -gradient / tasks

    options = {"maxiter": most_steps, "ftol": tolerance, "gtol": 1e-10, "maxcor": 20}
    # where all cores are busy, BLAS threads would wait for each other a hundred times as long as these few sums take
    with _THREADS.limit(limits=1, user_api="blas"):
        found = minimize(
            loss, np.clip(to_x(start), low, high), jac=True, method="L-BFGS-B", bounds=Bounds(low, high),
            options=options,
        )  # fmt: skip
    ended = _from_x(found.x, k)
    return ended._replace(
        log_likelihood=log_likelihood(ended, counts), converged=found.nit < most_steps, steps=int(found.nit)
    )


def in_box(counts: LabelCounts, x: Floats, k: int) -> tuple[float, Floats]:
    """Log likelihood of the mixture at x, and its gradient there.

    d alpha_j is alpha_j in log w and alpha_j (1{j = i} - p_j) in the ratio i, p the shares.
    """
    mixture = _from_x(x, k)
    parts = log_parts(mixture, counts.counts)
    share, each = _complete_scores(mixture, parts, counts.counts)
    gradient = np.einsum("c,ck,ckp->p", counts.tasks, share, each)
    v, of_v, alpha = mixture.weights[:-1], gradient[: k - 1], mixture.alpha
    pull = gradient[k - 1 :].reshape(alpha.shape) * alpha
    whole = pull.sum(axis=1, keepdims=True)
    slopes = np.hstack([whole, pull[:, 1:] - alpha[:, 1:] / alpha.sum(axis=1, keepdims=True) * whole])
    return float(counts.tasks @ np.logaddexp.reduce(parts, axis=1)), np.append(v * (of_v - v @ of_v), slopes)


def to_x(mixture: Mixture) -> Floats:
    """The point that a mixture is."""
    v, alpha = mixture.weights, mixture.alpha
    whole = np.log(alpha.sum(axis=1))
    return np.append(np.log(v[:-1] / v[-1]), np.column_stack([whole, np.log(alpha[:, 1:]) - np.log(alpha[:, :1])]))


def _from_x(x: Floats, k: int) -> Mixture:
    parts = x[k - 1 :].reshape(k, -1)
    v, shares = np.exp(np.append(x[: k - 1], 0.0)), np.exp(np.column_stack([np.zeros(k), parts[:, 1:]]))
    return Mixture(v / v.sum(), np.exp(parts[:, :1]) * shares / shares.sum(axis=1, keepdims=True))


def _most_likely(counts: LabelCounts, k: int, seed: int, smaller: Mixture) -> Mixture:
    """The best of all starts, among them ``smaller``, the best mixture of k - 1."""
    tried = [climb(counts, start, ROUGHLY, FEW_STEPS) for start in _starts(counts, k, seed, smaller)]
    tried.sort(key=lambda one: -one.log_likelihood)
    same = _split(smaller, 1.0)
    ended = [climb(counts, one) for one in tried[:FINALISTS]]
    best = max([*ended, same._replace(log_likelihood=log_likelihood(same, counts))], key=lambda one: one.log_likelihood)
    order = np.lexsort((best.alpha.sum(axis=1), best.alpha[:, 1] / best.alpha.sum(axis=1)))
    return best._replace(weights=best.weights[order], alpha=best.alpha[order])


def _starts(counts: LabelCounts, k: int, seed: int, smaller: Mixture) -> Iterator[Mixture]:
    """Mixtures to begin with."""
    alpha, even = moment_weights(counts), np.full(k, 1.0 / k)
    mean, weight = float(alpha[1] / alpha.sum()), float(alpha.sum())
    # kinds that follow the share of ones
    share = counts.shares[:, 1]
    order = np.argsort(share, kind="stable")
    rank = (np.cumsum(counts.tasks[order]) - 0.5 * counts.tasks[order]) / len(counts)
    means = np.interp((np.arange(k) + 0.5) / k, rank, share[order])
    for size in (2.0, 8.0):
        yield _of_means(even, means, [size * weight] * k)
    # kinds with one mean, some alike within and some not
    yield _of_means(even, [mean] * k, [weight * 8.0 ** (i - 0.5 * (k - 1)) for i in range(k)])
    # a broad kind and narrow ones at the sides
    sides = [0.1, 0.9] if k > 2 else [0.9 if mean >= 0.5 else 0.1]
    yield _of_means(even, [mean, *sides], [weight] + [20.0] * (k - 1))
    yield _split(smaller, 0.25)
    rng = np.random.default_rng(seed)
    for _ in range(CHANCE_STARTS):
        at, by = rng.random(k), np.exp(rng.uniform(np.log(0.5), np.log(50.0), k))
        yield _of_means(rng.dirichlet(np.full(k, 3.0)), at, by)


def _split(smaller: Mixture, size: float) -> Mixture:
    """The heaviest component in two halves, one of them with ``size`` times its alpha and beta."""
    i = int(np.argmax(smaller.weights))
    weights, alpha = np.insert(smaller.weights, i, smaller.weights[i]), smaller.alpha
    weights[i : i + 2] /= 2.0
    return Mixture(weights, np.insert(alpha, i, size * alpha[i], axis=0))


def _of_means(weights: Floats, means: Any, sizes: Any) -> Mixture:
    m, w = np.clip(means, 0.02, 0.98), np.clip(sizes, 2.0 * LEAST_WEIGHT, 0.5 * MOST_WEIGHT)
    return Mixture(weights, np.column_stack([(1.0 - m) * w, m * w]))
