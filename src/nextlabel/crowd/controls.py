"""What known truths say about workers and about the model: tasks whose truth is known, however it became known.

======= ========= ===== ======================================================================================
symbol  code      shape meaning
======= ========= ===== ======================================================================================
n, r    answered  (W,)  labels of a worker on tasks with a known truth, ``right`` of them right
b       --        (W,)  share of their other labels that the model takes for right, each judged without itself
e       expected  (m,)  chance that a label on a known task is right, as if the truth were not known (``held_out``)
d       --        (G,)  of a known task, mean over its labels of: right, less e
======= ========= ===== ======================================================================================

- *passes*, *fails*: the Clopper-Pearson interval of r / n at level 1 - ``LEVEL`` / workers lies above, or below,
  ``NEAR`` of the way from chance to perfect: the chance of one wrong verdict in a crowd is at most ``LEVEL``.
- *good on controls, at chance elsewhere*: passes, and at most ``NEAR`` of the way elsewhere, with as much certainty.
- *changed*: right, then not. Of a worker's labels in their order, c_i being the chance that each is right, the mean of
  the first k is compared with that of all; if the order did not matter, it would lie above by t with probability
  exp(-2 k t^2 / (1 - (k-1)/n)) at most [Ser74]. Summed over the cuts and the workers that are looked at, the chance of
  one false alarm in a crowd is at most ``LEVEL``.
- *contradiction*: what the model expects of the labels on known tasks, judged as if their truths were not known, is
  ``APART`` or more above what is so, and Student's t of d over tasks is beyond chance (``LEVEL``); or ``MANY`` of the
  labels on other tasks are of people whom the model takes to be worse than chance, and who together fail the known
  tasks (each task counts once): they may well act together, and fail one by one too. Then the model's word is not
  worth showing. A doubtful task that somebody has settled contradicts nothing: little was expected of its labels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import betaincinv, softmax, stdtr

from nextlabel.arrays import Bools, Floats, Ints
from nextlabel.crowd.fit import CrowdFit, CrowdLabels
from nextlabel.wording import counted

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
#: Share of the labels on other tasks by people worse than chance from which on nobody knows what to expect.
MANY = 0.4


@dataclass(frozen=True, slots=True, eq=False)
class Contradiction:
    """Of the labels on ``tasks`` known tasks a share ``right`` is right, and the model expected ``expected``.

    ``worse`` (W,) are the workers worse than chance, if they gave too large a share ``theirs`` of the other labels.
    """

    tasks: int
    right: float
    expected: float
    worse: Bools
    theirs: float

    def sentences(self) -> list[str]:
        """Why the model's word is withheld, and what to do."""
        why = (
            f"{counted(int(self.worse.sum()), 'worker')} with {self.theirs:.0%} of the other labels fail the known "
            "tasks together, worse than chance, and may act together"
            if self.worse.any()
            else f"of the labels on {self.tasks:,} known tasks {self.right:.0%} are right, and the model expects "
            f"{self.expected:.0%}"
        )
        return [
            f"Known truths contradict the model: {why}. Expected accuracy is withheld.",
            "Look at who fails the known tasks, leave their labels out, and find out the truth of 30 to 60 tasks drawn "
            "at random.",
        ]


