"""Whole crowds drawn from their posterior: truths and channels in turn (Gibbs), several chains, with diagnostics.

======== ========== ============ ==================================================================
symbol   code       shape        meaning
======== ========== ============ ==================================================================
A        channels   (D, W, C, C) channels of all workers, one crowd for each draw
pi       share      (D, C)       shares of the truths
p_x(A)   beliefs    (D, K, C)    P(z_x | labels, A, pi): what the labels say if that is the crowd
n_jcy    --         (W, C, C)    labels y of worker j on tasks whose truth is c
======== ========== ============ ==================================================================

    z_x | A, pi  ~  pi_c prod_labels A_j[c, y],
    A_j[c, :] | z  ~  Dirichlet(pseudo_c + n_jc),        pi | z  ~  Dirichlet(share + n)

A crowd in which two truths have changed names can be as likely, and Gibbs steps do not get there. So in every sweep an
exchange of two truths on all tasks without gold is proposed, and accepted by the ratio of the posteriors of z with
channels and shares integrated out (Metropolis).

Guarantee: the stationary law is the posterior under the prior given. Whether the chains have come near it is what
``r_hat`` (split chains, Gelman and Rubin) and ``effective`` (draws that would be worth as much if independent) tell;
``converged`` needs both to be good. Cost: C operations per label and sweep.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from nextlabel.arrays import Floats, Ints
from nextlabel.crowd.fit import CrowdLabels
from nextlabel.crowd.prior import CrowdPrior
from nextlabel.errors import InputError

#: Chains are taken to have mixed below this R-hat, with at least so many effective draws.
GOOD_R_HAT, ENOUGH = 1.05, 50.0
#: A probability that was drawn as 0 is this: no answer is impossible under a Dirichlet prior.
LEAST = 1e-300


@dataclass(frozen=True, slots=True, eq=False)
class CrowdSample:
    """Crowds drawn, chain after chain, and how well the chains agree."""

    channels: Floats
    share: Floats
    beliefs: Floats
    r_hat: float
    effective: float
    converged: bool

    def __len__(self) -> int:
        return len(self.share)


def sample_crowds(
    labels: CrowdLabels,
    gold: Ints | None = None,
    prior: CrowdPrior | None = None,
    *,
    chains: int = 4,
    draws: int = 25,
    every: int = 20,
    warm_up: int = 500,
    seed: int = 0,
) -> CrowdSample:
    """``chains`` times ``draws`` crowds, one after ``every`` sweeps; ``gold`` (K,) is the truth or -1."""
    if chains < 2 or draws < 4:
        raise InputError(f"{chains} chains of {draws} draws cannot be compared.", "Give 2 chains of 4 draws or more.")
    prior = CrowdPrior.default(labels.answers) if prior is None else prior
    gold = np.full(labels.tasks, -1, dtype=np.int64) if gold is None else gold
    found = [_run(labels, gold, prior, draws, every, warm_up, [seed, chain]) for chain in range(chains)]
    traces = np.array([one.trace for one in found])  # chain, draw, statistic
    r_hat = float(max(split_r_hat(traces[:, :, k]) for k in range(traces.shape[2])))
    effective = float(min(effective_draws(traces[:, :, k]) for k in range(traces.shape[2])))
    return CrowdSample(
        np.concatenate([one.channels for one in found]),
        np.concatenate([one.share for one in found]),
        np.concatenate([one.beliefs for one in found]),
        r_hat,
        effective,
        converged=r_hat <= GOOD_R_HAT and effective >= ENOUGH,
    )


class _Chain(NamedTuple):
    channels: Floats
    share: Floats
    beliefs: Floats
    trace: Floats


def _run(
    labels: CrowdLabels, gold: Ints, prior: CrowdPrior, draws: int, every: int, warm_up: int, seed: list[int]
) -> _Chain:
    chance = np.random.default_rng(seed)
    C = labels.answers
    known = gold >= 0
    z = np.where(known, gold, chance.integers(0, C, labels.tasks))
    channels, shares, beliefs, trace = [], [], [], []
    for sweep in range(warm_up + draws * every):
        z = _exchange(labels, z, known, prior, chance)
        counts = _counts(labels, z)
        A = _dirichlet(prior.pseudo + counts, chance)
        share = _dirichlet(prior.share + np.bincount(z, minlength=C), chance)
        law = _beliefs(labels, gold, A, share)
        drawn = (law.cumsum(axis=1) < chance.random((labels.tasks, 1))).sum(axis=1)
        z = np.where(known, gold, np.minimum(drawn, C - 1))
        if sweep >= warm_up and (sweep - warm_up) % every == every - 1:
            channels.append(A)
            shares.append(share)
            beliefs.append(law)
            right = A.diagonal(axis1=1, axis2=2).mean()
            trace.append([_log_posterior(_counts(labels, z), z, prior), right, *share[1:]])
    return _Chain(np.array(channels), np.array(shares), np.array(beliefs), np.array(trace))


def _beliefs(labels: CrowdLabels, gold: Ints, A: Floats, share: Floats) -> Floats:
    """P(z | labels, A, pi) of every task; gold tasks are certain."""
    C = labels.answers
    seen = np.log(np.maximum(A, LEAST))[labels.worker, :, labels.answer]
    log = np.stack([np.bincount(labels.task, weights=seen[:, c], minlength=labels.tasks) for c in range(C)], axis=1)
    log += np.log(np.maximum(share, LEAST))
    law = np.exp(log - log.max(axis=1, keepdims=True))
    law /= law.sum(axis=1, keepdims=True)
    return np.asarray(np.where((gold >= 0)[:, None], np.eye(C)[gold], law), dtype=np.float64)


def _exchange(labels: CrowdLabels, z: Ints, known: np.ndarray, prior: CrowdPrior, chance: np.random.Generator) -> Ints:
    """Propose every other time, by lot, that two truths change names on all tasks whose truth is not known.

    Proposed every time, an exchange that is always accepted would make the chain go round in two steps.
    """
    if chance.random() < 0.5:
        return z
    a, b = chance.choice(labels.answers, 2, replace=False)
    name = np.arange(labels.answers)
    name[[a, b]] = b, a
    other = np.where(known, z, name[z])
    before = _log_posterior(_counts(labels, z), z, prior)
    after = _log_posterior(_counts(labels, other), other, prior)
    return other if np.log(chance.random()) < after - before else z


def _counts(labels: CrowdLabels, z: Ints) -> Floats:
    C = labels.answers
    place = (labels.worker * C + z[labels.task]) * C + labels.answer
    return np.bincount(place, minlength=labels.workers * C * C).reshape(labels.workers, C, C).astype(np.float64)


def _log_posterior(counts: Floats, z: Ints, prior: CrowdPrior) -> float:
    """log P(z, labels) up to a constant, channels and shares integrated out."""
    rows = prior.pseudo + counts
    total = gammaln(rows).sum() - gammaln(rows.sum(axis=2)).sum()
    return float(total + gammaln(prior.share + np.bincount(z, minlength=len(prior.share))).sum())


def _dirichlet(weights: Floats, chance: np.random.Generator) -> Floats:
    """A Dirichlet draw for each row; weights far below 1 can make a row of zeros, which then is one corner by lot."""
    drawn = chance.standard_gamma(weights)
    total = drawn.sum(axis=-1, keepdims=True)
    corner = np.eye(weights.shape[-1])[(chance.standard_exponential(weights.shape) / weights).argmin(axis=-1)]
    return np.asarray(np.where(total > 0, drawn / np.where(total > 0, total, 1.0), corner), dtype=np.float64)


def split_r_hat(trace: Floats) -> float:
    """R-hat of (chains, draws) with each chain cut in two; 1 if nothing moves."""
    half = trace.shape[1] // 2
    parts = np.concatenate([trace[:, :half], trace[:, half : 2 * half]])
    within = float(parts.var(axis=1, ddof=1).mean())
    between = float(parts.mean(axis=1).var(ddof=1))
    scale = max(1.0, float(np.abs(parts).max())) ** 2
    if within <= 1e-24 * scale:
        return 1.0 if between <= 1e-24 * scale else np.inf
    return float(np.sqrt((half - 1) / half + between / within))


def effective_draws(trace: Floats) -> float:
    """Draws that would be worth as much if independent, by the initial positive autocorrelations."""
    n = trace.shape[1]
    centred = trace - trace.mean()
    variance = float((centred**2).mean())
    if variance <= 1e-24 * max(1.0, float(np.abs(trace).max())) ** 2:
        return float(trace.size)
    time = 1.0
    for lag in range(1, n - 1):
        rho = float((centred[:, lag:] * centred[:, :-lag]).mean()) / variance
        if rho <= 0.0:
            break
        time += 2.0 * rho
    return float(trace.size / time)
