"""What counting rules are told about tasks beforehand: a prior, and the threshold that gold clearly asks for.

Either ``size`` random tasks are set aside and taught from, or, without a pilot, the prior is that of all labels to be
replayed, which favours the rules that use it. A prior that is given needs neither.

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
from scipy.special import bdtrc

from nextlabel.arrays import Floats, Ints
from nextlabel.errors import one_of, refuse
from nextlabel.model.prior import Prior
from nextlabel.model.prior_learning import learn_prior
from nextlabel.model.prior_weights import LabelCounts
from nextlabel.simulation.crowd_replay import votes_of
from nextlabel.simulation.replay import CrowdRecord
from nextlabel.wording import counted

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


def choose_threshold(recorded: CrowdRecord) -> ThresholdChoice:
    """One half, or the best cut of the vote share if gold clearly prefers it; every task must have gold."""
    share, gold = recorded.shares(), recorded.gold
    candidates = cuts(share)
    right = np.array([credit(share, gold, cut).sum() for cut in candidates])
    best = candidates[right >= right.max() - 1e-9]
    cut = float(best[np.argmin(np.abs(best - 0.5))])
    at_half, at_best = credit(share, gold, 0.5), credit(share, gold, cut)
    wins, losses = int((at_best > at_half).sum()), int((at_best < at_half).sum())
    p = min(1.0, (len(candidates) - 1) * float(bdtrc(wins - 1, wins + losses, 0.5)))
    threshold = cut if wins > 0 and p < CLEAR else 0.5
    return ThresholdChoice(threshold, cut, float(at_half.sum()), float(at_best.sum()), len(share), p)


def cuts(share: Floats) -> Floats:
    """One half and a cut between any two neighbouring shares."""
    inside = np.unique(np.concatenate([share, [0.0, 1.0]]))
    return np.asarray(np.unique(np.concatenate([[0.5], (inside[1:] + inside[:-1]) / 2.0])), dtype=np.float64)


def credit(share: Floats, gold: object, cut: float) -> Floats:
    """What each task is worth that is decided by this cut: 1, 0, or a half on the cut."""
    return np.asarray(np.where(np.isclose(share, cut), 0.5, (share > cut) == gold), dtype=np.float64)


WORDS = {
    "moments": "by the method of moments",
    "ml": "by maximum likelihood",
    "mixture": "as a mixture by maximum likelihood",
}


@dataclass(frozen=True, slots=True, eq=False)
class PilotFit:
    """What was learnt from ``size`` tasks, and the rows of the others; ``note``: what the labels left open.

    ``best_cut`` is the cut of the vote share that agrees best with the pilot's gold, clearly or not.
    """

    size: int
    rest: Ints
    prior: Prior
    prior_from: str
    threshold: float
    threshold_from: str
    note: str = ""
    best_cut: float = 0.5


def hold_out(
    recorded: CrowdRecord, size: int, prior: Prior | None, threshold: float | None, method: str, seed: int
) -> PilotFit:
    """Set ``size`` random tasks aside, of those with gold if there are any; none if the prior is given.

    With size 0 the prior is that of all labels to be replayed.
    """
    N = len(recorded.gold)
    d = 0.5 if threshold is None else threshold
    refuse((not 0.0 < d < 1.0, f"threshold {d:g} is outside (0, 1).", "Give a number between 0 and 1, e.g. 0.5."))
    source, best = "not learnt" if threshold is None else "given", 0.5
    if prior is not None:
        return PilotFit(0, np.arange(N), prior, "given", d, source)
    one_of("method", method, WORDS)
    with_gold = bool((recorded.gold >= 0).any())
    able = np.flatnonzero(recorded.gold >= 0) if with_gold else np.arange(N)
    there = f"{counted(len(able), 'task')}{' with gold' * with_gold} {'is' if len(able) == 1 else 'are'} there"
    refuse((
        size != 0 and not 2 <= size < len(able),
        f"{counted(size, 'task')} {'is' if size == 1 else 'are'} to be held out for the prior, and {there}.",
        "Give --pilot-tasks N of at least 2 that leaves tasks to replay, or a prior with --prior A,B.",
    ))  # fmt: skip
    drawn = np.sort(np.random.default_rng(seed).permutation(able)[:size])
    aside = recorded.subset(drawn) if size else recorded
    learnt = learn_prior(LabelCounts.of_counts(votes_of(aside.labels)), method, seed=seed, draws=0)
    if with_gold and size:
        choice = choose_threshold(aside)
        best = choice.best
        if threshold is None:
            d, source = choice.threshold, choice.words()
    favours = "" if size else " from all labels, which favours the rules that use it"
    rest = np.setdiff1d(np.arange(N), drawn)
    return PilotFit(size, rest, learnt.prior, f"learnt {WORDS[method]}{favours}", d, source, learnt.note, best)
