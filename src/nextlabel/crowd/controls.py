"""What known truths say about workers and about the model: tasks whose truth is known, however it became known.

======= ========= ===== ======================================================================================
symbol  code      shape meaning
======= ========= ===== ======================================================================================
n, r    answered  (W,)  labels of a worker on tasks with a known truth, ``right`` of them right
b       elsewhere (W,)  share of their other labels that the model takes for right, each judged without itself
d       --        (G,)  of a known task, mean over its labels of: right, less b of its worker
======= ========= ===== ======================================================================================

- *passes*, *fails*: the Clopper-Pearson interval of r / n at level 1 - ``LEVEL`` / workers lies above, or below,
  ``NEAR`` of the way from chance to perfect: the chance of one wrong verdict in a crowd is at most ``LEVEL``.
- *good on controls, at chance elsewhere*: passes, and at most ``NEAR`` of the way elsewhere, with as much certainty.
- *changed*: right, then not. Of a worker's labels in their order, c_i being the chance that each is right, the mean of
  the first k is compared with that of all; if the order did not matter, it would lie above by t with probability
  exp(-2 k t^2 / (1 - (k-1)/n)) at most [Ser74]. Summed over the cuts and the workers that are looked at, the chance of
  one false alarm in a crowd is at most ``LEVEL``.
- *contradiction*: what the model expects of people on the known tasks is ``APART`` or more above what they did, and
  Student's t of d over tasks is beyond chance (``LEVEL``). Then the model's word is not worth showing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv, stdtr

from nextlabel.arrays import Bools, Floats, Ints
from nextlabel.crowd.fit import CrowdFit, CrowdLabels

#: Chance of one false verdict in a whole crowd, for each of the tests.
LEVEL = 0.01
#: How far from chance to perfect a worker must be to pass, and is at most if at chance.
NEAR = 0.3
#: Labels before a worker's change is looked for, and labels on either side of it; how much worse they must have become.
CHANGE_LABELS, CHANGE_SIDE, CHANGE = 30, 10, 0.15
#: Labels elsewhere from which on somebody can be at chance there.
ELSEWHERE = 20
#: How far controls and model may be apart, and known tasks from which on they are compared.
APART, COMPARED = 0.1, 5


@dataclass(frozen=True, slots=True)
class Contradiction:
    """On ``tasks`` known tasks people were right ``right`` of the time; the model expected ``expected`` of them."""

    tasks: int
    right: float
    expected: float
    p_value: float

    def sentences(self) -> list[str]:
        """Why the model's word is withheld, and what to do."""
        return [
            f"Known truths contradict the model: on {self.tasks:,} known tasks people were right {self.right:.0%} of "
            f"the time, and from how they agree elsewhere the model expects {self.expected:.0%} "
            f"(p {self.p_value:.1g}). Expected accuracy is withheld.",
            "Look at who fails the known tasks, leave their labels out, and find out the truth of 30 to 60 tasks drawn "
            "at random.",
        ]


@dataclass(frozen=True, slots=True, eq=False)
class Controls:
    """Verdicts on workers (W,), and the contradiction if there is one."""

    answered: Ints
    right: Ints
    elsewhere: Floats
    passes: Bools
    fails: Bools
    only_controls: Bools
    changed: Bools
    contradiction: Contradiction | None


