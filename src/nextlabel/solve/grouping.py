"""A problem with many scores of a model between two with few: one is worth at least as much, the other at most.

======== ========== ===== ============================================================================================
symbol   code       shape meaning
======== ========== ===== ============================================================================================
p        p          (C,)  score: the prior is Beta(s p, s (1 - p)) with one strength s, f_p its density, or workers are
                          of one accuracy and P(truth is 1) = p
--       upper      --    every task is split between the ends of its cell of a grid, so that the mean of its score
                          stays: chords
--       lower      --    the tasks of a cell all get their mean score
e        above      --    the upper problem's value, plus this, is never below the original one's, at any prices
e'       below      --    the lower problem's value, less this, is never above it
L(p)     log_beta   --    log B(s p, s (1 - p)), the logarithm of the beta function
A(p)     payoff     --    bound on the standard deviation of what the best plan of a task with prior f_p earns, net
======== ========== ===== ============================================================================================

For a cell of the grid with ends p1 <= p <= p2 and p = t p1 + (1 - t) p2, and for tasks x with mean score m,

    V(p) - t V(p1) - (1 - t) V(p2) <= A(p) sqrt(E_p[k^2]),    n V(m) - sum_x V(p_x) <= A(m) sum_x sqrt(E_m[k_x^2]),

with k, k_x and their second moments, sums of beta functions, in docs/theory_grouping.md. No error exceeds what labels
can add to a task. With workers of one accuracy both are 0, V is convex.

The grid is dense where a prior between its points would differ most from theirs: cells of equal length in the metric
sqrt(A M) have equal errors, with M = s^2 sqrt(2 v^2 + k), v and k the variance and the fourth cumulant of
log(theta / (1 - theta)). With workers of one accuracy cells are equal.
Guarantee: proved for single-task values at any prices, and so for the bound, rounding included
(docs/theory_grouping.md). Cost: six beta functions for each score, then that of problems with as many classes as the
grid has points.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import betainc, betaln, digamma, expit, logit, polygamma

from nextlabel.arrays import Floats, Ints
from nextlabel.model.beta import Beta
from nextlabel.model.fact import OneCoin
from nextlabel.model.prior import EPS
from nextlabel.model.problem import Problem
from nextlabel.model.rewards import Accuracy
from nextlabel.model.tasks import ScoreClasses, TaskClass, counts_of

#: Strengths that differ by less than this share are one: s p + s (1 - p) is s up to rounding.
SAME = 1e-12


def scores_of(classes: Sequence[TaskClass]) -> ScoreClasses | None:
    """The scores that the classes stand for, in their order; None if they are no such family."""
    if isinstance(classes, ScoreClasses):
        return classes
    one = classes[0]
    if any(c.threshold != one.threshold or c.reward != one.reward for c in classes):
        return None
    strength: float | None = None
    accuracy: float | None = None
    if isinstance(one.prior, OneCoin):
        accuracy = one.prior.accuracy
        coins = [c.prior for c in classes if isinstance(c.prior, OneCoin) and c.prior.accuracy == accuracy]
        p = np.array([coin.probability for coin in coins])
    elif isinstance(one.prior, Beta):
        strength = one.prior.alpha + one.prior.beta
        betas = [c.prior for c in classes if isinstance(c.prior, Beta)]
        p = np.array([b.alpha / strength for b in betas if same_strength(b, strength)])
    else:
        return None
    if len(p) < len(classes):
        return None
    return ScoreClasses(p, counts_of(classes), one, strength, accuracy)


def rising(scores: ScoreClasses) -> ScoreClasses:
    """The same in the order of the scores."""
    order = np.argsort(scores.values)
    return scores.of(scores.values[order], scores.counts[order])


def same_strength(prior: Beta, strength: float) -> bool:
    """Whether a Beta prior has that strength, up to rounding."""
    return abs(prior.alpha + prior.beta - strength) <= SAME * strength


#: What the plan pays has a second moment of at most 3 D^2, D the most that labels can add to a task.
PAID = 3.0
#: What a probability may have been rounded by.
ROUNDED_CHANCE = 1e-12
#: Rounded operations behind a sum of logarithms of beta functions.
OPERATIONS = 64.0


def log_beta(strength: float, p: Floats) -> Floats:
    """L(p); infinite where there is no such prior, which makes an error infinite too."""
    with np.errstate(all="ignore"):
        found = betaln(strength * p, strength * (1.0 - p))
    return np.asarray(np.where((p > 0.0) & (p < 1.0), found, np.inf), dtype=np.float64)


def payoff(pattern: TaskClass, strength: float, p: Floats) -> Floats:
    """A(p)."""
    reward = pattern.reward
    if not isinstance(reward, Accuracy):
        return np.full(p.shape, (0.5 + np.sqrt(PAID)) * 2.0 * reward.largest)
    everywhere = 0.5 + np.sqrt(PAID) * 0.5
    near_certain = (1.0 + np.sqrt(1.5)) * np.sqrt(at_stake(pattern, strength, p) / reward.value)
    return np.asarray(reward.value * np.minimum(everywhere, near_certain), dtype=np.float64)


def at_stake(pattern: TaskClass, strength: float, p: Floats) -> Floats:
    """The most that labels can add to a task: no value is further above that of deciding at once."""
    reward = pattern.reward
    if not isinstance(reward, Accuracy):
        return np.full(p.shape, 2.0 * reward.largest)
    above = betainc(strength * (1.0 - p), strength * p, 1.0 - pattern.threshold)
    wrong = np.minimum(np.minimum(above, 1.0 - above) + ROUNDED_CHANCE, 0.5)
    return np.asarray(reward.value * wrong, dtype=np.float64)


def chord_errors(pattern: TaskClass, strength: float, p: Floats, grid: Floats, cell: Ints) -> Floats:
    """By how much V(p) can be above the chord of V between the ends of its cell, numbered ``cell`` of the grid."""
    low, high = grid[cell], grid[cell + 1]
    share, ends = chord_shares(p, low, high), log_beta(strength, grid)
    at, one, two = log_beta(strength, p), ends[cell], ends[cell + 1]
    with np.errstate(all="ignore"):
        square = share**2 * np.expm1(at + log_beta(strength, 2.0 * low - p) - 2.0 * one)
        square += (1.0 - share) ** 2 * np.expm1(at + log_beta(strength, 2.0 * high - p) - 2.0 * two)
        square += 2.0 * share * (1.0 - share) * np.expm1(at + log_beta(strength, low + high - p) - one - two)
    stake = at_stake(pattern, strength, grid)
    most = share * stake[cell] + (1.0 - share) * stake[cell + 1]
    off = np.minimum(_root(strength, square, at) * payoff(pattern, strength, p), most)
    # A task whose score is a point of the grid has its own prior there.
    return np.asarray(np.where((p == low) | (p == high), 0.0, off), dtype=np.float64)


def chord_shares(p: Floats, low: Floats, high: Floats) -> Floats:
    """t with p = t low + (1 - t) high."""
    return np.asarray((high - p) / (high - low), dtype=np.float64)


def mean_errors(pattern: TaskClass, strength: float, p: Floats, mean: Floats, cell: Ints) -> Floats:
    """(2, C): by how much V(mean) can be above V(p), with either row summed over all tasks of a cell, not in turns."""
    ends, own, step = log_beta(strength, mean), log_beta(strength, p), p - mean[cell]
    information = strength**2 * (polygamma(1, strength * mean) + polygamma(1, strength * (1.0 - mean)))
    with np.errstate(all="ignore"):
        apart = _mean_log_odds(strength, p) - _mean_log_odds(strength, mean)[cell]
        square = np.expm1(ends[cell] + log_beta(strength, 2.0 * p - mean[cell]) - 2.0 * own)
        square += step * (step * information[cell] - 2.0 * strength * apart)
    off = _root(strength, square, own) * payoff(pattern, strength, mean)[cell]
    return np.where(step == 0.0, 0.0, np.stack([off, at_stake(pattern, strength, p)]))


def _mean_log_odds(strength: float, p: Floats) -> Floats:
    return np.asarray(digamma(strength * p) - digamma(strength * (1.0 - p)), dtype=np.float64)


def _root(strength: float, square: Floats, at: Floats) -> Floats:
    """The root of a mean square, which cancellation may have moved."""
    rounding = OPERATIONS * EPS * (1.0 + np.abs(at) + strength)
    size = np.where(np.isfinite(square), np.maximum(square, 0.0), np.inf) + rounding
    return np.asarray(np.sqrt(size), dtype=np.float64)


#: Length of a cell, by which the error of both sides together is at most about 5e-5 of a task, and cells at most.
LENGTH, MOST_CELLS = 0.013, 3000
#: Cells of a family in which nothing but the number of cells sets the error.
EVEN_CELLS = 2000
#: The root of A counts as at least this.
LEAST_ROOT = 0.05
#: Points at which the metric is tabulated.
POINTS = 20_001


def make_score_grid(scores: ScoreClasses, cells: int | None = None) -> Floats:
    """Points that rise from the least score to the largest; ``cells`` of them fewer one, or as many as are needed."""
    least, largest = float(scores.values[0]), float(scores.values[-1])
    if least == largest:
        return np.array([least])
    if scores.strength is None:
        return np.linspace(least, largest, (EVEN_CELLS if cells is None else cells) + 1)
    s = scores.strength
    p = np.clip(expit(np.linspace(logit(least), logit(largest), POINTS)), least, largest)
    v = polygamma(1, s * p) + polygamma(1, s * (1.0 - p))
    k = polygamma(3, s * p) + polygamma(3, s * (1.0 - p))
    root = np.maximum(np.sqrt(payoff(scores.pattern, s, p) / max(scores.pattern.reward.largest, 1e-300)), LEAST_ROOT)
    metric = root * s * np.sqrt(np.sqrt(2.0 * v**2 + k))
    length = np.append(0.0, np.cumsum(0.5 * (metric[1:] + metric[:-1]) * np.diff(p)))
    if cells is None:
        cells = int(min(np.ceil(length[-1] / LENGTH), MOST_CELLS))
    grid = np.interp(np.linspace(0.0, length[-1], max(cells, 1) + 1), length, p)
    grid[0], grid[-1] = least, largest
    return np.unique(grid)


#: Problems with more classes than this are grouped, if their priors are of one family.
MANY_CLASSES = 4096
#: Shares of tasks below this are rounding.
LEAST_SHARE = 1e-12


class Grouped(NamedTuple):
    """The points of a grid and the means of its cells, with the tasks they stand for; what to add to one and take off
    the other."""

    upper: ScoreClasses
    lower: ScoreClasses
    above: float
    below: float

    @property
    def priors(self) -> int:
        """Different priors of the larger problem."""
        return max(len(self.upper), len(self.lower))


def group(problem: Problem, cells: int | None = None, least: int = MANY_CLASSES) -> Grouped | None:
    """Classes in place of more than ``least`` of one family; ``cells`` of the grid, else by need."""
    found = scores_of(problem.classes) if len(problem.classes) > least and not problem.workers else None
    if found is None:
        return None
    scores = rising(found)
    return group_scores(scores, make_score_grid(scores, cells))


def group_scores(scores: ScoreClasses, grid: Floats) -> Grouped:
    """The tasks around those with these scores, which lie between the ends of the grid."""
    p, tasks, s = scores.values, scores.counts.astype(np.float64), scores.strength
    total = float(tasks.sum())
    if len(grid) == 1:
        one = scores.of(grid, np.array([total]))
        return Grouped(one, one, 0.0, 0.0)
    cell = np.clip(np.searchsorted(grid, p, side="right") - 1, 0, len(grid) - 2)
    share = chord_shares(p, grid[cell], grid[cell + 1])
    at_ends = _sums(cell, tasks * share, len(grid)) + _sums(cell + 1, tasks * (1.0 - share), len(grid))
    members = _sums(cell, tasks, len(grid) - 1)
    occupied, wanted = members > 0, at_ends > LEAST_SHARE
    mean = 0.5 * (grid[:-1] + grid[1:])
    mean[occupied] = _sums(cell, tasks * p, len(grid) - 1)[occupied] / members[occupied]
    above = below = 0.0
    if s is not None:
        above = float(tasks @ chord_errors(scores.pattern, s, p, grid, cell))
        rows = tasks * mean_errors(scores.pattern, s, p, mean, cell)
        below = float(np.minimum(*(_sums(cell, row, len(grid) - 1) for row in rows)).sum())
    # Sums are rounded: a task counts, or its score stands, by so much too little or too much.
    rounded = 4.0 * EPS * total * len(p) * (2.0 + (s or 1.0) ** 0.5) * scores.pattern.reward.largest
    upper, lower = scores.of(grid[wanted], at_ends[wanted]), scores.of(mean[occupied], members[occupied])
    return Grouped(upper, lower, above + rounded, below + rounded)


def _sums(cell: Ints, values: Floats, cells: int) -> Floats:
    return np.asarray(np.bincount(cell, values, cells), dtype=np.float64)
