"""The prior that a model's score stands for."""

from __future__ import annotations

from nextlabel.beliefs.beta import Beta
from nextlabel.beliefs.one_coin import OneCoin
from nextlabel.beliefs.prior import Prior, number, shown
from nextlabel.errors import ProblemError


def prior_of_score(p: float, strength: float | None, accuracy: float | None) -> Prior:
    """That of a task whose answer is 1 with probability p by a model; either strength or accuracy is given."""
    return OneCoin(p, accuracy) if accuracy is not None else beta_of_score(p, strength)


def beta_of_score(probability: object, strength: object) -> Beta:
    """A model's probability that the answer is 1, as sure as ``strength`` labels."""
    p, s = number(probability), number(strength)
    if not 0 < p < 1:
        raise ProblemError(f"score {shown(probability)} is outside (0, 1).", "Give a probability such as 0.7.")
    return Beta(checked_strength(strength) * p, s * (1.0 - p))


def checked_strength(strength: object) -> float:
    """How many labels a score is worth."""
    s = number(strength)
    if not 0 < s < 1e9:
        raise ProblemError(
            f"strength {shown(strength)} is not a positive number.", "Give the labels that a score is worth, e.g. 4."
        )
    return s
