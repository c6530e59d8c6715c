"""The share of ones above which a task is a 1: one half, unless gold clearly says otherwise.

======== ============ ==================================================================
symbol   code         meaning
======== ============ ==================================================================
s_x      share        share of ones among the recorded labels of task x
d        cut          a task is a 1 if s_x > d; a share equal to d counts half
n+, n-   --           gold tasks on which a cut does better than one half, and worse
======== ============ ==================================================================

The best cut decides most gold tasks right; among equally good cuts it is the one nearest to 1/2. It replaces 1/2 only
if an exact sign test on the tasks that the two decide differently,

    p = cuts looked at * P(Binomial(n+ + n-, 1/2) >= n+),

is below ``CLEAR``: the best of many cuts of few tasks is usually luck, and a wrong threshold costs more than it wins.
Guarantee: if 1/2 is right, another cut is taken in at most a share CLEAR of the samples of gold tasks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import binom

from nextlabel.arrays import Floats
from nextlabel.simulation.replay import Recorded

#: A cut replaces one half if chance would do as well as seldom as this.
CLEAR = 0.05


@dataclass(frozen=True, slots=True)
class ThresholdChoice:
    """The threshold to use, the best cut in hindsight, and the tasks that each decides right."""

    threshold: float
    best: float
    right_at_half: float
    right_at_best: float
    tasks: int
    p_value: float

    def words(self) -> str:
        """Where the threshold is from."""
        counts = f"it decides {self.right_at_best:g} of {self.tasks} right, 1/2 decides {self.right_at_half:g}"
        if self.best == 0.5:
            return "no other cut decides more of the pilot's gold tasks right"
        if self.threshold != 0.5:
            return f"learnt from the pilot's gold: {counts}"
        return f"the pilot's gold does not clearly say otherwise: its best cut is {self.best:.3g}, and {counts}"


def choose_threshold(recorded: Recorded) -> ThresholdChoice:
    """One half, or the best cut of the vote share if gold clearly prefers it; every task must have gold."""
    share, gold = recorded.shares(), recorded.gold
    candidates = cuts(share)
    right = np.array([credit(share, gold, cut).sum() for cut in candidates])
    best = candidates[right >= right.max() - 1e-9]
    cut = float(best[np.argmin(np.abs(best - 0.5))])
    at_half, at_best = credit(share, gold, 0.5), credit(share, gold, cut)
    wins, losses = int((at_best > at_half).sum()), int((at_best < at_half).sum())
    p = min(1.0, (len(candidates) - 1) * float(binom.sf(wins - 1, wins + losses, 0.5)))
    threshold = cut if wins > 0 and p < CLEAR else 0.5
    return ThresholdChoice(threshold, cut, float(at_half.sum()), float(at_best.sum()), len(share), p)


def learnt_threshold(recorded: Recorded) -> float:
    """The cut of the vote share that agrees best with gold, whether that is luck or not."""
    return choose_threshold(recorded).best


def cuts(share: Floats) -> Floats:
    """One half and a cut between any two neighbouring shares."""
    inside = np.unique(np.concatenate([share, [0.0, 1.0]]))
    return np.asarray(np.unique(np.concatenate([[0.5], (inside[1:] + inside[:-1]) / 2.0])), dtype=np.float64)


def credit(share: Floats, gold: object, cut: float) -> Floats:
    """What each task is worth that is decided by this cut: 1, 0, or a half on the cut."""
    return np.asarray(np.where(np.isclose(share, cut), 0.5, (share > cut) == gold), dtype=np.float64)
