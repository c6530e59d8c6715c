"""Which group the next arrival gets: the scores of one policy, the largest of them, and how ties are broken.

========= ========= ==================== ===========================================================
symbol    code      shape                meaning
========= ========= ==================== ===========================================================
(i, w)    s         --                   state w * nodes + i; nodes of all classes are numbered through
l         ell       --                   arrivals so far
--        static    (W + 1, nodes)       score of a state whatever n is
--        rows      (R, core, layers)    score of a core state with n arrivals left (last row: all larger n)
--        core      (W + 1, nodes)       number of a core state, -1 elsewhere (there ``static`` counts)
R2, R1    facts     (nodes, 2)           BY_DRAW: gains of the answers 0 and 1; 0 on the last level
--        quantiles (nodes, Q)           BY_DRAW: theta at levels whose logits are evenly spaced over [-Z_END, Z_END]
--        cap       (states,)            BY_DRAW: the largest gain that a draw in state s can come to
========= ========= ==================== ===========================================================

Thompson's scores are draws of theta R1 + (1 - theta) R2 from the posterior of every task, group by group. With nothing
in flight the score is linear in theta, so the best of g draws is one draw at level u^(1/g). Labels in flight are drawn
from theta, task by task. A group whose cap is below a score already drawn cannot win: it is not drawn. Draw k of
arrival l is the uniform of (l, k), counted over all groups in their order, drawn or not, so that what is left out
changes no other draw.
Guarantee: the largest score; ties as the policy says; draws are exact in distribution up to the interpolation of the
quantiles. Cost: a visit to each non-empty group, and a draw for those that may win.

BY_LEVELS scores at the price that clears: how dear labels are now, from where all tasks stand.

========= ========= ============ ======================================================================
symbol    code      shape        meaning
========= ========= ============ ======================================================================
n_k       at        (R,)         arrivals left at which values are known, rising from 0; linear in between
k_j       level     (J,)         multiples of one path of prices, rising
V_j(s,n)  value     (R, C, J)    value of a task in state s with n arrivals left, at k_j times the path
s2_j(s,n) variance  (R, C, J)    variance of the labels that such a task will still take at k_j times the path
P_j(n)    charge    (R, J)       k_j times the sum of the path's last n prices
--        column    (states,)    where a state stands among the C, -1 past the edge of the sweep
--        up        (C,)         the same task with one more label in flight, -1 where none is offered
========= ========= ============ ======================================================================

    F_j = sum over tasks of V_j(s_x, n) + P_j(n)

is the bound of the campaign at level k_j, convex in k_j. Its slope, in units of the path's mean price, is n - D_j: the
labels left less those that the tasks would take at that level. What they will take is a sum of independent numbers with
mean D_j and variance S_j^2, the sum of s2_j: the level that will clear in the end is below k_j if they take at most n,

    P(level <= k_j) = Phi((n - D_j) / S_j)                                      (docs/theory.md, section 12).

The score of a state is the mean over these levels of its advantage V_j(w + 1, n - 1) - V_j(w, n - 1).
Guarantee: none of optimality. Cost: 2 J multiply-adds for each non-empty group.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.kernels.events import uniform
from nextlabel.kernels.inputs import TIED, SlackTime, between
from nextlabel.kernels.jit import jit, uncounted


class LevelTables(NamedTuple):
    """Values of all states at several levels of the prices."""

    at: Floats
    level: Floats
    value: Floats
    variance: Floats
    charge: Floats
    column: Ints
    up: Ints
    cost: float  # what a label costs beside its price


#: For policies that have none.
NO_LEVELS = LevelTables(
    np.zeros(0), np.zeros(0), np.zeros((0, 0, 0)), np.zeros((0, 0, 0)), np.zeros((0, 0)),
    np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), 0.0,
)  # fmt: skip


@uncounted
def clearing_levels(tables: LevelTables, active: Ints, count: Ints, n: float, work: Floats, weight: Floats) -> float:
    """weight[j] = chance of level j; return the mean of the prices to come. ``work`` (J,) is written over."""
    J = tables.level.shape[0]
    k, share = between(tables.at, n)
    column, value, variance, charge, level = tables.column, tables.value, tables.variance, tables.charge, tables.level
    for j in range(J):
        work[j] = charge[k, j] + share * (charge[k + 1, j] - charge[k, j])
        weight[j] = 0.0
    path = work[0] / level[0]
    if path <= 0.0:
        weight[0] = 1.0
        return 0.0
    for g in range(active[-1]):
        c = column[active[g]]
        if c >= 0:
            low, high = count[active[g]] * (1.0 - share), count[active[g]] * share
            for j in range(J):
                work[j] += low * value[k, c, j] + high * value[k + 1, c, j]
                weight[j] += low * variance[k, c, j] + high * variance[k + 1, c, j]
    mean, below = 0.0, 0.0
    for j in range(J):
        chance = 1.0
        if j < J - 1:
            spare = n * (work[j + 1] - work[j]) / ((level[j + 1] - level[j]) * path)
            spread = math.sqrt(weight[j] + weight[j + 1] + 1e-12)  # of both ends: sqrt(2) times their mean's
            chance = max(below, 0.5 + 0.5 * math.erf(spare / spread))
        weight[j], below = chance - below, chance
        mean += weight[j] * level[j]
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
    k, share = between(tables.at, n - 1.0)
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


#: Ways to choose: by the tables; by the tables among the groups that lack most of their planned share; by an upper
#: confidence bound that grows with the labels given so far; by a draw from the posterior; at the price that clears.
BY_TABLE, BY_DEFICIT, BY_CONFIDENCE, BY_DRAW, BY_LEVELS = 0, 1, 2, 3, 4


class PolicyArrays(NamedTuple):
    """Scores of one policy."""

    static: Floats
    rows: Floats
    core: Ints
    tau: Floats
    random_ties: bool
    mode: int
    planned: Floats  # (U, core) cumulative share of each core state, for BY_DEFICIT
    tied: float  # scores closer than this are tied
    price: Floats  # (U,) an arrival whose best score is below it is turned away (-inf: never)
    facts: Floats  # (nodes, 2) BY_CONFIDENCE: what is added to the bonus, and phat; BY_DRAW: gains of answers 0 and 1
    quantiles: Floats  # (nodes, Q) BY_DRAW: theta at the logit-spaced levels of ``spaced_quantile``
    levels: LevelTables  # BY_LEVELS
    slack_time: SlackTime  # how the layers ``tau`` stand for arrivals and time left


class StateScores(NamedTuple):
    """The tables by state s, so that a visit to a group neither divides nor asks whether the task is full."""

    score: Floats  # (states,) score whatever n is; -inf where a task can be given no more labels
    column: Ints  # (states,) column of ``rows``, -1 where ``score`` counts
    node: Ints  # (states,)
    flight: Ints  # (states,)
    cap: Floats  # (states,) BY_DRAW: no draw is above it


@jit
def most_drawn(facts: Floats, child: Ints, flights: int) -> Floats:
    """(flights * nodes,) the larger gain, after the luckiest outcome of the labels in flight."""
    nodes = facts.shape[0]
    cap = np.zeros(flights * nodes)
    cap[:nodes] = np.maximum(facts[:, 0], facts[:, 1])
    for s in range(nodes, cap.shape[0]):
        below, i = s - nodes, s % nodes
        cap[s] = -np.inf
        for j in range(2):
            cap[s] = max(cap[s], cap[below - i + child[i, j]] if child[i, j] > i else cap[below])
    return cap


@jit
def scores_by_state(policy: PolicyArrays, level: Ints, limit: Ints, child: Ints) -> StateScores:
    """The tables of a policy by state."""
    flights, nodes = policy.static.shape
    states = flights * nodes
    score = np.full(states, -np.inf)
    column = np.full(states, -1, dtype=np.int64)
    node = np.zeros(states, dtype=np.int64)
    flight = np.zeros(states, dtype=np.int64)
    for s in range(states):
        w, i = s // nodes, s % nodes
        node[s], flight[s] = i, w
        if w < flights - 1 and level[i] + w < limit[i]:
            score[s] = policy.static[w, i]
            column[s] = policy.core[w, i] if policy.rows.shape[0] > 0 else -1
    cap = most_drawn(policy.facts, child, flights) if policy.mode == BY_DRAW else np.zeros(0)
    return StateScores(score, column, node, flight, cap)


#: Quantiles are kept for logits of the level up to this.
Z_END = 30.0


@uncounted
def spaced_quantile(quantiles: Floats, i: int, u: float) -> float:
    """theta at level u, linear between levels 1 / (1 + e^-z) with z evenly spaced over [-Z_END, Z_END]."""
    last = quantiles.shape[1] - 1
    z = np.log(u / (1.0 - u)) if u < 1.0 else Z_END
    at = (min(max(z, -Z_END), Z_END) + Z_END) / (2.0 * Z_END) * last
    k = min(int(at), last - 1)
    value: float = quantiles[i, k] + (at - k) * (quantiles[i, k + 1] - quantiles[i, k])
    return value


@uncounted
def drawn(
    facts: Floats, quantiles: Floats, child: Ints, w: int, i: int, members: int, key: np.uint64, ell: int, draws: int
) -> float:
    """The best of ``members`` draws in state (i, w); ``draws`` were used up before."""
    if w == 0:
        u = uniform(key, ell, draws) ** (1.0 / members)
        slope = facts[i, 1] - facts[i, 0]
        theta = spaced_quantile(quantiles, i, u if slope > 0.0 else 1.0 - u)
        value: float = facts[i, 0] + theta * slope
        return value
    best = -np.inf
    for _ in range(members):
        theta = spaced_quantile(quantiles, i, uniform(key, ell, draws))
        draws += 1
        node = i
        for _label in range(w):
            answer = 1 if uniform(key, ell, draws) < theta else 0
            draws += 1
            if child[node, answer] > node:
                node = child[node, answer]
        best = max(best, facts[node, 0] + theta * (facts[node, 1] - facts[node, 0]))
    return best


@uncounted
def draw_groups(
    facts: Floats, quantiles: Floats, tied: float, by_state: StateScores, child: Ints, active: Ints, count: Ints,
    key: np.uint64, ell: int, scores: Floats,
) -> float:  # fmt: skip
    """scores[g] = the best draw of group active[g], -inf if it cannot win or its tasks are full; return the best."""
    score, node, flight, cap = by_state.score, by_state.node, by_state.flight, by_state.cap
    first, before, draws = -1, 0, 0
    for g in range(active[-1]):
        s = active[g]
        scores[g] = -np.inf
        if score[s] > -np.inf:
            if first < 0 or cap[s] > cap[active[first]]:
                first, before = g, draws
            draws += 1 if flight[s] == 0 else count[s] * (flight[s] + 1)
    if first < 0:
        return -np.inf
    # The group that can gain most is drawn first: it tells how much the others need.
    best = -np.inf
    draws = 0
    for k in range(-1, active[-1]):
        g = first if k < 0 else k
        s = active[g]
        if score[s] > -np.inf:
            if k < 0 or (k != first and cap[s] >= best - tied):
                at = before if k < 0 else draws
                scores[g] = drawn(facts, quantiles, child, flight[s], node[s], count[s], key, ell, at)
                best = max(best, scores[g])
            if k >= 0:
                draws += 1 if flight[s] == 0 else count[s] * (flight[s] + 1)
    return best


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
    policy: PolicyArrays, by_state: StateScores, level: Ints, child: Ints, everyone: Ints, active: Ints, count: Ints,
    n: int, ell: int, layer: int, share: float, k_draw: np.uint64, scores: Floats,
) -> float:  # fmt: skip
    """scores[g] = score of the group active[g]; return the best, -inf if no task can be given a label.

    BY_LEVELS ``share`` is the number of labels that will still be given out, ``everyone`` are all groups, and
    ``scores`` has room for twice the levels behind the groups.
    """
    if policy.mode == BY_LEVELS:
        return score_by_levels(policy.levels, by_state.score, everyone, active, count, share, scores)
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
    policy: PolicyArrays, by_state: StateScores, level: Ints, child: Ints, everyone: Ints, active: Ints, count: Ints,
    n: int, ell: int, layer: int, share: float, k_draw: np.uint64, u: float, least: float, given: Floats,
    scores: Floats,
) -> int:  # fmt: skip
    """The state that an arrival gets, one of ``active`` among ``everyone``; ties by the uniform number u.

    -1 if no task can be given a label, -2 if none is worth ``least``.
    """
    best = score_groups(policy, by_state, level, child, everyone, active, count, n, ell, layer, share, k_draw, scores)
    if best == -np.inf or best < least:
        return -1 if best == -np.inf else -2
    return break_tie(policy, by_state, active, count, scores, best, given, ell, u)
