"""Bounds averaged over crowds: what holds where channels are not known.

======== ========= ==================================================================
symbol   code      meaning
======== ========= ==================================================================
A        types     a whole crowd: the channels of all its workers, all revealed
p_x(A)   beliefs   what the labels given so far say about the tasks *under that crowd*
D        n         crowds drawn, independently, from what is known about them
======== ========= ==================================================================

    E[ bound(A, p(A)) ]  <=  mean over D crowds  +  t_{D-1} sd / sqrt(D)      with the confidence given

Revealing the crowd can only help, so that the bound of a crowd holds for a policy that is told it, and its mean for one
that is not. The beliefs must be those of the crowd drawn: averaging V at the marginal beliefs is not a bound
(docs/theory_workers.md). Crowds must be drawn from the true posterior; before the first label that is the prior.
Guarantee: the limit is Student's, of a mean of values between the worst and the best reward.
Cost: one relaxation for each crowd.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import NamedTuple

import numpy as np
from scipy.stats import t

from nextlabel.arrays import Floats
from nextlabel.errors import ProblemError
from nextlabel.solve.crowd.relaxation import Types, relax
from nextlabel.solve.crowd.single_task import Rewards
from nextlabel.solve.progress import Progress

#: Confidence of the limit that is shown.
CONFIDENCE = 0.99
#: A gap per task that is small against the spread between crowds.
TOLERANCE = 1e-5
#: Grid points with two answers: what a finer grid takes off is small against the spread, too.
POINTS = 250


class Crowd(NamedTuple):
    """A crowd that may be the true one, and the beliefs of the tasks, ``members`` at each, if it is."""

    beliefs: Floats
    members: Floats
    types: Types
    rewards: Rewards | None = None


@dataclass(frozen=True, slots=True)
class AveragedBound:
    """``limit`` is the upper confidence limit of the mean of the bounds of the crowds; ``values`` are these bounds."""

    limit: float
    mean: float
    values: Floats
    price: float
    supply_prices: Floats
    lower: float
    gap: float
    error_budget: float
    confidence: float
    seconds: float


def average_bounds(
    crowds: Sequence[Crowd],
    budget: float,
    *,
    confidence: float = CONFIDENCE,
    effective: float = np.inf,
    grid: int | None = None,
    interior: bool = False,
    tolerance: float = TOLERANCE,
    progress: Progress | None = None,
) -> AveragedBound:
    """The mean of the bounds of crowds drawn independently, with its upper confidence limit.

    Crowds of a Markov chain count as at most ``effective`` independent ones. If all crowds have one and the same bound,
    that is the limit. Prices are means over the crowds.
    """
    if len(crowds) < 2:
        raise ProblemError(f"{len(crowds)} crowds do not make a mean with a limit.", "Draw at least 2, better 30.")
    begin = perf_counter()
    if grid is None and crowds[0].beliefs.shape[1] == 2:
        grid = POINTS
    found = []
    for k, crowd in enumerate(crowds):
        found.append(
            relax(
                crowd.beliefs,
                crowd.members,
                crowd.types,
                budget,
                grid=grid,
                tolerance=tolerance,
                rewards=crowd.rewards,
                interior=interior,
            )
        )
        if progress is not None:
            progress((k + 1) / len(crowds))
    values = np.array([one.value for one in found])
    n = max(2.0, min(float(len(values)), effective))
    mean = float(values.mean())
    above = float(t.ppf(confidence, n - 1)) * float(values.std(ddof=1)) / float(np.sqrt(n))
    return AveragedBound(
        limit=mean + above,
        mean=mean,
        values=values,
        price=float(np.mean([one.price for one in found])),
        supply_prices=np.mean([one.supply_prices for one in found], axis=0),
        lower=float(np.mean([one.lower for one in found])),
        gap=float(np.mean([one.gap for one in found])),
        error_budget=float(np.mean([one.error_budget for one in found])),
        confidence=confidence,
        seconds=perf_counter() - begin,
    )
