"""Random priors and rewards of every kind, for the tests against oracles."""

from __future__ import annotations

import numpy as np

import nextlabel as nl
from nextlabel.model.rewards import Reward

KINDS = ("beta", "mixture", "histogram", "logit-normal", "one-coin", "dirichlet")
REWARDS = ("accuracy", "utility", "abstain", "squared-error")


def random_prior(rng: np.random.Generator, kind: str | None = None) -> tuple[nl.priors.Prior, float]:
    """A prior of any kind, its parameters over several orders, and a threshold."""
    kind = kind or str(rng.choice(KINDS))
    d = float(rng.choice([0.5, rng.uniform(0.05, 0.95)]))
    if kind == "beta":
        return nl.Beta(*_near(rng, 2, 10.0 ** rng.uniform(-0.5, 2.5))), d
    if kind == "mixture":
        parts = tuple(nl.Beta(*_near(rng, 2, 10.0 ** rng.uniform(-0.5, 2.5))) for _ in range(int(rng.integers(2, 4))))
        return nl.priors.BetaMixture(tuple(10.0 ** rng.uniform(-6, 0, len(parts))), parts), d
    if kind == "histogram":
        inner = np.sort(rng.uniform(0, 1, int(rng.integers(1, 5))))
        weights = 10.0 ** rng.uniform(-6, 0, len(inner) + 1)
        return nl.priors.Histogram((0.0, *inner.tolist(), 1.0), tuple(weights.tolist())), d
    if kind == "logit-normal":
        return nl.priors.LogitNormal(float(rng.normal()), float(10.0 ** rng.uniform(-1.5, 0.5))), d
    if kind == "one-coin":
        return nl.priors.OneCoin(
            float(rng.choice([0.5, 10.0 ** rng.uniform(-9, 0)])), float(rng.uniform(0.5, 1.0))
        ), 0.5
    size = 10.0 ** rng.uniform(-0.5, 2.5)
    return nl.priors.Dirichlet(_near(rng, int(rng.integers(3, 5)), size)), 0.5


def _near(rng: np.random.Generator, count: int, size: float) -> tuple[float, ...]:
    """Weights about ``size`` that are a few standard deviations apart, so that the truth is open."""
    return tuple(float(max(0.2, size + rng.normal() * size**0.5 * rng.choice([0.3, 1, 3]))) for _ in range(count))


def random_reward(rng: np.random.Generator, prior: nl.priors.Prior, kind: str | None = None) -> Reward:
    """Accuracy, utility with or without abstention, or squared error."""
    kind = kind or str(rng.choice(REWARDS))
    if kind == "accuracy":
        return nl.rewards.Accuracy(float(10.0 ** rng.uniform(-3, 3)))
    if kind == "squared-error":
        return nl.rewards.SquaredError(float(10.0 ** rng.uniform(-3, 3)))
    J = prior.answers
    gains = rng.uniform(0.0, 1.0, (J, J)) * -(10.0 ** rng.uniform(0, 4, (J, J)))
    np.fill_diagonal(gains, rng.uniform(0.5, 2.0, J))
    rows = tuple(tuple(float(x) for x in row) for row in gains)
    return nl.rewards.Utility(rows, float(-rng.uniform(0, 1)) if kind == "abstain" else None)
