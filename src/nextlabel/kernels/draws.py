"""Thompson's scores: draws of theta R1 + (1 - theta) R2 from the posterior of every task, group by group.

========= ========= ============ ===========================================================
symbol    code      shape        meaning
========= ========= ============ ===========================================================
R2, R1    facts     (nodes, 2)   gains of the answers 0 and 1; 0 on the last level
--        quantiles (nodes, Q)   theta at levels whose logits are evenly spaced over [-Z_END, Z_END]
--        cap       (states,)    the largest gain that a draw in state s can come to
========= ========= ============ ===========================================================

With nothing in flight the score is linear in theta, so the best of g draws is one draw at level u^(1/g). Labels in
flight are drawn from theta, task by task. A group whose cap is below a score already drawn cannot win: it is not drawn.
Draw k of arrival l is the uniform of (l, k), counted over all groups in their order, drawn or not, so that what is left
out changes no other draw.
Guarantee: exact in distribution up to the interpolation of the quantiles. Cost: a visit to each group, a draw for those
that may win.
"""

from __future__ import annotations

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.kernels.jit import uncounted
from nextlabel.kernels.policy import StateScores
from nextlabel.kernels.random import uniform

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
