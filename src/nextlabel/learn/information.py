"""Beta-binomial laws and their mixtures, task by task: probabilities, derivatives, standard errors.

======== ========= ========= ======================================================================
symbol   code      shape     meaning
======== ========= ========= ======================================================================
f_k      log_f     (C, k)    log probability of a ones among m labels under component k
r_k      share     (C, k)    probability that a task is of kind k, given its labels
phi      --        (P,)      v_1 ... v_{k-1}, then alpha_1, beta_1, ..., alpha_k, beta_k; P = 3k - 1
======== ========= ========= ======================================================================

    log f = log C(m, a) + sum_{r<a} log(alpha + r) + sum_{r<m-a} log(beta + r) - sum_{r<m} log(alpha + beta + r)
    score of a task          S = sum_k r_k S_k,             S_k the gradient of log v_k f_k in phi
    its Hessian              sum_k r_k (S_k S_k' + H_k) - S S'              [Lou82]

A Beta prior is a mixture of one.
Guarantee: exact derivatives (tested against differences and 50-digit arithmetic).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import gammaln

from nextlabel.arrays import Floats, Ints
from nextlabel.beliefs.beta import Beta
from nextlabel.beliefs.mixture import BetaMixture
from nextlabel.beliefs.prior import Prior
from nextlabel.learn.likelihood import likelihood, tails_of
from nextlabel.learn.walls import covariance, free_parameters


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


def log_choose(ones: Ints, labels: Ints) -> Floats:
    """log C(m, a)."""
    return np.asarray(gammaln(labels + 1.0) - gammaln(ones + 1.0) - gammaln(labels - ones + 1.0), dtype=np.float64)


def log_parts(prior: Prior, ones: Ints, labels: Ints) -> Floats:
    """(C, k) log v_k f_k."""
    mixture, zeros, most = as_mixture(prior), labels - ones, int(labels.max(initial=0))
    out = np.empty((len(ones), len(mixture.weights)))
    for i, (v, c) in enumerate(zip(mixture.weights, mixture.components, strict=True)):
        above, below, total = (_sums(np.log, x, most) for x in (c.alpha, c.beta, c.alpha + c.beta))
        out[:, i] = above[ones] + below[zeros] - total[labels] + np.log(v)
    return out + log_choose(ones, labels)[:, None]


def log_pmf(prior: Prior, ones: Ints, labels: Ints) -> Floats:
    """(C,) log probability of so many ones among so many labels."""
    return np.asarray(np.logaddexp.reduce(log_parts(prior, ones, labels), axis=1), dtype=np.float64)


def scores(prior: Prior, ones: Ints, labels: Ints) -> Floats:
    """(C, P) gradient of ``log_pmf``."""
    share, each = _complete_scores(as_mixture(prior), log_parts(prior, ones, labels), ones, labels)
    return np.asarray(np.einsum("ck,ckp->cp", share, each), dtype=np.float64)


def derivatives(prior: Prior, ones: Ints, labels: Ints, tasks: Ints) -> tuple[float, Floats, Floats]:
    """Log likelihood of all tasks, its gradient (P,) and Hessian (P, P)."""
    mixture = as_mixture(prior)
    parts = log_parts(prior, ones, labels)
    value = float(tasks @ np.logaddexp.reduce(parts, axis=1))
    share, each = _complete_scores(mixture, parts, ones, labels)
    together = np.einsum("ck,ckp->cp", share, each)
    mass = tasks[:, None] * share
    hessian = -(tasks[:, None] * together).T @ together
    k = len(mixture.weights)
    v, total = np.array(mixture.weights), mass.sum(axis=0)
    hessian[: k - 1, : k - 1] -= np.diag((total / v**2)[:-1]) + total[-1] / v[-1] ** 2
    counts = np.column_stack([labels - ones, ones])
    for i, c in enumerate(mixture.components):
        own = each[:, i]
        hessian += own.T @ (mass[:, i, None] * own)
        at = slice(k - 1 + 2 * i, k + 1 + 2 * i)
        # answers are in the order (0, 1), parameters in the order (alpha, beta)
        hessian[at, at] += likelihood(tails_of(counts, mass[:, i]), np.array([c.beta, c.alpha]))[2][::-1, ::-1]
    return value, tasks @ together, hessian


def standard_errors(prior: Prior, ones: Ints, labels: Ints, tasks: Ints) -> Floats | None:
    """(P,) from the observed information, along walls; None where the labels do not determine every parameter."""
    found = covariance(-derivatives(prior, ones, labels, tasks)[2], free_parameters(as_mixture(prior)))
    return None if found is None else np.sqrt(np.diag(found))


def influence(prior: Prior, ones: Ints, labels: Ints, expected: Floats) -> Floats:
    """(C, P) by how much, times the number of tasks, one task more moves the most likely parameters, along walls."""
    free = free_parameters(as_mixture(prior))
    S = scores(prior, ones, labels)
    inner = (expected[:, None] * (S @ free)).T @ (S @ free) / expected.sum()
    return np.asarray(S @ free @ np.linalg.pinv(inner, rcond=1e-10, hermitian=True) @ free.T, dtype=np.float64)


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
