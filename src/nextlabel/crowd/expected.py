"""How many labels are right, by the model's own word, with an interval for what the model does not know.

    accuracy = 1/K sum_x 1{truth of x is a_x},    E = mean over draws of 1/K sum_x P(a_x | labels, rest of the draw)

a_x is the answer given. Truths, the workers' skill, how much workers differ, what the crowd is
like on average and which tasks are hard are drawn together from their posterior (``kernels.crowd_gibbs``), so that E
counts what is not known of any of them; the interval is E +- (``WIDTH`` standard deviations of the share right among
the draws, and half an item), in 0 to 1. It holds if each worker answers by a channel of their own, independently given
the truth and how hard the task is. Workers who are wrong together are not covered: only truths tell. Of many tasks a
part is drawn (``MOST_TASKS``), evenly spread; the labels of the others count for their workers. Tasks without labels
count by the shares of the truths in each draw (``chance_of_start``).
Guarantee: approximate; the tests hold bias and coverage on drawn crowds. Cost: ``DRAWS`` + ``WARM_UP`` sweeps over
the labels of that part.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import expit, gammaln, logsumexp

from nextlabel.arrays import Floats, Ints
from nextlabel.crowd.fit import CrowdLabels
from nextlabel.crowd.prior import TASKS, CrowdPrior
from nextlabel.kernels.crowd_fit import TaskLabels, by_task, stiffness
from nextlabel.kernels.crowd_gibbs import draw_truths

#: Draws, sweeps before the first of them, and tasks that are drawn.
DRAWS, WARM_UP, MOST_TASKS = 64, 24, 4000
#: Standard deviations on either side of a 95% interval: more than 1.96, for draws that are few and alike.
WIDTH = 2.3
#: How many times likelier the shares of the truths that were said at the start are than all others.
EXACTLY = 4.0


class ExpectedAccuracy(NamedTuple):
    """The share of tasks expected to be right, with a 95% interval; ``learnt`` is the part of its variance that is
    about workers and shares of the truths, the rest is chance."""

    mean: float
    low: float
    high: float
    learnt: float


def expected_accuracy(
    labels: CrowdLabels,
    beliefs: Floats,
    prior: CrowdPrior,
    gold: Ints | None = None,
    prior_offset: Floats | None = None,
    draws: int = DRAWS,
    best: Ints | None = None,
) -> ExpectedAccuracy:
    """The expected accuracy of the answers ``best`` (K,) to all tasks but gold: the likeliest by ``beliefs`` (K, C).

    ``prior`` is what was thought of the crowd before any label. ``prior_offset`` (K, C) is added to the log shares of a
    task with a prior of its own. The same draws are made every time.
    """
    K, C = beliefs.shape
    gold = np.full(K, -1, dtype=np.int64) if gold is None else gold
    prior_offset = np.zeros((K, C)) if prior_offset is None else prior_offset
    asked, best = gold < 0, beliefs.argmax(axis=1) if best is None else best
    if not asked.any():
        return ExpectedAccuracy(np.nan, 0.0, 1.0, 0.0)
    per_task = np.bincount(labels.task, minlength=K)
    has, firm = per_task > 0, prior.share * stiffness(np.concatenate([[0], np.cumsum(per_task)]), gold)
    many, bare = int((asked & has).sum()), np.flatnonzero(asked & ~has)
    found = np.zeros((2, 2 + C))
    if many:
        found = _drawn(labels, beliefs, prior, firm, gold, prior_offset, np.where(asked & has, best, -1), draws)
    right, noise = many * found[:, 0], 0.0
    if len(bare):
        some = bare[:: -(-len(bare) // MOST_TASKS)]
        start, shares = prior.share / prior.share.sum(), prior.share + found[:, 2:]
        shares /= shares.sum(axis=1, keepdims=True)
        shares[: round(len(shares) * chance_of_start(start, found[:, 2:], firm))] = start
        odds, a = np.exp(prior_offset[some]), best[some]
        chances = odds[np.arange(len(some)), a][:, None] * shares[:, a].T / (odds @ shares.T)
        right = right + len(bare) * chances.mean(axis=0)
        noise += len(bare) * float((chances * (1.0 - chances)).mean())
    # a part has more chance in it
    noise += max(float(np.diff(found[:, :2].var(axis=0, ddof=1))[0]), 0.0) * min(many, MOST_TASKS) * many
    total, unsure = float(asked.sum()), float(right.var(ddof=1))
    mean, half = float(right.mean()) / total, (WIDTH * float(np.sqrt(unsure + noise)) + 0.5) / total
    return ExpectedAccuracy(mean, max(mean - half, 0.0), min(mean + half, 1.0), unsure / total**2)


def _drawn(
    labels: CrowdLabels, beliefs: Floats, prior: CrowdPrior, firm: Floats, gold: Ints, prior_offset: Floats,
    answer: Ints, draws: int,
) -> Floats:  # fmt: skip
    """(draws, 2 + C) mean chance of the answers, share of them that is right, tasks with each truth."""
    K, C = beliefs.shape
    code = labels.worker * C + labels.answer
    answered = np.flatnonzero(answer >= 0)
    some = np.zeros(K, dtype=np.bool_)
    some[answered[:: -(-len(answered) // MOST_TASKS)]] = True
    known = np.flatnonzero(gold >= 0)
    some[known[:MOST_TASKS]] = True
    inside = some[labels.task]
    fixed = np.zeros((labels.workers * C, C))
    for c in range(C):
        fixed[:, c] = np.bincount(code[~inside], weights=beliefs[labels.task[~inside], c], minlength=len(fixed))
    labelled = np.bincount(labels.task, minlength=K) > 0
    number = np.cumsum(some) - 1
    parts = (number[labels.task[inside]], labels.worker[inside], labels.answer[inside])
    task, worker, said = (np.ascontiguousarray(part, dtype=np.int64) for part in parts)
    first, codes = by_task(task, worker, said, int(some.sum()), C)
    idea = prior.pseudo / prior.pseudo.sum(axis=1, keepdims=True)
    out = np.zeros((draws, 2 + C))
    truth = np.where(gold[some] >= 0, gold[some], beliefs[some].argmax(axis=1))
    tasks = TaskLabels(first, codes, gold[some], prior_offset[some])
    rest = beliefs[labelled & ~some].sum(axis=0)
    chance = np.random.default_rng(0)
    draw_truths(tasks, answer[some], idea, firm, fixed, rest, truth.astype(np.int64), WARM_UP, chance, out)
    return out


def chance_of_start(start: Floats, totals: Floats, firm: Floats) -> float:
    """How probable it is that the shares of the truths are exactly those that were said at the start.

    Before any label that is ``EXACTLY`` times as likely as that they are any others around them (Dirichlet of ``TASKS``
    tasks). ``totals`` (draws, C) are numbers of tasks with each truth, drawn as if the shares were Dirichlet(``firm``):
    both ideas are weighed over all draws together, so that doubt about truths is not taken for uneven shares.
    """

    def log_chance(b: Floats) -> Floats:
        n = totals.sum(axis=1)
        return np.asarray(gammaln(b.sum()) - gammaln(b.sum() + n) + (gammaln(b + totals) - gammaln(b)).sum(axis=1))

    drawn = log_chance(firm)
    any_others = logsumexp(log_chance(TASKS * start) - drawn)
    exactly = logsumexp(totals @ np.log(start) - drawn) + np.log(EXACTLY)
    return float(expit(exactly - any_others))


def usual_share(start: Floats, learnt: Floats, totals: Floats) -> Floats:
    """(C,) shares of the truths for tasks without labels: between what was said at the start and what was learnt.

    Of several shares that are alike the largest one found is too large by chance.
    """
    weight = chance_of_start(start, totals[None], start) if totals.sum() > 0 else 0.0
    return weight * start + (1.0 - weight) * learnt
