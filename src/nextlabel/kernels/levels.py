"""Scores at the price that clears: how dear labels are now, from where all tasks stand, and what a label adds then.

========= ========= ============ ======================================================================
symbol    code      shape        meaning
========= ========= ============ ======================================================================
n_k       at        (R,)         arrivals left at which values are known, rising from 0; linear in between
k_j       level     (J,)         multiples of one path of prices, rising
V_j(s,n)  value     (R, C, J)    value of a task in state s with n arrivals left, at k_j times the path
P_j(n)    charge    (R, J)       k_j times the sum of the path's last n prices
--        column    (states,)    where a state stands among the C, -1 past the edge of the sweep
--        up        (C,)         the same task with one more label in flight, -1 where none is offered
========= ========= ============ ======================================================================

    F_j = sum over tasks of V_j(s_x, n) + P_j(n)

is the bound of the campaign from its present state at level k_j, convex in k_j. Its slope, in labels, is the labels
left less those that the tasks would buy at that level: the level that clears is where it is 0. What tasks will buy is
not certain, so the level is not: it is where the slope is UNCERTAIN sqrt(n) z labels, z one of the equally likely
quantiles SPREAD of a normal variable. The score of a state is the mean over these levels of its advantage,
V_j(w + 1, n - 1) - V_j(w, n - 1).
Guarantee: none of optimality. Cost: J multiply-adds for each non-empty group.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.kernels.jit import jit, uncounted

#: Quantiles of the standard normal distribution at 1/18, 3/18 .. 17/18, and the standard deviation of what the tasks
#: will buy, in square roots of the labels left: from 0.1 to 0.3 is alike, at 1 many labels in flight are given worse.
SPREAD = (
    -1.5932188180, -0.9674215661, -0.5894557978, -0.2822161470, 0.0,
    0.2822161470, 0.5894557978, 0.9674215661, 1.5932188180,
)  # fmt: skip
UNCERTAIN = 0.2


class LevelTables(NamedTuple):
    """Values of all states at several levels of the prices."""

    at: Floats
    level: Floats
    value: Floats
    charge: Floats
    column: Ints
    up: Ints
    cost: float  # what a label costs beside its price


#: For policies that have none.
NO_LEVELS = LevelTables(
    np.zeros(0), np.zeros(0), np.zeros((0, 0, 0)), np.zeros((0, 0)), np.zeros(0, dtype=np.int64),
    np.zeros(0, dtype=np.int64), 0.0,
)  # fmt: skip


@uncounted
def place_of(at: Floats, n: float) -> tuple[int, float]:
    """The row at or before n, and how far n is on the way to the next."""
    k = min(max(np.searchsorted(at, n, side="right") - 1, 0), at.shape[0] - 2)
    return k, min((n - at[k]) / (at[k + 1] - at[k]), 1.0)


@uncounted
def clearing_levels(tables: LevelTables, active: Ints, count: Ints, n: float, work: Floats, weight: Floats) -> float:
    """weight[j] = chance of level j; return the mean of the prices to come. ``work`` (J,) is written over."""
    J = tables.level.shape[0]
    k, share = place_of(tables.at, n)
    column, value, charge, level = tables.column, tables.value, tables.charge, tables.level
    for j in range(J):
        work[j] = charge[k, j] + share * (charge[k + 1, j] - charge[k, j])
    path = work[0] / level[0]
    for g in range(active[-1]):
        c = column[active[g]]
        if c >= 0:
            low, high = count[active[g]] * (1.0 - share), count[active[g]] * share
            for j in range(J):
                work[j] += low * value[k, c, j] + high * value[k + 1, c, j]
    for j in range(J):
        weight[j] = 0.0
    if path <= 0.0:
        weight[0] = 1.0
        return 0.0
    spread = UNCERTAIN * path / math.sqrt(n)
    mean, j, each = 0.0, 0, 1.0 / len(SPREAD)
    slope = (work[1] - work[0]) / (level[1] - level[0])
    for z in SPREAD:
        while slope < z * spread and j < J - 1:
            j += 1
            if j < J - 1:
                slope = (work[j + 1] - work[j]) / (level[j + 1] - level[j])
        weight[j] += each
        mean += each * level[j]
    price: float = mean * path / n
    return price


@uncounted
def score_by_levels(
    tables: LevelTables, score: Floats, everyone: Ints, active: Ints, count: Ints, n: float, scores: Floats
) -> float:
    """scores[g] = mean advantage of the group active[g], past the edge of the sweep its ``score`` up to the price.

    The price is that of all groups, ``everyone``. The last 2 J numbers of ``scores`` are written over. Return the best,
    -inf if no task can be given a label.
    """
    J = tables.level.shape[0]
    work, weight = scores[-2 * J : -J], scores[-J:]
    price = clearing_levels(tables, everyone, count, n, work, weight)
    k, share = place_of(tables.at, n - 1.0)
    low, high = 0, J
    while weight[low] == 0.0:
        low += 1
    while weight[high - 1] == 0.0:
        high -= 1
    best = -np.inf
    for g in range(active[-1]):
        s = active[g]
        scores[g] = score[s]
        if score[s] == -np.inf:
            continue
        c = tables.column[s]
        u = tables.up[c] if c >= 0 else -1
        if u >= 0:
            gain = 0.0
            for j in range(low, high):
                now = tables.value[k, u, j] - tables.value[k, c, j]
                then = tables.value[k + 1, u, j] - tables.value[k + 1, c, j]
                gain += weight[j] * (now + share * (then - now))
            scores[g] = gain
        else:
            scores[g] = min(score[s], price + tables.cost)
        best = max(best, scores[g])
    return best


@uncounted
def break_tie_by_score(active: Ints, scores: Floats, floor: float, score: Floats) -> int:
    """Of the groups with at least ``floor`` the one with the best ``score``, then the lowest state."""
    chosen, second = -1, -np.inf
    for g in range(active[-1]):
        s = active[g]
        if scores[g] >= floor and (score[s] > second or (score[s] == second and s < chosen)):
            chosen, second = s, score[s]
    return chosen


@jit
def choose_by_levels(
    tables: LevelTables, score: Floats, everyone: Ints, active: Ints, count: Ints, n: float, tied: float, least: float,
    scores: Floats,
) -> int:  # fmt: skip
    """The state that one arrival of a live campaign gets, one of ``active``; -1 and -2 as ``choice.choose_group``."""
    best = score_by_levels(tables, score, everyone, active, count, n, scores)
    if best == -np.inf:
        return -1
    if best < least:
        return -2
    return break_tie_by_score(active, scores, best - tied, score)
