"""Priors given by a density on theta: histograms and the logit-normal, by quadrature.

========== ========= ============ ==========================================================
symbol     code      shape        meaning
========== ========= ============ ==========================================================
theta_g    theta     (G,)         quadrature points, none at d, refined with the labels
u_g        log_u     (G,)         log of (quadrature weight times density)
Z          log_z     (N,)         E[theta^a (1-theta)^b]
========== ========= ============ ==========================================================

    Z(a, b) = Z(a+1, b) + Z(a, b+1),    p = Z(a+1, b) / Z(a, b),    I = p I(a+1, b) + (1-p) I(a, b+1),

so that only the last level is summed over the points, in logarithms; going up adds positive numbers only.
Guarantee: a histogram is exact up to rounding (a Gauss rule of enough points for the polynomial); the logit-normal has
probabilities above 1e-18 with a relative error under 1e-12 for up to hundreds of labels (tested against 50 digits).
Cost: (D + 1) G exponentials.
"""

from __future__ import annotations

import itertools
from abc import abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
from scipy.special import expit, log_expit, logit, logsumexp

from nextlabel.arrays import Floats, Ints
from nextlabel.errors import ProblemError
from nextlabel.model.prior import EPS, Prior, binary, flipped, number, settle, shares, shown
from nextlabel.model.simplex import simplex

#: Labels for which ``points`` is fine enough.
POINTS_DEPTH = 64


class DensityPrior(Prior):
    """A prior with quadrature points."""

    #: Probability past the ends of the quadrature.
    left_out: ClassVar[float]

    @abstractmethod
    def grid(self, d: float, depth: int) -> tuple[Floats, Floats, Floats]:
        """log theta, log(1 - theta) and log_u of points fine enough for ``depth`` labels and split at d."""

    def believe(self, d: float, depth: int) -> tuple[Floats, Floats]:
        """Sums over the points on the last level, convex combinations above it."""
        first, _, _ = simplex(2, depth)
        log_p, log_q, log_u = self.grid(d, depth + 1)
        above = log_p > np.log(d)
        a = np.arange(depth + 2)[:, None]
        last = log_u + a * log_p + (depth + 1 - a) * log_q
        log_z = logsumexp(last, axis=1)
        sides = [np.exp(logsumexp(last[:, s], axis=1) - log_z) if s.any() else 0.0 * log_z for s in (~above, above)]
        of_truth = np.stack(sides, axis=-1)  # each side summed by itself, so that a small one keeps its digits
        prob, truth = np.empty((2, int(first[-1]), 2))
        for m in range(depth, -1, -1):
            up = np.logaddexp(log_z[1:], log_z[:-1])
            here = slice(int(first[m]), int(first[m + 1]))
            prob[here, 0], prob[here, 1] = np.exp(log_z[:-1] - up), np.exp(log_z[1:] - up)
            of_truth = prob[here, 1:] * of_truth[1:] + prob[here, :1] * of_truth[:-1]
            small = of_truth.min(axis=1, keepdims=True)
            truth[here] = np.where(of_truth == small, small, 1.0 - small)
            log_z = up
        return prob, truth

    def belief_error(self, depth: int) -> tuple[float, float]:
        """Rounding of the logarithms, and what the quadrature leaves out."""
        return 1e-12 + 40.0 * EPS * depth, self.left_out

    def points(self) -> tuple[Floats, Floats]:
        """The quadrature points."""
        log_p, _, log_u = self.grid(0.5, POINTS_DEPTH)
        weight = np.exp(log_u - logsumexp(log_u))
        return binary(np.exp(log_p)), weight


