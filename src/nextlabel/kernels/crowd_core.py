"""Channels and truths learnt from all labels where most workers are alike and some are not: a core and free rows.

====== ============ ========= ==============================================================================
symbol code         shape     meaning
====== ============ ========= ==============================================================================
a      pseudo       (C, C)    pseudo-counts of a channel with free rows, as given
S m    core         (C, C)    pseudo-counts of a channel of the core: what its workers are like, S labels per truth
r      part         (W,)      q(worker j is of the core); before any label ``SHARE``
n      seen         (W C, C)  expected counts, a row for each worker and answer
E log A weight      (W C, C)  expected log channel, laid out like ``seen``
====== ============ ========= ==============================================================================

    A_j[c, :] ~ Dirichlet(S m_c)  with probability ``SHARE``,  Dirichlet(a_c)  otherwise
    r_j       ~ SHARE B(S m + n_j) / B(S m)   against   (1 - SHARE) B(a + n_j) / B(a)
    E log A_j = r_j E[log A_j | core] + (1 - r_j) E[log A_j | free]

the rest as in ``crowd_fit``. Each truth has a row of its own in a channel, so that with many answers a worker shows
little of each; what the others of the core have shown fills in. Someone who answers in a way of their own has
free rows: the evidence decides. ``m`` is learnt (``crowd_mean``) from an idea worth ``HELD`` labels per truth.
What is kept of a worker are counts to which r_j (S m - a) is added: whoever reads them sees a channel like any other.
Guarantee: the evidence bound never falls in the climb; deterministic. Cost: that of ``crowd_fit.refit``, and twice its
O(W C^2) for the channels.
"""

from __future__ import annotations

import math

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.kernels.crowd_fit import (
    SETTLING,
    by_task,
    expected_row,
    learn_crowd_mean,
    settle,
    start_from_votes,
    stiffness,
    sweep,
)
from nextlabel.kernels.crowd_state import CrowdState
from nextlabel.kernels.jit import jit

#: The probability that a worker is of the core before a label of theirs is seen.
SHARE = 0.5
#: Labels per truth that the first idea of the core is worth.
HELD = 10.0


@jit
def refit_with_core(
    state: CrowdState,
    task: Ints,
    worker: Ints,
    answer: Ints,
    n: int,
    gold: Ints,
    strength: float,
    sweeps: int,
    tolerance: float,
    bounds: Floats,
) -> tuple[int, bool]:
    """Fit the first ``n`` labels; ``state`` gets beliefs, counts and totals. Returns (sweeps made, converged).

    It starts from the votes. ``strength`` is S. ``bounds`` (sweeps,) gets the evidence bound of each sweep; the climb
    has converged once a sweep raises it by at most ``tolerance`` per label.
    """
    logp, belief, counts, total, pseudo, share_pseudo, base, hold = state
    K, C = belief.shape
    W = counts.shape[0]
    first, code = by_task(task, worker, answer, n, K, C)
    many = np.bincount(code, minlength=W * C)
    seen, weight, share = np.zeros((W * C, C)), np.zeros((W * C, C)), np.zeros(C)
    pseudo[:] = base
    start_from_votes(first, code, gold, belief, seen, total)
    share_pseudo = share_pseudo * stiffness(first, gold)
    state = CrowdState(logp, belief, counts, total, pseudo, share_pseudo, base, hold)
    idea = np.empty((C, C))
    for c in range(C):
        idea[c] = base[c] * (strength / base[c].sum())
    core, part = idea.copy(), np.full(W, SHARE)
    made, converged = 0, False
    while made < sweeps and not converged:
        away = learn_crowd_mean(seen, idea, HELD, core, part)
        gap = expected_row(total, share_pseudo, share) + _expected_logs(seen, core, pseudo, part, weight)
        bounds[made] = sweep(first, code, many, gold, weight, share, logp, belief, seen, total) - gap + away
        made += 1
        converged = made > 1 and bounds[made - 1] - bounds[made - 2] <= tolerance * n
    for _ in range(SETTLING):
        _add_core(seen, core, pseudo, part)
        settle(first, code, gold, state, seen)
    _add_core(seen, core, pseudo, part)
    for j in range(W):
        for c in range(C):
            for y in range(C):
                counts[j, c, y] = seen[j * C + y, c]
    return made, converged


@jit
def _expected_logs(seen: Floats, core: Floats, free: Floats, part: Floats, weight: Floats) -> float:
    """``part`` gets r and ``weight`` E log A; returns the divergence of both from their priors."""
    C = core.shape[0]
    gap = 0.0
    counts, alike, own = np.empty(C), np.empty((C, C)), np.empty((C, C))
    for j in range(part.shape[0]):
        from_core, from_free, odds = 0.0, 0.0, math.log(SHARE / (1.0 - SHARE))
        for c in range(C):
            for y in range(C):
                counts[y] = seen[j * C + y, c]
            from_core += expected_row(counts, core[c], alike[c])
            from_free += expected_row(counts, free[c], own[c])
            for y in range(C):
                odds += counts[y] * (alike[c, y] - own[c, y])
        odds -= from_core - from_free
        r = 1.0 / (1.0 + math.exp(-odds)) if odds > 0.0 else math.exp(odds) / (1.0 + math.exp(odds))
        part[j] = r
        for c in range(C):
            for y in range(C):
                weight[j * C + y, c] = r * alike[c, y] + (1.0 - r) * own[c, y]
        gap += r * from_core + (1.0 - r) * from_free + _divergence(r, SHARE) + _divergence(1.0 - r, 1.0 - SHARE)
    return gap


@jit
def _divergence(q: float, p: float) -> float:
    return q * math.log(q / p) if q > 0.0 else 0.0


@jit
def _add_core(seen: Floats, core: Floats, free: Floats, part: Floats) -> None:
    """Add to each worker's counts what being of the core is worth for them."""
    C = core.shape[0]
    for j in range(part.shape[0]):
        for c in range(C):
            for y in range(C):
                seen[j * C + y, c] += part[j] * max(core[c, y] - free[c, y], 0.0)