def judge_by_truths(labels: CrowdLabels, fit: CrowdFit, gold: Ints | None = None) -> Controls:
    """What the known truths ``gold`` (K,), -1 where there is none, and the order of the labels say."""
    gold = np.full(labels.tasks, -1, dtype=np.int64) if gold is None else gold
    W, chance = labels.workers, 1.0 / labels.answers
    known = gold[labels.task] >= 0
    hit = gold[labels.task] == labels.answer
    answered, right = (np.bincount(labels.worker[known & x], minlength=W) for x in (True, hit))
    others = chance_right(labels, fit)
    many = np.bincount(labels.worker[~known], minlength=W)
    agreeing = np.bincount(labels.worker[~known], others[~known], W)
    elsewhere = np.divide(agreeing, many, out=np.full(W, np.nan), where=many > 0)
    line = chance + NEAR * (1.0 - chance)
    low, high = exact_share(right, answered, LEVEL / W)
    passes, fails = (answered > 0) & (low > line), (answered > 0) & (high < line)
    _, most_elsewhere = exact_share(agreeing, many, LEVEL / W)
    contradiction = _compare(labels, gold, hit, elsewhere)
    only_controls = passes & (many >= ELSEWHERE) & (most_elsewhere < line) & (contradiction is None)
    series = np.where(known, hit.astype(np.float64), others)
    return Controls(
        answered, right, elsewhere, passes, fails, only_controls, _changed(labels, series), contradiction
    )  # fmt: skip


def chance_right(labels: CrowdLabels, fit: CrowdFit) -> Floats:
    """(n,) the chance that each label is right, by the belief of its task without the label itself."""
    own = fit.channels[labels.worker, :, labels.answer]
    belief = np.maximum(fit.beliefs[labels.task], 1e-12) / np.maximum(own, 1e-12)
    found: Floats = belief[np.arange(len(belief)), labels.answer] / belief.sum(axis=1)
    return found


def exact_share(hits: Floats | Ints, of: Ints, level: float) -> tuple[Floats, Floats]:
    """The ends of Clopper and Pearson's intervals at 1 - ``level``; 0 and 1 where nothing was seen."""
    x, n = np.asarray(hits, dtype=np.float64), np.asarray(of, dtype=np.float64)
    low, high = np.zeros(len(n)), np.ones(len(n))
    some = x > 0
    low[some] = betaincinv(x[some], n[some] - x[some] + 1.0, 0.5 * level)
    some = x < n
    high[some] = betaincinv(x[some] + 1.0, n[some] - x[some], 1.0 - 0.5 * level)
    return low, high


def _compare(labels: CrowdLabels, gold: Ints, hit: Bools, elsewhere: Floats) -> Contradiction | None:
    """Whether people do worse on known tasks than the model thinks they do."""
    usable = (gold[labels.task] >= 0) & ~np.isnan(elsewhere[labels.worker])
    task, right, expected = labels.task[usable], hit[usable].astype(np.float64), elsewhere[labels.worker[usable]]
    per_task = np.bincount(task, minlength=labels.tasks)
    there = per_task > 0
    n = int(there.sum())
    if n < COMPARED:
        return None
    apart = np.bincount(task, right - expected, labels.tasks)[there] / per_task[there]
    mean, error = float(apart.mean()), float(apart.std(ddof=1)) / np.sqrt(n)
    if mean > -APART:
        return None
    p = float(stdtr(n - 1, (mean + 0.5 * APART) / max(error, 1e-9)))
    return Contradiction(n, float(right.mean()), float(expected.mean()), p) if p < LEVEL else None


def _changed(labels: CrowdLabels, series: Floats) -> Bools:
    """Who was right at first and later was not, their labels taken in their order."""
    out = np.zeros(labels.workers, dtype=np.bool_)
    order = np.argsort(labels.worker, kind="stable")
    ends = np.cumsum(np.bincount(labels.worker, minlength=labels.workers))
    looked = [j for j in range(labels.workers) if ends[j] - (ends[j - 1] if j else 0) >= CHANGE_LABELS]
    for j in looked:
        mine = series[order[(ends[j - 1] if j else 0) : ends[j]]]
        n = len(mine)
        k = np.arange(CHANGE_SIDE, n - CHANGE_SIDE + 1)
        first = np.cumsum(mine)[k - 1] / k
        rest = (mine.sum() - k * first) / (n - k)
        above = np.maximum(first - mine.mean(), 0.0)
        p = np.exp(-2.0 * k * above**2 / (1.0 - (k - 1) / n))
        best = int(p.argmin())
        out[j] = p[best] * len(k) * len(looked) < LEVEL and first[best] - rest[best] >= CHANGE
    return out
