"""A mixture of Beta priors: tasks of several kinds that cannot be told apart beforehand.

    theta ~ sum_k v_k Beta(alpha_k, beta_k)
    v_k(a, b) ~ v_k B(alpha_k + a, beta_k + b) / B(alpha_k, beta_k)        (posterior weights, normalised)
    p = sum_k v_k(a, b) p_k,      I = sum_k v_k(a, b) I_k.

Guarantee: as ``beta``; the weights are normalised in logarithms. Cost: that of its components.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import betaln, softmax

from nextlabel.arrays import Floats, Ints
from nextlabel.beliefs.beta import Beta, beta_beliefs
from nextlabel.beliefs.prior import EPS, Prior, flipped, number, shares
from nextlabel.beliefs.simplex import simplex
from nextlabel.errors import ProblemError


@dataclass(frozen=True, slots=True)
class BetaMixture(Prior):
    """Weights (made to sum to 1) and Beta components."""

    weights: tuple[float, ...]
    components: tuple[Beta, ...]
    kind: ClassVar[str] = "mixture"

    def __post_init__(self) -> None:
        weights = np.array([number(v) for v in self.weights])
        fits = len(weights) == len(self.components) > 0
        if not fits or not np.isfinite(weights).all() or weights.min() < 0 or not weights.max() > 0:
            raise ProblemError(
                f"mixture weights {list(self.weights)!r} do not fit {len(self.components)} components.",
                "Give one weight of at least 0 for each Beta, e.g. weights = [0.7, 0.3], betas = [[8, 2], [1, 1]].",
            )
        kept = [(float(v), part) for v, part in zip(shares(weights), self.components, strict=True) if v > 0]
        object.__setattr__(self, "weights", tuple(v for v, _ in kept))
        object.__setattr__(self, "components", tuple(part for _, part in kept))

    def believe(self, d: float, depth: int) -> tuple[Floats, Floats]:
        """Components' beliefs, averaged with the posterior weights."""
        alpha = np.array([c.alpha for c in self.components])
        beta = np.array([c.beta for c in self.components])
        prob, truth = beta_beliefs(alpha, beta, np.full(len(alpha), d), depth)
        _, _, counts = simplex(2, depth)
        b, a = counts[:, 0], counts[:, 1]
        log_v = np.log(self.weights)[:, None] - betaln(alpha, beta)[:, None]
        v = softmax(log_v + betaln(alpha[:, None] + a, beta[:, None] + b), axis=0)[:, :, None]
        return (v * prob).sum(axis=0), (v * truth).sum(axis=0)

    def above(self, d: float, labels: Ints, ones: Ints) -> Floats:
        """P(theta > d) after ``ones`` among ``labels``: the components', averaged with the posterior weights."""
        zeros = labels - ones
        log_v = [
            np.log(v) + betaln(c.alpha + ones, c.beta + zeros) - betaln(c.alpha, c.beta)
            for v, c in zip(self.weights, self.components, strict=True)
        ]
        parts = [c.above(d, labels, ones) for c in self.components]
        return np.asarray((softmax(np.stack(log_v), axis=0) * np.stack(parts)).sum(axis=0), dtype=np.float64)

    def symmetry(self, d: float, counts: Ints) -> Floats | None:
        """The mirror image of a mixture that is its own."""
        parts = [(v, c.alpha, c.beta) for v, c in zip(self.weights, self.components, strict=True)]
        mirrored = sorted(parts) == sorted((v, beta, alpha) for v, alpha, beta in parts)
        return flipped(counts) if d == 0.5 and mirrored else None

    def belief_error(self, depth: int) -> tuple[float, float]:
        """That of the components and of the logarithms of their weights."""
        largest = max(c.alpha + c.beta for c in self.components) + depth
        return 4e-14 + 8.0 * EPS * largest * (1.0 + float(np.log1p(largest))), 0.0

    def points(self) -> tuple[Floats, Floats]:
        """The points of all components."""
        parts = [c.points() for c in self.components]
        theta = np.concatenate([theta for theta, _ in parts])
        return theta, np.concatenate([v * w for v, (_, w) in zip(self.weights, parts, strict=True)])

    def describe(self) -> str:
        """Weights and components."""
        return " + ".join(f"{v:.3g} {c.describe()}" for v, c in zip(self.weights, self.components, strict=True))
