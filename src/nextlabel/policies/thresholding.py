"""Thresholding bandits: frequentist rules for our loss, blind to the prior; each task once first.

    apt   smallest sqrt(m) abs(phat - d)                        (Locatelli, Gutzeit and Carpentier 2016)
    lsa   smallest c m (phat - d)^2 + (1/2) ln m                (Tao, Blanco, Peng and Zhou 2019)

phat = ones / labels come in; m counts the labels in flight too.
"""

from __future__ import annotations

import numpy as np

from nextlabel.arrays import Floats
from nextlabel.policies.base import ClassView, StaticPolicy

#: Score of a task that was never given out.
UNTOUCHED = 1.0


def boundary_distance(view: ClassView) -> Floats:
    """abs(phat - d), 0 where no label has come in."""
    seen = np.maximum(view.level, 1)
    return np.asarray(np.where(view.level > 0, np.abs(view.ones / seen - view.threshold), 0.0), dtype=np.float64)


def untouched_first(view: ClassView, score: Floats) -> Floats:
    """Lift tasks that were never given out above the others, whose scores are at most 0; finite, so that they tie."""
    out = score.copy()
    out[view.given == 0] = UNTOUCHED
    return out


class APT(StaticPolicy):
    """Anytime parameter-free thresholding."""

    name = "apt"
    in_flight = "counts it as labels"
    two_answers = True
    uses_prior = False
    in_reward_units = False

    def score(self, view: ClassView) -> Floats:
        """-sqrt(m) abs(phat - d)."""
        return untouched_first(view, -np.sqrt(view.given) * boundary_distance(view))


class LSA(StaticPolicy):
    """Logarithmic-sample allocation; ``c`` is to be tuned on history."""

    name = "lsa"
    in_flight = "counts it as labels"
    two_answers = True
    uses_prior = False
    in_reward_units = False

    def __init__(self, c: float = 1.0) -> None:
        self.c = c

    def score(self, view: ClassView) -> Floats:
        """-(c m (phat - d)^2 + ln(m) / 2)."""
        m = np.maximum(view.given, 1)
        return untouched_first(view, -(self.c * m * boundary_distance(view) ** 2 + 0.5 * np.log(m)))
