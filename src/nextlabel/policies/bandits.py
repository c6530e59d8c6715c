"""UCB1-tuned (Auer, Cesa-Bianchi and Fischer 2002) as a labelling rule; each task once first.

    ucb1-tuned           1 - 2 abs(phat - d) + bonus:   optimism about being near the boundary
    ucb1-tuned-literal   phat + bonus:                  the label itself as the reward; chases positive tasks
    bonus = sqrt((ln N / m) min(1/4, v)),  v = phat (1 - phat) + sqrt(2 ln N / m)

N = labels given out so far, m = labels of the task, in flight counted; phat = ones / labels come in (d before any).
The paper does not say how UCB sees a task's reward: the first reading is ours, the second is kept for the record.

Thresholding bandits: frequentist rules for our loss, blind to the prior; each task once first.

    apt   smallest sqrt(m) abs(phat - d)                        (Locatelli, Gutzeit and Carpentier 2016)
    lsa   smallest c m (phat - d)^2 + (1/2) ln m                (Tao, Blanco, Peng and Zhou 2019)

phat = ones / labels come in; m counts the labels in flight too.
"""

from __future__ import annotations

import numpy as np

from nextlabel.arrays import Floats
from nextlabel.policies.base import ClassView, Policy, ScoreTables, Setting, StaticPolicy

#: Score of a task that was never given out.
UNTOUCHED = 1.0


def boundary_distance(view: ClassView) -> Floats:
    """abs(phat - d), 0 where no label has come in."""
    return np.asarray(np.abs(phat(view) - view.threshold), dtype=np.float64)


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


class UCB1Tuned(Policy):
    """Optimism about being near the boundary."""

    name = "ucb1-tuned"
    in_flight = "counts it as labels"
    two_answers = True
    uses_prior = False
    by_table = False
    in_reward_units = False

    def scores(self, setting: Setting) -> list[ScoreTables]:
        """The base of the score and phat for each node."""
        return [
            ScoreTables(np.zeros((view.flight + 1, view.nodes)), facts=np.column_stack([self.base(view), phat(view)]))
            for view in setting.views
        ]

    def base(self, view: ClassView) -> Floats:
        """1 - 2 abs(phat - d)."""
        return np.asarray(1.0 - 2.0 * np.abs(phat(view) - view.threshold), dtype=np.float64)


class UCB1TunedLiteral(UCB1Tuned):
    """The label as the reward."""

    name = "ucb1-tuned-literal"

    def base(self, view: ClassView) -> Floats:
        """phat."""
        return phat(view)


def phat(view: ClassView) -> Floats:
    """Share of ones among the labels come in, d where there is none."""
    share = view.ones / np.maximum(view.level, 1)
    return np.asarray(np.where(view.level > 0, share, view.threshold), dtype=np.float64)
