"""What is believed about a task before its first label, and what every kind of prior must be able to say.

========== ========= ========= ===========================================================
symbol     code      shape     meaning
========== ========= ========= ===========================================================
p_j        prob      (N, J)    predictive probability of answer j
P_q        truth     (N, J)    posterior probability that the truth is q
d          d         --        threshold: with binary labels the truth is 1{theta > d}
========== ========= ========= ===========================================================

Labels of one task are exchangeable, so that a belief is a vector of counts and all priors live on the lattice of
``simplex``; P_q is a martingale. A reward (``rewards``) then turns P or p into what the solvers see.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from math import inf, isinf, isnan, nan
from numbers import Real
from typing import ClassVar

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.errors import ProblemError


class Prior(ABC):
    """A law of the labels and the truth of one task. Priors are frozen and hashable."""

    #: Its name in problem files.
    kind: ClassVar[str]
    #: Whether the truth depends on a threshold.
    thresholded: ClassVar[bool] = True

    @property
    def answers(self) -> int:
        """J, the number of answers (and of truths)."""
        return 2

    @abstractmethod
    def believe(self, d: float, depth: int) -> tuple[Floats, Floats]:
        """``prob`` and ``truth`` of every node up to level ``depth``."""

    @classmethod
    def believe_all(cls, priors: Sequence[Prior], d: Floats, depth: int) -> tuple[Floats, Floats]:
        """``prob`` and ``truth`` (B, N, J) of several priors of this kind."""
        each = [prior.believe(float(x), depth) for prior, x in zip(priors, d, strict=True)]
        return np.stack([prob for prob, _ in each]), np.stack([truth for _, truth in each])

    def symmetry(self, d: float, counts: Ints) -> Floats | None:
        """(N, any) rows that are equal for beliefs (rows of ``counts``) with the same future in law, or None.

        Two beliefs are alike when exchanging answers, and truths with them, turns one into the other. This must follow
        from the parameters, not from numbers that happen to be close.
        """
        return None

    @abstractmethod
    def belief_error(self, depth: int) -> tuple[float, float]:
        """How far ``prob`` and ``truth`` may be off with up to ``depth`` labels: relatively, and absolutely on top."""

    def chance_error(self, depth: int) -> float:
        """How far ``prob`` alone may be off, relatively: for rewards that do not ask for the truth."""
        return sum(self.belief_error(depth))

    def above(self, d: float, labels: Ints, ones: Ints) -> Floats:
        """P(truth is 1) after ``ones`` among ``labels``, of a prior with two answers."""
        _, truth = self.believe(d, int(np.max(labels, initial=0)))
        return np.asarray(truth[labels * (labels + 1) // 2 + ones, 1], dtype=np.float64)

    @abstractmethod
    def points(self) -> tuple[Floats, Floats]:
        """theta (G, J) and weights (G,): a discrete law close to the prior's, for draws of theta."""

    @abstractmethod
    def describe(self) -> str:
        """A few words, e.g. ``Beta(1, 1)``."""


def believe_alone(prior: Prior, d: float, depth: int) -> tuple[Floats, Floats]:
    """``believe`` of a kind that has ``believe_all``."""
    prob, truth = prior.believe_all([prior], np.array([d]), depth)
    return prob[0], truth[0]


def settle(frozen: object, **fields: object) -> None:
    """Give fields of a frozen object their checked values."""
    for name, value in fields.items():
        object.__setattr__(frozen, name, value)


def number(value: object) -> float:
    """``value`` as a float, nan if it is none."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return nan
    try:
        return float(value)
    except OverflowError:
        return inf


def shown(value: object) -> str:
    """``value`` as it should appear in a message."""
    x = number(value)
    return repr(value) if isnan(x) else f"{x:g}"


def positive(name: str, value: object, hint: str, *, infinite: bool = False) -> float:
    """``value`` as a positive float, or a ProblemError."""
    x = number(value)
    if not x > 0 or (isinf(x) and not infinite):
        raise ProblemError(f"{name} is {shown(value)}, which is not a positive number.", hint)
    return x


def binary(one: Floats) -> Floats:
    """(..., 2) probabilities of 0 and 1 from those of 1."""
    return np.stack([1.0 - one, one], axis=-1)


#: The distance from 1 to the next number.
EPS = float(np.finfo(np.float64).eps)


def flipped(counts: Ints) -> Floats:
    """What beliefs have in common that only differ by the names of the answers."""
    return np.sort(counts, axis=1).astype(np.float64)


def shares(weights: Floats) -> Floats:
    """Weights that sum to 1; those that do already, up to rounding, are left as they are."""
    if abs(float(weights.sum()) - 1.0) <= 1e-12:
        return weights
    weights = weights / weights.max()  # so that the sum cannot overflow
    return np.asarray(weights / weights.sum(), dtype=np.float64)
