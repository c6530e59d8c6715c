"""Beta prior on theta, the chance that a worker answers 1; the truth is 1{theta > d}.

====== ======== ========================================
symbol code     meaning
====== ======== ========================================
alpha0 alpha    prior weight of answer 1
beta0  beta     prior weight of answer 0
d      d        threshold of the truth
I      positive P(theta > d | a ones, b zeros)
====== ======== ========================================

p(a, b) = (alpha + a) / (alpha + beta + a + b), R(a, b) = max(I, 1 - I).

I is a martingale, I(a,b) = p I(a+1,b) + (1-p) I(a,b+1), so only the last level calls the incomplete beta function and
every level above it is a convex combination of the one below: the error never grows, however many labels.
Guarantee: absolute error of R under 1e-13 with hundreds of labels (tested against 50-digit arithmetic).
Cost: D + 1 incomplete beta functions (two, and D additions, when there are many priors) and D^2/2 multiply-adds.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isnan, nan
from numbers import Real

import numpy as np
from scipy.special import betainc, gammaln

from nextlabel.arrays import Floats
from nextlabel.beliefs.lattice import Lattice, triangle
from nextlabel.errors import ProblemError
from nextlabel.kernels.triangle import fill_triangles, sum_last_level

#: Prior weights beyond this leave labels without effect.
LARGEST_WEIGHT = 1e9
#: Fewer priors than this are not worth the sums, and smaller first terms than exp of this would underflow.
FEW = 8
LEAST_LOG = -600.0


def _number(value: object) -> float:
    """``value`` as a float, nan if it is none."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return nan
    try:
        return float(value)
    except OverflowError:
        return inf


def _shown(value: object) -> str:
    number = _number(value)
    return repr(value) if isnan(number) else f"{number:g}"


@dataclass(frozen=True, slots=True)
class Beta:
    """Beta(alpha, beta) prior."""

    alpha: float
    beta: float

    def __post_init__(self) -> None:
        for name in ("alpha", "beta"):
            value = _number(getattr(self, name))
            if not 0 < value < LARGEST_WEIGHT:
                raise ProblemError(
                    f"prior {_shown(self.alpha)},{_shown(self.beta)} is not a Beta prior.",
                    f"Give two positive numbers below {LARGEST_WEIGHT:g}, e.g. --prior 1,1.",
                )
            object.__setattr__(self, name, value)

    def lattice(self, d: float, depth: int) -> Lattice:
        """The belief triangle of ``depth`` labels for threshold ``d``."""
        reward, prob = beta_triangles(np.array([self.alpha]), np.array([self.beta]), np.array([d]), depth)
        first, child = triangle(depth)
        return Lattice(first, reward[0], np.ones(reward.shape[1]), prob[0], child)


def beta_triangles(alpha: Floats, beta: Floats, d: Floats, depth: int) -> tuple[Floats, Floats]:
    """Rewards (B, N) and answer probabilities (B, N, 2) of B Beta priors at once."""
    first, _ = triangle(depth)
    classes, nodes = len(alpha), int(first[-1])
    prob = np.empty((classes, nodes, 2))
    reward = np.empty((classes, nodes))
    above = _last_level(alpha, beta, d, depth)
    fill_triangles(alpha, beta, first, above, reward, prob)
    return reward, prob


def _last_level(alpha: Floats, beta: Floats, d: Floats, depth: int) -> Floats:
    """P(theta > d) for a = 0 .. depth ones among ``depth`` labels, (B, depth + 1).

    For many priors two incomplete beta functions each, and between them sums of positive terms,
    I(a+1, b-1) = I(a, b) + d^(alpha+a) (1-d)^(beta+b-1) Gamma(alpha+beta+depth) / (Gamma(alpha+a+1) Gamma(beta+b)).
    """
    first_term = (
        alpha * np.log(d)
        + (beta + depth - 1) * np.log1p(-d)
        + gammaln(alpha + beta + depth)
        - gammaln(alpha + 1)
        - gammaln(beta + depth)
    )
    # P(theta > d) by the flipped law: SciPy's complement of the same function is ten times slower.
    if len(alpha) < FEW or depth < 2 or first_term.min() < LEAST_LOG:
        a = np.arange(depth + 1, dtype=np.float64)
        return np.asarray(betainc(beta[:, None] + depth - a, alpha[:, None] + a, 1.0 - d[:, None]), dtype=np.float64)
    above = np.empty((len(alpha), depth + 1))
    above[:, 0] = betainc(beta + depth, alpha, 1.0 - d)
    above[:, -1] = betainc(beta, alpha + depth, 1.0 - d)
    sum_last_level(alpha, beta, d, np.exp(first_term), above)
    return above
