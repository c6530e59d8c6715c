"""A policy as arrays: its tables, and the same by state.

========= ========= ==================== ===========================================================
symbol    code      shape                meaning
========= ========= ==================== ===========================================================
(i, w)    s         --                   state w * nodes + i; nodes of all classes are numbered through
--        static    (W + 1, nodes)       score of a state whatever n is
--        rows      (R, core, layers)    score of a core state with n arrivals left (last row: all larger n)
--        core      (W + 1, nodes)       number of a core state, -1 elsewhere (there ``static`` counts)
========= ========= ==================== ===========================================================
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.kernels.jit import jit
from nextlabel.kernels.levels import LevelTables

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
    quantiles: Floats  # (nodes, Q) BY_DRAW: theta at the logit-spaced levels of ``draws.spaced_quantile``
    levels: LevelTables  # BY_LEVELS
    spare: tuple[float, float]  # if the second is not 0, ``tau`` holds -exp(-second (time left - (n - 1) / first))


@jit
def layer_at(policy: PolicyArrays, n: int, left: float) -> tuple[int, float]:
    """Layer of ``rows`` at or below the time left, with n arrivals left, and the share of the next one."""
    arrivals, rate = policy.spare
    if rate > 0.0:
        left = -np.exp(min(rate * ((n - 1) / arrivals - left), 700.0))
    layer = min(max(np.searchsorted(policy.tau, left, side="right") - 1, 0), policy.tau.shape[0] - 2)
    share = (left - policy.tau[layer]) / (policy.tau[layer + 1] - policy.tau[layer])
    return layer, min(max(share, 0.0), 1.0)


class StateScores(NamedTuple):
    """The tables by state s, so that a visit to a group neither divides nor asks whether the task is full."""

    score: Floats  # (states,) score whatever n is; -inf where a task can be given no more labels
    column: Ints  # (states,) column of ``rows``, -1 where ``score`` counts
    node: Ints  # (states,)
    flight: Ints  # (states,)
    cap: Floats  # (states,) BY_DRAW: no draw is above it


@jit
def most_drawn(facts: Floats, child: Ints, flights: int) -> Floats:
    """(flights * nodes,) the larger gain, after the luckiest write_outcome of the labels in flight."""
    nodes = facts.shape[0]
    cap = np.zeros(flights * nodes)
    for i in range(nodes):
        cap[i] = max(facts[i, 0], facts[i, 1])
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
    for w in range(flights):
        for i in range(nodes):
            s = w * nodes + i
            node[s], flight[s] = i, w
            if w < flights - 1 and level[i] + w < limit[i]:
                score[s] = policy.static[w, i]
                if policy.rows.shape[0] > 0:
                    column[s] = policy.core[w, i]
    cap = most_drawn(policy.facts, child, flights) if policy.mode == BY_DRAW else np.zeros(0)
    return StateScores(score, column, node, flight, cap)
