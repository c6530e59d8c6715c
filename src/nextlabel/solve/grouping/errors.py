"""How far the value of a task can be from what the grid says of it: proved, in closed form (docs/theory_grouping.md).

======== ========== ===== ============================================================================================
symbol   code       shape meaning
======== ========== ===== ============================================================================================
p        p          (C,)  score; f_p is the density of Beta(s p, s (1 - p))
L(p)     log_beta   --    log B(s p, s (1 - p)), the logarithm of the beta function
A(p)     payoff     --    bound on the standard deviation of what the best plan of a task with prior f_p earns, net
======== ========== ===== ============================================================================================

Let V(p) be the value of one task at given prices, J(theta) what the best plan for f_p earns given theta, net of prices.
Any other prior g gives V(g) >= int J g, because that plan is one of those that may be used there. For a cell of the
grid with ends p1 <= p <= p2 and p = t p1 + (1 - t) p2

    V(p) - t V(p1) - (1 - t) V(p2) <= E_p[(c - J) k],        k = t f_1 / f_p + (1 - t) f_2 / f_p - 1,  any c,

at most A(p) sqrt(E_p[k^2]), for the mean of k is 0. Likewise, for tasks x with mean score m, and the best plan for m,

    n V(m) - sum_x V(p_x) <= A(m) sum_x sqrt(E_m[k_x^2]),    k_x = f_x / f_m - 1 - (p_x - m) d log f_m / dm,

where the term of first order may be taken away because it sums to 0. No error exceeds what labels can add to a task.
Both expectations are sums of beta functions,
E_p[f_i f_j / f_p^2] = exp(L(p) + L(p_i + p_j - p) - L(p_i) - L(p_j)).
With workers of one accuracy f_p is linear in p: both errors are 0, V is convex.
Guarantee: upper bounds, rounding included. Cost: six beta functions for each score.
"""

from __future__ import annotations

import numpy as np
from scipy.special import betainc, betaln, digamma, polygamma

from nextlabel.arrays import Floats, Ints
from nextlabel.beliefs.prior import EPS
from nextlabel.beliefs.rewards import Accuracy
from nextlabel.problem.task_class import TaskClass

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
    """By how much V(mean) can be above V(p), on average over tasks of one cell whose scores have that mean."""
    ends, own, step = log_beta(strength, mean), log_beta(strength, p), p - mean[cell]
    information = strength**2 * (polygamma(1, strength * mean) + polygamma(1, strength * (1.0 - mean)))
    with np.errstate(all="ignore"):
        apart = _mean_log_odds(strength, p) - _mean_log_odds(strength, mean)[cell]
        square = np.expm1(ends[cell] + log_beta(strength, 2.0 * p - mean[cell]) - 2.0 * own)
        square += step * (step * information[cell] - 2.0 * strength * apart)
    off = _root(strength, square, own) * payoff(pattern, strength, mean)[cell]
    off = np.minimum(off, at_stake(pattern, strength, p))
    return np.asarray(np.where(step == 0.0, 0.0, off), dtype=np.float64)


def _mean_log_odds(strength: float, p: Floats) -> Floats:
    return np.asarray(digamma(strength * p) - digamma(strength * (1.0 - p)), dtype=np.float64)


def _root(strength: float, square: Floats, at: Floats) -> Floats:
    """The root of a mean square, which cancellation may have moved."""
    rounding = OPERATIONS * EPS * (1.0 + np.abs(at) + strength)
    size = np.where(np.isfinite(square), np.maximum(square, 0.0), np.inf) + rounding
    return np.asarray(np.sqrt(size), dtype=np.float64)
