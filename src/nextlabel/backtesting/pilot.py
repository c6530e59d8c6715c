"""Tasks set aside to learn from: their labels give a prior, and their gold, where it is known, a threshold.

The threshold d is the cut of the shares that decides most held-out tasks as their gold says (a share equal to d counts
half); among equally good cuts the one nearest to 1/2, then the smaller.
Guarantee: none beyond those of ``learn``; 50 tasks leave d uncertain by about a tenth.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.beliefs.beta import Beta
from nextlabel.errors import InputError
from nextlabel.learn.counts import LabelCounts
from nextlabel.learn.methods import learn_prior
from nextlabel.prose import counted
from nextlabel.simulation.replay import Recorded

WORDS = {"moments": "by the method of moments", "ml": "by maximum likelihood"}


@dataclass(frozen=True, slots=True, eq=False)
class PilotFit:
    """What was learnt from ``size`` tasks, and the rows of the others; ``note``: what the labels left open."""

    size: int
    rest: Ints
    prior: Beta
    prior_from: str
    threshold: float
    threshold_from: str
    note: str = ""


def hold_out(
    recorded: Recorded, size: int, prior: Beta | None, threshold: float | None, method: str, seed: int
) -> PilotFit:
    """Set ``size`` random tasks aside, of those with gold if there are any; none if the prior is given."""
    N = len(recorded)
    if prior is not None:
        d, source = (0.5, "not learnt") if threshold is None else (threshold, "given")
        return PilotFit(0, np.arange(N), prior, "given", _checked(d), source)
    if method not in WORDS:
        raise InputError(f"method {method!r} is not known.", f"Use one of {', '.join(WORDS)}.")
    with_gold = bool((recorded.gold >= 0).any())
    able = np.flatnonzero(recorded.gold >= 0) if with_gold else np.arange(N)
    if not 2 <= size < len(able):
        there = f"{counted(len(able), 'task')}{' with gold' * with_gold} {'is' if len(able) == 1 else 'are'} there"
        wanted = f"{counted(size, 'task')} {'is' if size == 1 else 'are'}"
        raise InputError(
            f"{wanted} to be held out for the prior, and {there}.",
            "Give --pilot-tasks N of at least 2 that leaves tasks to replay, or a prior with --prior A,B.",
        )
    drawn = np.random.default_rng(seed).permutation(able)[:size]
    aside = recorded.subset(np.sort(drawn))
    learnt = learn_prior(LabelCounts.of_padded(aside.labels), method, seed=seed, draws=0)
    assert isinstance(learnt.prior, Beta)  # two answers, one component
    if threshold is not None:
        d, source = threshold, "given"
    elif with_gold:
        d, source = learnt_threshold(aside), "learnt from the pilot's gold"
    else:
        d, source = 0.5, "not learnt: there is no gold"
    rest = np.setdiff1d(np.arange(N), drawn)
    return PilotFit(size, rest, learnt.prior, f"learnt {WORDS[method]}", _checked(d), source, learnt.note)


def _checked(threshold: float) -> float:
    if not 0.0 < threshold < 1.0:
        raise InputError(f"threshold {threshold:g} is outside (0, 1).", "Give a number between 0 and 1, e.g. 0.5.")
    return threshold


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
