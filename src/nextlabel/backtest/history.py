"""What earlier tasks teach about new ones: a prior by the method of moments (``learn.moments``), and a threshold.

The threshold d is the cut of the shares that decides most held-out tasks as their gold says (a share equal to d counts
half); among equally good cuts the one nearest to 1/2, then the smaller.
Guarantee: none beyond the moments; 50 tasks leave d uncertain by about a tenth.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nextlabel.arrays import Floats
from nextlabel.beliefs.beta import Beta
from nextlabel.errors import InputError
from nextlabel.learn.moments import beta_of_moments
from nextlabel.simulation.replay import Recorded

HELD_OUT = 50


@dataclass(frozen=True)
class Split:
    """Tasks to learn from and tasks to try policies on, with what was learnt."""

    held_out: Recorded
    pool: Recorded
    prior: Beta
    threshold: float


def split(recorded: Recorded, held_out: int, seed: int) -> Split:
    """Hold ``held_out`` random tasks with known gold back, learn a prior and a threshold from them."""
    known = np.flatnonzero(recorded.gold >= 0)
    if not 2 <= held_out < len(known):
        raise InputError(
            f"{held_out} of {len(known)} tasks with gold are to be held out.",
            "Hold out at least two tasks, to learn a prior from, and leave at least one.",
        )
    drawn = np.random.default_rng(seed).permutation(known)
    aside = recorded.subset(np.sort(drawn[:held_out]))
    pool = recorded.subset(np.sort(drawn[held_out:]))
    return Split(aside, pool, moments_prior(aside), learnt_threshold(aside))


def moments_prior(recorded: Recorded) -> Beta:
    """Beta prior whose first two moments are those of the tasks' shares."""
    if len(recorded) < 2:
        raise InputError(
            f"{len(recorded)} held-out task is too few for a prior.", "Hold out at least two tasks, better fifty."
        )
    share = recorded.shares()
    m, v = float(share.mean()), float(share.var(ddof=1))
    if not 0.0 < m < 1.0:
        raise InputError(
            f"all labels of the {len(recorded)} held-out tasks are {int(m)}, which no Beta prior explains.",
            "Hold out more tasks.",
        )
    return beta_of_moments(m, v, float(np.mean(1.0 / recorded.counts)))


def learnt_threshold(recorded: Recorded) -> float:
    """The cut of the vote share that agrees best with gold."""
    share, gold = recorded.shares(), recorded.gold
    inside = np.unique(np.concatenate([share, [0.0, 1.0]]))
    cuts = np.unique(np.concatenate([[0.5], (inside[1:] + inside[:-1]) / 2.0]))
    right = np.array([_agreement(share, gold, cut) for cut in cuts])
    best = cuts[right >= right.max() - 1e-12]
    return float(best[np.argmin(np.abs(best - 0.5))])


def _agreement(share: Floats, gold: object, cut: float) -> float:
    return float(np.where(np.isclose(share, cut), 0.5, (share > cut) == gold).mean())
