"""Which group the next arrival gets: the largest score of one policy, and how ties are broken.

Notation of ``kernels.policy``; l, in code ``ell``, counts the arrivals so far.
Guarantee: the largest score; ties as the policy says. Cost: a visit to each non-empty group.
"""

from __future__ import annotations

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.kernels.draws import draw_groups
from nextlabel.kernels.inputs import TIED
from nextlabel.kernels.jit import jit, uncounted
from nextlabel.kernels.levels import break_tie_by_score, score_by_levels
from nextlabel.kernels.policy import BY_CONFIDENCE, BY_DEFICIT, BY_DRAW, BY_LEVELS, PolicyArrays, StateScores


@uncounted
def score_of(score: Floats, rows: Floats, column: Ints, n: int, layer: int, share: float, s: int) -> float:
    """Score of state s with n arrivals left, interpolated between two time layers."""
    c = column[s]
    if c < 0:
        fixed: float = score[s]
        return fixed
    row = min(n, rows.shape[0]) - 1
    value: float = rows[row, c, layer]
    if share > 0.0:
        value += share * (rows[row, c, layer + 1] - value)
    return value


@uncounted
def confidence(facts: Floats, m: int, i: int, log_n: float) -> float:
    """UCB1-tuned: base + sqrt(ln N / m min(1/4, v)), v = phat (1 - phat) + sqrt(2 ln N / m); m = 0 comes first."""
    if m == 0:
        return np.inf
    phat = facts[i, 1]
    v = phat * (1.0 - phat) + np.sqrt(2.0 * log_n / m)
    value: float = facts[i, 0] + np.sqrt(log_n / m * min(0.25, v))
    return value


@uncounted
def score_groups(
    policy: PolicyArrays, by_state: StateScores, level: Ints, child: Ints, active: Ints, count: Ints, n: int, ell: int,
    layer: int, share: float, k_draw: np.uint64, scores: Floats,
) -> float:  # fmt: skip
    """scores[g] = score of the group active[g]; return the best, -inf if no task can be given a label.

    BY_LEVELS ``share`` is the number of labels that will still be given out, and ``scores`` has room for twice the
    levels behind the groups.
    """
    if policy.mode == BY_LEVELS:
        return score_by_levels(policy.levels, by_state.score, active, active, count, share, scores)
    if policy.mode == BY_DRAW:
        facts, quantiles = policy.facts, policy.quantiles
        return draw_groups(facts, quantiles, policy.tied, by_state, child, active, count, k_draw, ell, scores)
    best = -np.inf
    if policy.mode == BY_CONFIDENCE:
        log_n = np.log(max(ell, 1))
        for g in range(active[-1]):
            s = active[g]
            scores[g] = by_state.score[s]
            if scores[g] > -np.inf:
                i = by_state.node[s]
                scores[g] = confidence(policy.facts, level[i] + by_state.flight[s], i, log_n)
            best = max(best, scores[g])
        return best
    for g in range(active[-1]):
        scores[g] = score_of(by_state.score, policy.rows, by_state.column, n, layer, share, active[g])
        best = max(best, scores[g])
    return best


@uncounted
def break_tie(
    policy: PolicyArrays, by_state: StateScores, active: Ints, count: Ints, scores: Floats, best: float, given: Floats,
    ell: int, u: float,
) -> int:  # fmt: skip
    """A group among those whose score ties with the best: by deficit, by lot among their tasks, or the lowest state."""
    groups = active[-1]
    floor = best - policy.tied
    if policy.mode == BY_DEFICIT:
        return break_tie_by_deficit(active, scores, floor, policy.planned, by_state, given, ell)
    if policy.mode == BY_LEVELS:
        return break_tie_by_score(active, scores, floor, by_state.score)
    chosen = -1
    if not policy.random_ties:
        for g in range(groups):
            if scores[g] >= floor and (chosen < 0 or active[g] < chosen):
                chosen = active[g]
        return chosen
    total = 0
    for g in range(groups):
        if scores[g] >= floor:
            total += count[active[g]]
    draw = u * total
    for g in range(groups):
        if scores[g] >= floor:
            chosen = active[g]
            draw -= count[chosen]
            if draw < 0.0:
                break
    return chosen


@uncounted
def break_tie_by_deficit(
    active: Ints, scores: Floats, floor: float, planned: Floats, by_state: StateScores, given: Floats, ell: int
) -> int:
    """The tied group that lacks most of what the relaxed solution gave it by now; then the better static score."""
    chosen, lack, second = -1, -np.inf, -np.inf
    for g in range(active[-1]):
        if scores[g] < floor:
            continue
        s = active[g]
        c = by_state.column[s]
        short = planned[ell, c] - given[c] if c >= 0 else -np.inf
        if short > lack + TIED or (short > lack - TIED and by_state.score[s] > second):
            chosen, lack, second = s, short, by_state.score[s]
    if chosen >= 0 and by_state.column[chosen] >= 0:
        given[by_state.column[chosen]] += 1.0
    return chosen


@jit
def choose_group(
    policy: PolicyArrays, by_state: StateScores, level: Ints, child: Ints, active: Ints, count: Ints, n: int, ell: int,
    k_draw: np.uint64, u: float, least: float, scores: Floats,
) -> int:  # fmt: skip
    """The state that one arrival gets, for a live campaign.

    -1 if no task can be given a label, -2 if none is worth ``least``.
    """
    best = score_groups(policy, by_state, level, child, active, count, n, ell, 0, 0.0, k_draw, scores)
    if best == -np.inf:
        return -1
    if best < least:
        return -2
    given = np.zeros(policy.planned.shape[1])
    return break_tie(policy, by_state, active, count, scores, best, given, ell, u)
