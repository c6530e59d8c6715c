"""Which group the next arrival gets: the scores of one policy as tables, and how ties are broken.

========= ========= ==================== ===========================================================
symbol    code      shape                meaning
========= ========= ==================== ===========================================================
(i, w)    s         --                   state w * nodes + i; nodes of all classes are numbered through
--        static    (W + 1, nodes)       score of a state whatever n is
--        rows      (R, core, layers)    score of a core state with n arrivals left (last row: all larger n)
--        core      (W + 1, nodes)       number of a core state, -1 elsewhere (there ``static`` counts)
l         ell       --                   arrivals so far
========= ========= ==================== ===========================================================

Guarantee: the largest score; ties as the tables say. Cost: a visit to each non-empty group.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.kernels.draws import draw_groups, most_drawn
from nextlabel.kernels.jit import jit
from nextlabel.kernels.uncounted import uncounted

#: Deficits closer than this are equal.
EVEN = 1e-9
#: Ways to choose: by the tables; by the tables among the groups that lack most of their planned share; by an upper
#: confidence bound that grows with the labels given so far; by a draw from the posterior.
BY_TABLE, BY_DEFICIT, BY_CONFIDENCE, BY_DRAW = 0, 1, 2, 3


class Tables(NamedTuple):
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
    quantiles: Floats  # (nodes, Q) BY_DRAW: theta at the logit-spaced levels of ``draws.spaced_quantile``


class Lookup(NamedTuple):
    """The tables by state s, so that a visit to a group neither divides nor asks whether the task is full."""

    score: Floats  # (states,) score whatever n is; -inf where a task can be given no more labels
    column: Ints  # (states,) column of ``rows``, -1 where ``score`` counts
    node: Ints  # (states,)
    flight: Ints  # (states,)
    cap: Floats  # (states,) BY_DRAW: no draw is above it


@jit
def look_up(tables: Tables, level: Ints, limit: Ints, child: Ints) -> Lookup:
    """Tables by state."""
    flights, nodes = tables.static.shape
    states = flights * nodes
    score = np.full(states, -np.inf)
    column = np.full(states, -1, dtype=np.int64)
    node = np.zeros(states, dtype=np.int64)
    flight = np.zeros(states, dtype=np.int64)
    for w in range(flights):
        for i in range(nodes):
            s = w * nodes + i
            node[s], flight[s] = i, w
            if w < flights - 1 and level[i] + w < limit[i]:
                score[s] = tables.static[w, i]
                if tables.rows.shape[0] > 0:
                    column[s] = tables.core[w, i]
    cap = most_drawn(tables.facts, child, flights) if tables.mode == BY_DRAW else np.zeros(0)
    return Lookup(score, column, node, flight, cap)


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
    tables: Tables,
    lookup: Lookup,
    level: Ints,
    child: Ints,
    active: Ints,
    count: Ints,
    n: int,
    ell: int,
    layer: int,
    share: float,
    k_draw: np.uint64,
    scores: Floats,
) -> float:
    """scores[g] = score of the group active[g]; return the best, -inf if no task can be given a label."""
    if tables.mode == BY_DRAW:
        return draw_groups(
            tables.facts, tables.quantiles, tables.tied, lookup.score, lookup.node, lookup.flight, lookup.cap, child,
            active, count, k_draw, ell, scores,
        )  # fmt: skip
    best = -np.inf
    if tables.mode == BY_CONFIDENCE:
        log_n = np.log(max(ell, 1))
        for g in range(active[-1]):
            s = active[g]
            scores[g] = lookup.score[s]
            if scores[g] > -np.inf:
                i = lookup.node[s]
                scores[g] = confidence(tables.facts, level[i] + lookup.flight[s], i, log_n)
            best = max(best, scores[g])
        return best
    for g in range(active[-1]):
        scores[g] = score_of(lookup.score, tables.rows, lookup.column, n, layer, share, active[g])
        best = max(best, scores[g])
    return best


@uncounted
def pick(
    active: Ints, scores: Floats, count: Ints, best: float, tables: Tables, lookup: Lookup, given: Floats, ell: int,
    u: float,
) -> int:  # fmt: skip
    """A group among those whose score ties with the best: by deficit, by lot among their tasks, or the lowest state."""
    groups = active[-1]
    floor = best - tables.tied
    if tables.mode == BY_DEFICIT:
        return pick_by_deficit(active, scores, floor, tables.planned, lookup, given, ell)
    chosen = -1
    if not tables.random_ties:
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
def pick_by_deficit(
    active: Ints, scores: Floats, floor: float, planned: Floats, lookup: Lookup, given: Floats, ell: int
) -> int:
    """The tied group that lacks most of what the relaxed solution gave it by now; then the better static score."""
    chosen, lack, second = -1, -np.inf, -np.inf
    for g in range(active[-1]):
        if scores[g] < floor:
            continue
        s = active[g]
        c = lookup.column[s]
        short = planned[ell, c] - given[c] if c >= 0 else -np.inf
        if short > lack + EVEN or (short > lack - EVEN and lookup.score[s] > second):
            chosen, lack, second = s, short, lookup.score[s]
    if chosen >= 0 and lookup.column[chosen] >= 0:
        given[lookup.column[chosen]] += 1.0
    return chosen
