"""Whole crowds drawn independently from their posterior: one chain for each (``kernels.crowd_gibbs``).

======== ========== ============ ==================================================================
symbol   code       shape        meaning
======== ========== ============ ==================================================================
A        channels   (W + n, C, C) channels of all workers, and of n people who have not come yet
pi       share      (C,)         shares of the truths
p_x(A)   beliefs    (tasks, C)   P(z_x | labels, A, pi): what the labels say if that is the crowd
======== ========== ============ ==================================================================

A chain begins with the answer of one label of each task, taken at random. Between blocks of sweeps an exchange of two
truths on all tasks without gold is proposed by lot and accepted by the ratio of the posteriors (Metropolis): Gibbs
steps alone do not get from a crowd to its mirror image. Of many labels each chain takes the tasks of a random part, and
knows nothing of the others; of many tasks without a label, which differ by their ``prior_offset`` alone, it takes some.
Guarantee: the chains are independent, and their common law is near the posterior of what they look at, the nearer the
more sweeps. Cost: see the kernel; ``MOST_LABELS`` labels a chain.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from nextlabel.arrays import Bools, Floats, Ints
from nextlabel.crowd.fit import CrowdLabels
from nextlabel.crowd.prior import CrowdPrior
from nextlabel.kernels.crowd_fit import TaskLabels, by_task
from nextlabel.kernels.crowd_gibbs import draw_posterior

#: Labels, and tasks without one, that a chain looks at; label updates of a chain, and its sweeps at least and at most.
MOST_LABELS, MOST_BARE, UPDATES, FEWEST, MOST = 20_000, 1000, 200_000, 50, 400
#: Blocks of sweeps.
BLOCKS = 5
#: Labels that the first idea of what the crowd is like is worth, where the crowd is learnt.
HOLD = 10.0


class DrawnCrowd(NamedTuple):
    """A crowd, and what it believes of some tasks: ``weights`` (tasks,) sum to 1 over those that count."""

    channels: Floats
    share: Floats
    beliefs: Floats
    weights: Floats


class CrowdPosterior:
    """What labels say about the crowd. ``gold`` (K,) is the truth or -1, ``prior_offset`` (K, C) adds to log shares.

    ``counts`` (K,) are the tasks whose beliefs are wanted, all by default.
    """

    def __init__(
        self,
        labels: CrowdLabels,
        prior: CrowdPrior,
        gold: Ints | None = None,
        prior_offset: Floats | None = None,
        counts: Bools | None = None,
    ) -> None:
        K, C = labels.tasks, labels.answers
        self._prior, self._workers = prior, labels.workers
        self._gold = np.full(K, -1, dtype=np.int64) if gold is None else gold
        self._tilt = np.zeros((K, C)) if prior_offset is None else prior_offset
        self._counts = np.ones(K, dtype=np.bool_) if counts is None else counts
        task, worker, answer = (np.ascontiguousarray(column, dtype=np.int64) for column in labels[:3])
        self._first, self._code = by_task(task, worker, answer, K, C)
        self._labelled = np.flatnonzero(np.diff(self._first))
        self._bare = np.flatnonzero((np.diff(self._first) == 0) & self._counts)
        self._part = min(1.0, MOST_LABELS / max(len(task), 1))
        #: Whether every crowd looks at all tasks.
        self.whole = self._part == 1.0 and len(self._bare) <= MOST_BARE

    def draw(self, seed: int, number: int, strangers: int = 0) -> DrawnCrowd:
        """Crowd ``number``."""
        chance, C = np.random.default_rng([seed, number]), self._tilt.shape[1]
        tasks = self._labelled
        if self._part < 1.0:
            tasks = tasks[chance.random(len(tasks)) < self._part]
        many = np.diff(self._first)[tasks]
        first = np.concatenate([[0], np.cumsum(many)])
        code = self._code[np.arange(first[-1]) + np.repeat(self._first[tasks] - first[:-1], many)]
        gold, prior_offset = self._gold[tasks], self._tilt[tasks]
        votes = code[first[:-1] + (chance.random(len(tasks)) * many).astype(np.int64)] % C
        truth = np.where(gold >= 0, gold, votes.astype(np.int64))
        drawn = TaskLabels(first, code, gold, prior_offset)
        pseudo, hold = self._prior.pseudo.copy(), self._prior.hold
        channels, share = np.empty((self._workers + strangers, C, C)), np.empty(C)
        sweeps = min(max(UPDATES // max(len(code), 1), FEWEST), MOST) // BLOCKS
        for _ in range(BLOCKS):
            truth = self._exchanged(first, code, gold, truth, pseudo, chance)
            held = min(hold, HOLD) if hold < math.inf else hold
            draw_posterior(drawn, pseudo, held, self._prior.share, truth, sweeps, chance, channels, share)
        log = np.log(channels)[code // C, :, code % C]
        odds = prior_offset + np.log(share)
        for c in range(C):
            odds[:, c] += np.bincount(np.repeat(np.arange(len(tasks)), many), log[:, c], minlength=len(tasks))
        wanted = self._counts[tasks]
        bare = self._bare if len(self._bare) <= MOST_BARE else chance.choice(self._bare, MOST_BARE, replace=False)
        labelled = float(self._counts[self._labelled].sum())
        weights = np.concatenate(
            [
                np.full(int(wanted.sum()), labelled / max(wanted.sum(), 1)),
                np.full(len(bare), len(self._bare) / max(len(bare), 1)),
            ]
        )
        odds = np.concatenate([odds[wanted], self._tilt[bare] + np.log(share)])
        beliefs = np.exp(odds - odds.max(axis=1, keepdims=True))
        beliefs /= beliefs.sum(axis=1, keepdims=True)
        known = np.concatenate([gold[wanted], self._gold[bare]])
        beliefs[known >= 0] = np.eye(C)[known[known >= 0]]
        return DrawnCrowd(channels, share, beliefs, weights / weights.sum())

    def _exchanged(
        self, first: Ints, code: Ints, gold: Ints, truth: Ints, pseudo: Floats, chance: np.random.Generator
    ) -> Ints:
        """The truths, or with two of them exchanged on all tasks without gold."""
        C = len(pseudo)
        name = np.arange(C)
        a, b = chance.choice(C, 2, replace=False)
        name[[a, b]] = b, a
        other = np.where(gold >= 0, truth, name[truth])
        gain = self._log(first, code, other, pseudo) - self._log(first, code, truth, pseudo)
        accepted = chance.random() < 0.5 and np.log(chance.random()) < gain
        return other if accepted else truth

    def _log(self, first: Ints, code: Ints, truth: Ints, pseudo: Floats) -> float:
        """log P(truths, labels | pseudo) up to a constant."""
        C = len(pseudo)
        of = np.repeat(truth, np.diff(first))
        counts = np.bincount(
            (code // C).astype(np.int64) * C * C + of * C + (code % C).astype(np.int64), minlength=self._workers * C * C
        )
        rows = counts.reshape(-1, C, C) + pseudo
        share = self._prior.share + np.bincount(truth, minlength=C)
        return float(gammaln(rows).sum() - gammaln(rows.sum(axis=2)).sum() + gammaln(share).sum())
