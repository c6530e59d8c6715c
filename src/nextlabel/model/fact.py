"""Tasks whose truth is a fact: one of C answers, with a probability each; what labels teach depends on who gives them.

====== ============== ========= ==================================================================
symbol code           shape     meaning
====== ============== ========= ==================================================================
pi_c   probabilities  (C,)      P(truth is c) before any label
====== ============== ========= ==================================================================

The law of the labels is not the task's own: a worker's channel says how often each answer comes if the truth is c. Such
tasks therefore need workers (``model.problem``), and have no lattice of counts.

Workers of known accuracy: the truth is a bit, each answer is right with probability q ("one coin").

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
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit, logit

from nextlabel.arrays import Floats, Ints
from nextlabel.errors import ProblemError
from nextlabel.model.prior import EPS, Prior, believe_alone, binary, flipped, number, settle, shown
from nextlabel.model.simplex import simplex

#: Probabilities may miss 1 in their sum by this much, from rounding in a file.
SUM_SLACK = 1e-6


@dataclass(frozen=True, slots=True)
class Fact(Prior):
    """``Fact(probability)`` with two answers is P(truth is 1); ``Fact.of(probabilities)`` has one for each answer."""

    probability: float | None = 0.5
    probabilities: tuple[float, ...] = ()
    kind: ClassVar[str] = "fact"
    thresholded: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.probabilities:
            law = checked_law(self.probabilities, "the probabilities of a fact")
            if len(law) == 2:
                law = (1.0 - law[1], law[1])
        else:
            p = number(self.probability)
            if not 0 <= p <= 1:
                raise ProblemError(
                    f"probability {shown(self.probability)} is outside [0, 1].", "Give P(truth is 1), e.g. 0.5."
                )
            law = (1.0 - p, p)
        settle(self, probabilities=law, probability=law[1] if len(law) == 2 else None)

    @classmethod
    def of(cls, probabilities: Any) -> Fact:
        """A fact with one probability for each answer."""
        if not isinstance(probabilities, list | tuple | np.ndarray) or len(probabilities) < 2:
            raise ProblemError(
                f"probabilities {probabilities!r} are not a list of at least two numbers.",
                "Give one for each answer, e.g. [0.2, 0.3, 0.5].",
            )
        return cls(None, tuple(float(number(p)) for p in probabilities))

    @property
    def answers(self) -> int:
        """C, the number of answers."""
        return len(self.probabilities)

    def believe(self, d: float, depth: int) -> tuple[Floats, Floats]:
        """Before the first label alone: what comes after depends on who gives it."""
        if depth > 0:
            raise ProblemError(
                "the labels of tasks with fact priors follow the workers who give them, which this cannot use.",
                'Use bound, exact, simulate or plan with [[workers]], or a prior such as kind = "one-coin".',
            )
        law = np.array([self.probabilities])
        return law.copy(), law

    def belief_error(self, depth: int) -> tuple[float, float]:
        """The probabilities are given."""
        return 0.0, 0.0

    def points(self) -> tuple[Floats, Floats]:
        """The truths: theta is not used, for workers draw the labels."""
        return np.eye(self.answers), np.array(self.probabilities)

    def describe(self) -> str:
        """The probabilities."""
        if self.probability is not None:
            return f"fact, 1 with probability {self.probability:g}"
        return f"fact with probabilities {', '.join(f'{p:g}' for p in self.probabilities)}"


def checked_law(values: Any, what: str) -> tuple[float, ...]:
    """Numbers of at least 0 that sum to 1, made to do so to the last digit, or a ProblemError that names ``what``."""
    law = [number(v) for v in values]
    shown_law = ", ".join(shown(v) for v in values)
    if not all(0.0 <= p <= 1.0 for p in law):
        raise ProblemError(f"{what} are {shown_law}, and not all lie in [0, 1].", "Give probabilities that sum to 1.")
    total = sum(law)
    if abs(total - 1.0) > SUM_SLACK:
        raise ProblemError(f"{what} are {shown_law}, which sum to {total:g}.", "Give probabilities that sum to 1.")
    return tuple(law) if abs(total - 1.0) <= 1e-12 else tuple(p / total for p in law)


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
        settle(self, probability=pi, accuracy=q)

    believe = believe_alone

    @classmethod
    def believe_all(cls, priors: Sequence[Prior], d: Floats, depth: int) -> tuple[Floats, Floats]:
        """Bayes' rule at every node; ``d`` plays no part."""
        both = np.array([(p.probability, p.accuracy) for p in priors if isinstance(p, OneCoin)])
        return coin_beliefs(both[:, 0], both[:, 1], depth)

    def symmetry(self, d: float, counts: Ints) -> Floats | None:
        """The mirror image, where both truths are equally likely."""
        return flipped(counts) if self.probability == 0.5 else None

    def belief_error(self, depth: int) -> tuple[float, float]:
        """Rounding of the log-odds, which are at most 40 for each number that is neither 0 nor 1."""
        return EPS * (8.0 + 80.0 * (1 + depth)), 0.0

    def points(self) -> tuple[Floats, Floats]:
        """theta is q or 1 - q."""
        q = self.accuracy
        return binary(np.array([1.0 - q, q])), np.array([1.0 - self.probability, self.probability])

    def describe(self) -> str:
        """Probability and accuracy."""
        return f"truth 1 with probability {self.probability:g}, answers right with {self.accuracy:g}"


def coin_beliefs(probability: Floats, accuracy: Floats, depth: int) -> tuple[Floats, Floats]:
    """Answer and truth probabilities (B, N, 2) of B priors at once."""
    pi, q = probability[:, None], accuracy[:, None]
    _, _, counts = simplex(2, depth)
    b, a = counts[:, 0], counts[:, 1]
    with np.errstate(invalid="ignore"):  # certain answers against each other: such nodes cannot occur
        step = logit(q)
        pull = np.where(a == b, 0.0, (a - b) * np.where(q == 0.5, 0.0, step))
        odds = logit(pi) + pull
    impossible = ((q == 1.0) & (a > 0) & (b > 0)) | np.isnan(odds)
    # Both truths by their own formula: 1 - P would leave few digits of a truth that is nearly excluded.
    one = np.where(impossible, pi, expit(odds))
    zero = np.where(impossible, 1.0 - pi, expit(-odds))
    prob = np.stack([zero * q + one * (1.0 - q), one * q + zero * (1.0 - q)], axis=-1)
    return prob, np.stack([zero, one], axis=-1)
