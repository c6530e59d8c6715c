"""What counting rules are told about tasks beforehand: a prior, and the threshold that gold clearly asks for.

Either ``size`` random tasks are set aside and taught from, or, without a pilot, the prior is that of all labels to be
replayed, which favours the rules that use it. A prior that is given needs neither.
Guarantee: none beyond those of ``learn`` and ``threshold``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nextlabel.arrays import Ints
from nextlabel.backtesting.threshold import choose_threshold
from nextlabel.beliefs.prior import Prior
from nextlabel.errors import InputError
from nextlabel.learn.counts import LabelCounts
from nextlabel.learn.priors import LearntPrior, learn_prior
from nextlabel.prose import counted
from nextlabel.simulation.replay import Recorded

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
    recorded: Recorded, size: int, prior: Prior | None, threshold: float | None, method: str, seed: int
) -> PilotFit:
    """Set ``size`` random tasks aside, of those with gold if there are any; none if the prior is given."""
    N = len(recorded)
    if prior is not None:
        return PilotFit(0, np.arange(N), prior, "given", *_without_gold(threshold))
    _check_method(method)
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
    learnt = _learn(aside, method, seed)
    d, source, best = *_without_gold(threshold), 0.5
    if with_gold:
        choice = choose_threshold(aside)
        best = choice.best
        if threshold is None:
            d, source = choice.threshold, choice.words()
    rest = np.setdiff1d(np.arange(N), drawn)
    return PilotFit(size, rest, learnt.prior, f"learnt {WORDS[method]}", d, source, learnt.note, best)


def from_all_labels(
    recorded: Recorded, prior: Prior | None, threshold: float | None, method: str, seed: int
) -> PilotFit:
    """No task is set aside: the prior is given, or that of all labels to be replayed."""
    everything = np.arange(len(recorded))
    if prior is not None:
        return PilotFit(0, everything, prior, "given", *_without_gold(threshold))
    _check_method(method)
    learnt = _learn(recorded, method, seed)
    source = f"learnt {WORDS[method]} from all labels, which favours the rules that use it"
    return PilotFit(0, everything, learnt.prior, source, *_without_gold(threshold), learnt.note)


def _learn(recorded: Recorded, method: str, seed: int) -> LearntPrior:
    return learn_prior(LabelCounts.of_padded(recorded.labels), method, seed=seed, draws=0)


def _without_gold(threshold: float | None) -> tuple[float, str]:
    """The threshold, and where it is from, where no gold of a pilot speaks."""
    if threshold is None:
        return 0.5, "not learnt"
    if not 0.0 < threshold < 1.0:
        raise InputError(f"threshold {threshold:g} is outside (0, 1).", "Give a number between 0 and 1, e.g. 0.5.")
    return threshold, "given"


def _check_method(method: str) -> None:
    if method not in WORDS:
        raise InputError(f"method {method!r} is not known.", f"Use one of {', '.join(WORDS)}.")
