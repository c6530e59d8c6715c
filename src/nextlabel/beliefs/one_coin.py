"""Workers of known accuracy: the truth is a bit, each answer is right with probability q ("one coin").

====== ============= =========================================
symbol code          meaning
====== ============= =========================================
pi     probability   P(truth is 1) before any label
q      accuracy      P(an answer is the truth)
====== ============= =========================================

    P(truth = 1 | a ones, b zeros) = 1 / (1 + ((1-pi)/pi) ((1-q)/q)^(a-b)),    p = P q + (1 - P)(1 - q).

The lattice is the binary triangle with other probabilities. With q = 1 a task that got both answers cannot occur; such
nodes keep the prior. Guarantee: exact. Cost: one exponential per node.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import expit, logit

from nextlabel.arrays import Floats
from nextlabel.beliefs.prior import Prior, binary, number, shown
from nextlabel.beliefs.simplex import simplex
from nextlabel.errors import ProblemError


@dataclass(frozen=True, slots=True)
class OneCoin(Prior):
    """P(truth is 1) and the accuracy of an answer."""

    probability: float
    accuracy: float
    kind: ClassVar[str] = "one-coin"
    thresholded: ClassVar[bool] = False

    def __post_init__(self) -> None:
        pi, q = number(self.probability), number(self.accuracy)
        if not 0 <= pi <= 1:
            raise ProblemError(
                f"probability {shown(self.probability)} is outside [0, 1].", "Give P(truth is 1), e.g. 0.5."
            )
        if not 0.5 <= q <= 1:
            raise ProblemError(
                f"accuracy {shown(self.accuracy)} is outside [0.5, 1].",
                "Give the chance that one answer is right, e.g. 0.8; below 0.5 swap the answers.",
            )
        object.__setattr__(self, "probability", pi)
        object.__setattr__(self, "accuracy", q)

    def believe(self, d: float, depth: int) -> tuple[Floats, Floats]:
        """Bayes' rule at every node; ``d`` plays no part."""
        prob, truth = self.believe_all([self], np.array([d]), depth)
        return prob[0], truth[0]

    @classmethod
    def believe_all(cls, priors: Sequence[Prior], d: Floats, depth: int) -> tuple[Floats, Floats]:
        """All at once."""
        both = np.array([(p.probability, p.accuracy) for p in priors if isinstance(p, OneCoin)])
        pi, q = both[:, :1], both[:, 1:]
        _, _, counts = simplex(2, depth)
        b, a = counts[:, 0], counts[:, 1]
        with np.errstate(invalid="ignore"):  # certain answers against each other: such nodes cannot occur
            step = logit(q)
            pull = np.where(a == b, 0.0, (a - b) * np.where(q == 0.5, 0.0, step))
            positive = expit(logit(pi) + pull)
        impossible = ((q == 1.0) & (a > 0) & (b > 0)) | np.isnan(positive)
        positive = np.where(impossible, pi, positive)
        return binary(positive * q + (1.0 - positive) * (1.0 - q)), binary(positive)

    def points(self) -> tuple[Floats, Floats]:
        """theta is q or 1 - q."""
        q = self.accuracy
        return binary(np.array([1.0 - q, q])), np.array([1.0 - self.probability, self.probability])

    def describe(self) -> str:
        """Probability and accuracy."""
        return f"truth 1 with probability {self.probability:g}, answers right with {self.accuracy:g}"
