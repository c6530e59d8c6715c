"""Batches of the arrivals to come: how many each has, and how far labels come in before it.

Batches are short where prices move, within the time of a few labels from now and from the end, and longer in between:
their length is in proportion to one lifetime of a label more than the distance from the nearer end.

With a deadline workers come at their mean rate until then, and labels that are still in flight are lost.
"""

from __future__ import annotations

from math import inf, log1p

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.errors import ProblemError
from nextlabel.kernels.batches import Batches
from nextlabel.problem.problem import Problem

#: Batches at most; fewer arrivals are a batch each.
BATCHES = 96
#: Lifetimes of a label after which it has come in.
LONG = 700.0


def batch_sizes(left: int, rho: float, most: int = BATCHES) -> Ints:
    """Arrivals of each of at most ``most`` batches, short near both ends."""
    if left <= most:
        return np.ones(left, dtype=np.int64)
    span = left / rho
    total = 2.0 * log1p(0.5 * span)
    # In lifetimes of a label x from the nearer end a batch is as long as 1 + x: equal steps of log(1 + x).
    u = np.linspace(0.0, total, most + 1)
    ends = np.where(u <= 0.5 * total, np.expm1(u), span - np.expm1(total - u)) * rho
    ends[0], ends[-1] = 0.0, left
    return np.asarray(np.diff(np.unique(np.rint(ends))), dtype=np.int64)


def make_batches(problem: Problem, left: int, time_left: float, most: int) -> Batches:
    """Batches of the arrivals that are expected, and how far labels come in before each of them."""
    if not time_left > 0:
        raise ProblemError(f"time left {time_left!r} is not above 0.", "Give the time until the deadline.")
    mu = problem.completion_rate
    if time_left == inf:
        size = batch_sizes(left, problem.rho, most)
        return Batches(size.astype(float), left - np.cumsum(size) + size, _odds(size, problem.rho), inf)
    starts, rates = problem.rate_pieces
    now = max(problem.horizon - time_left, 0.0) if problem.finite else 0.0
    knots = np.append(np.append(now, starts[starts > now]), now + time_left)
    speed = rates[np.searchsorted(starts, knots[:-1], side="right") - 1]
    come = np.append(0.0, np.cumsum(speed * np.diff(knots)))
    n = max(1, min(left, int(come[-1])))
    size = batch_sizes(n, max(come[-1], 1.0) / (mu * time_left), most)
    ends = np.interp(np.append(0.0, np.cumsum(size)), come, knots)
    after = max(now + time_left - float(ends[-1]), 0.0)
    busy = np.expm1(np.minimum(mu * np.diff(ends), LONG))
    return Batches(size.astype(float), n - np.cumsum(size) + size, busy, float(np.expm1(min(mu * after, LONG))))


def _odds(size: Ints, rho: float) -> Floats:
    """Chance that a label comes in while so many workers come, by the chance that it does not."""
    return np.asarray(np.expm1(np.minimum(size * log1p(1.0 / rho), LONG)), dtype=np.float64)