@dataclass(frozen=True, slots=True)
class Histogram(DensityPrior):
    """theta in bin k, between edges k and k + 1, with probability ``weights[k]``, evenly within the bin."""

    edges: tuple[float, ...]
    weights: tuple[float, ...]
    kind: ClassVar[str] = "histogram"
    left_out: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        edges = np.array([number(x) for x in self.edges])
        weights = np.array([number(x) for x in self.weights])
        rising = len(edges) >= 2 and bool((np.diff(edges) > 0).all()) and edges[0] >= 0 and edges[-1] <= 1
        if not rising:
            raise ProblemError(
                f"histogram edges {list(self.edges)!r} do not rise from 0 to 1.", "Give e.g. edges = [0, 0.5, 0.8, 1]."
            )
        if len(weights) != len(edges) - 1 or not (np.isfinite(weights).all() and weights.min() >= 0 < weights.max()):
            raise ProblemError(
                f"histogram weights {list(self.weights)!r} do not fit {len(edges) - 1} bins.",
                "Give one weight of at least 0 for each bin.",
            )
        settle(self, edges=tuple(edges.tolist()), weights=tuple(shares(weights).tolist()))

    def grid(self, d: float, depth: int) -> tuple[Floats, Floats, Floats]:
        """A Gauss rule in each bin, or in both its halves if d is inside."""
        at, by = gauss(depth // 2 + 1)
        theta, log_u = [], []
        for low, high, weight in zip(self.edges[:-1], self.edges[1:], self.weights, strict=True):
            if weight == 0.0:
                continue
            cuts = [low, d, high] if low < d < high else [low, high]
            for lo, hi in itertools.pairwise(cuts):
                theta.append(lo + 0.5 * (hi - lo) * (1.0 + at))
                log_u.append(np.log(weight / (high - low) * 0.5 * (hi - lo) * by))
        x = np.concatenate(theta)
        return np.log(x), np.log1p(-x), np.concatenate(log_u)

    def symmetry(self, d: float, counts: Ints) -> Floats | None:
        """The mirror image of a histogram that is its own."""
        mirrored = self.weights == self.weights[::-1] and all(
            low == 1.0 - high for low, high in zip(self.edges, reversed(self.edges), strict=True)
        )
        return flipped(counts) if d == 0.5 and mirrored else None

    def describe(self) -> str:
        """Number of bins."""
        return f"histogram of {len(self.weights)} bins"


@dataclass(frozen=True, slots=True)
class LogitNormal(DensityPrior):
    """log(theta / (1 - theta)) ~ Normal(mean, sd)."""

    mean: float
    sd: float
    kind: ClassVar[str] = "logit-normal"
    left_out: ClassVar[float] = 1e-18

    def __post_init__(self) -> None:
        mean, sd = number(self.mean), number(self.sd)
        if not (abs(mean) <= 50 and 1e-3 <= sd <= 50):
            raise ProblemError(
                f"logit-normal prior with mean {shown(self.mean)} and sd {shown(self.sd)} is out of range.",
                "Give a mean from -50 to 50 and an sd from 0.001 to 50.",
            )
        settle(self, mean=mean, sd=sd)

    def grid(self, d: float, depth: int) -> tuple[Floats, Floats, Floats]:
        """Panels in z = logit(theta): as wide as the prior reaches and labels can pull it, fine as labels can tell."""
        reach = 9.5 * self.sd + min(self.sd**2 * depth, 40.0)
        width = min(self.sd, 2.0 / np.sqrt(depth + 1.0))
        at, by = gauss(10)
        cut = float(np.clip(logit(d), self.mean - reach, self.mean + reach))
        z_parts, by_parts = [], []
        for lo, hi in ((self.mean - reach, cut), (cut, self.mean + reach)):
            if hi <= lo:
                continue
            ends = np.linspace(lo, hi, int(np.ceil((hi - lo) / width)) + 1)
            half = 0.5 * np.diff(ends)[:, None]
            z_parts.append((ends[:-1, None] + half * (1.0 + at)).ravel())
            by_parts.append((half * by).ravel())
        z, weight = np.concatenate(z_parts), np.concatenate(by_parts)
        log_u = np.log(weight) - 0.5 * ((z - self.mean) / self.sd) ** 2 - np.log(self.sd * np.sqrt(2.0 * np.pi))
        return log_expit(z), log_expit(-z), log_u

    def symmetry(self, d: float, counts: Ints) -> Floats | None:
        """The mirror image, where the median is 1/2."""
        return flipped(counts) if d == 0.5 and self.mean == 0.0 else None

    def describe(self) -> str:
        """Mean and sd of the logit."""
        return f"logit-normal({self.mean:g}, {self.sd:g}), median {expit(self.mean):.3g}"


@lru_cache(maxsize=32)
def gauss(points: int) -> tuple[Floats, Floats]:
    """Gauss-Legendre points and weights on [-1, 1]."""
    at, by = np.polynomial.legendre.leggauss(points)
    return at, by