@dataclass(frozen=True, slots=True, eq=False)
class Controls:
    """Verdicts on workers (W,), and the contradiction if there is one."""

    answered: Ints
    right: Ints
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
    line = chance + NEAR * (1.0 - chance)
    low, high = exact_share(right, answered, LEVEL / W)
    passes, fails = (answered > 0) & (low > line), (answered > 0) & (high < line)
    _, most_elsewhere = exact_share(agreeing, many, LEVEL / W)
    found = contradiction(labels, fit.prior.pseudo + fit.counts, fit.share, gold)
    if found is not None:
        fails |= found.worse & (right < line * answered) & ~passes
    only_controls = passes & (many >= ELSEWHERE) & (most_elsewhere < line) & (found is None)
    series = np.where(known, hit.astype(np.float64), others)
    return Controls(
        answered, right, passes, fails, only_controls, _changed(labels, series), found
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


class HeldOut(NamedTuple):
    """Known tasks as if their truth were not known: rows of the labels that were looked at, log of what each says of
    its task (n, C), and log beliefs (K, C), up to a constant."""

    rows: Ints
    says: Floats
    logp: Floats


def held_out(
    labels: CrowdLabels, seen: Floats, share: Floats, gold: Ints, prior_offset: Floats | None = None
) -> HeldOut:
    """Tasks with gold judged by their labels and by the workers' other labels (cross-fitting).

    ``seen`` (W, C, C) are the workers' counts with pseudo-counts, ``prior_offset`` (K, C) is added to the log shares of
    a task with a prior of its own. A task with more labels than one usually has is
    judged by that many of them, drawn once and for all.
    """
    per_task = np.bincount(labels.task, minlength=labels.tasks)
    others = per_task[(gold < 0) & (per_task > 0)]
    usual = int(np.median(others)) if len(others) else int(per_task.max(initial=0))
    order = np.random.default_rng(0).permutation(len(labels.task))
    order = order[np.argsort(labels.task[order], kind="stable")]
    rank = np.arange(len(order)) - np.searchsorted(labels.task[order], labels.task[order])
    rows = order[(rank < usual) & (gold[labels.task[order]] >= 0)]
    task, worker, answer = labels.task[rows], labels.worker[rows], labels.answer[rows]
    told = (np.arange(labels.answers) == gold[task][:, None]).astype(np.float64)
    said = np.maximum(seen[worker, :, answer] - told, 0.02 * seen[worker, :, answer])
    says = np.log(said / np.maximum(seen[worker].sum(axis=2) - told, said))
    logp = np.log(share) + (np.zeros((labels.tasks, 1)) if prior_offset is None else prior_offset)
    np.add.at(logp, task, says)
    return HeldOut(rows, says, logp)


def contradiction(labels: CrowdLabels, seen: Floats, share: Floats, gold: Ints) -> Contradiction | None:
    """Whether labels on known tasks are worse than the model expects, or too many are of people worse than chance.

    ``seen`` (W, C, C) are the workers' counts with pseudo-counts.
    """
    known = gold[labels.task] >= 0
    if len(np.unique(labels.task[known])) < COMPARED:
        return None
    hit = gold[labels.task] == labels.answer
    chance = 1.0 / labels.answers
    worse = (np.diagonal(seen, axis1=1, axis2=2) / seen.sum(axis=2)).mean(axis=1) < chance
    theirs = float(worse[labels.worker[~known]].mean()) if (~known).any() else 0.0
    of = known & worse[labels.worker]
    many = np.bincount(labels.task[of], minlength=labels.tasks)
    right = np.bincount(labels.task[of], hit[of], labels.tasks)[many > 0] / many[many > 0]
    _, most = exact_share(right.sum(keepdims=True), np.array([len(right)]), 2.0 * LEVEL)
    if theirs < MANY or most[0] >= chance + NEAR * (1.0 - chance):
        worse = np.zeros_like(worse)
    one = held_out(labels, seen, share, gold)
    task, answer = labels.task[one.rows], labels.answer[one.rows]
    expected = softmax(one.logp[task] - one.says, axis=1)[np.arange(len(task)), answer]
    per_task = np.bincount(task, minlength=labels.tasks)
    there = per_task > 0
    n = int(there.sum())
    apart = np.bincount(task, hit[one.rows] - expected, labels.tasks)[there] / per_task[there]
    mean, error = float(apart.mean()), float(apart.std(ddof=1)) / np.sqrt(n)
    beyond = mean <= -APART and float(stdtr(n - 1, (mean + 0.5 * APART) / max(error, 1e-9))) < LEVEL
    if not beyond and not worse.any():
        return None
    return Contradiction(n, float(hit[one.rows].mean()), float(expected.mean()), worse, theirs)


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
