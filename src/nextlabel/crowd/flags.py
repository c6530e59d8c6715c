"""What stands out about a worker, and when it may be said.

======================= ===================================================================================
flag                    said when
======================= ===================================================================================
at chance               the interval of the balanced accuracy holds chance, and its upper end is less than three
                        tenths of the way from chance to perfect: their labels say next to nothing
against the grain       the whole interval of the balanced accuracy is below chance: useful, turned round
always the same answer  one answer throughout, where an average worker would have given it throughout with a
                        chance below 1% for the whole crowd
copying                 see ``copying``
======================= ===================================================================================

Intervals are 95%; who has given few labels has wide ones and is not flagged.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from nextlabel.arrays import Bools
from nextlabel.crowd.fit import CrowdFit
from nextlabel.crowd.labels import CrowdLabels
from nextlabel.crowd.skill import Intervals

AT_CHANCE, AGAINST, SAME, COPYING = "at chance", "against the grain", "always the same answer", "copying"
#: How far from chance to perfect a worker at chance may be at best.
NEAR = 0.3
#: Chance, for a whole crowd, of calling an average worker one who always gives the same answer.
LEVEL = 0.01


def skill_flags(answers: int, balanced: Intervals) -> tuple[Bools, Bools]:
    """Who is at chance, and who answers against the grain."""
    chance = 1.0 / answers
    against = balanced.high < chance
    at_chance = ~against & (balanced.low <= chance) & (balanced.high < chance + NEAR * (1.0 - chance))
    return at_chance, against


def flags_by_worker(
    labels: CrowdLabels, fit: CrowdFit, balanced: Intervals, copiers: Collection[int]
) -> list[tuple[str, ...]]:
    """What stands out about each worker."""
    at_chance, against = skill_flags(labels.answers, balanced)
    same = always_same(labels, fit)
    out = []
    for j in range(labels.workers):
        said = ((at_chance[j], AT_CHANCE), (against[j], AGAINST), (same[j], SAME), (j in copiers, COPYING))
        out.append(tuple(name for true, name in said if true))
    return out


def always_same(labels: CrowdLabels, fit: CrowdFit) -> Bools:
    """Who gave one answer throughout where an average worker would hardly have."""
    average = fit.prior.pseudo / fit.prior.pseudo.sum(axis=1, keepdims=True)
    expected = (fit.beliefs @ average)[labels.task, labels.answer]
    chance = np.bincount(labels.worker, np.log(expected), labels.workers)
    C = labels.answers
    said = np.bincount(labels.worker * C + labels.answer, minlength=labels.workers * C).reshape(labels.workers, C)
    found: Bools = ((said > 0).sum(axis=1) == 1) & (chance < np.log(LEVEL / labels.workers))
    return found
