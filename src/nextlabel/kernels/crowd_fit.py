"""Channels of workers and truths of tasks learnt together from all labels, by variational Bayes.

====== ============ ========= ==============================================================================
symbol code         shape     meaning
====== ============ ========= ==============================================================================
--     task ...     (n,)      the labels: on which task, by which worker, which answer
--     gold         (K,)      the truth where it is known, else -1
p      belief       (K, C)    q(truth of task x)
n      seen         (W C, C)  expected counts, a row for each worker and answer
E log A weight      (W C, C)  expected log channel, laid out like ``seen``
====== ============ ========= ==============================================================================

    p_x[c]    ~ exp( E log share_c + sum over labels of E log A_j[c, y] )        (q of the truths)
    A_j[c, :] ~ Dirichlet(a[c, :] + n_j[c, :]),   share ~ Dirichlet(b + N)        (q of the channels)
    evidence  = sum_x log sum_c exp(...) - sum_j,c KL(A_j[c, :]) - KL(share)  <=  log P(labels | a)

plus, where the crowd's pseudo-counts a are learnt too (``crowd_mean``), the log prior density of where they stand.
Each sweep sets one factor to its optimum given the others, so the evidence bound never falls. A climb starts from the
votes: started elsewhere it may end with two truths exchanged or with every task in one class. The last ``SETTLING``
sweeps weigh each label by its worker's *other* labels (``crowd_sweep.settle``), because a label that helps to judge
itself makes beliefs too sure; these beliefs are what is kept, and the bound is that of the climb.
Where the crowd is learnt, the shares are held more firmly while few tasks have two labels (``stiffness``).
Guarantee: the bound climbs; deterministic. Cost: about 5 ns per sweep and label for two answers.
"""

from __future__ import annotations

import math

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.kernels.crowd_mean import learn_crowd_mean
from nextlabel.kernels.crowd_state import CrowdState, channel_of, clamp, new_state, stream_label
from nextlabel.kernels.crowd_sweep import Codes, settle, sweep
from nextlabel.kernels.digamma import digamma
from nextlabel.kernels.jit import jit

__all__ = ["CrowdState", "channel_of", "clamp", "new_state", "refit", "stiffness", "stream_label"]

#: Sweeps that weigh each label by its worker's other labels.
SETTLING = 2
#: What two labels on the same task tell about the shares of the truths, in tasks whose truth is known.
PAIR = 0.1


@jit
def refit(
    state: CrowdState,
    task: Ints,
    worker: Ints,
    answer: Ints,
    n: int,
    gold: Ints,
    sweeps: int,
    tolerance: float,
    warm: bool,
    bounds: Floats,
) -> tuple[int, bool]:
    """Fit the first ``n`` labels; ``state`` gets beliefs, counts and totals. Returns (sweeps made, converged).

    It starts from the votes, or with ``warm`` from the state's counts. ``bounds`` (sweeps,) gets the evidence bound of
    each sweep; the climb has converged once a sweep raises it by at most ``tolerance`` per label.
    """
    logp, belief, counts, total, pseudo, share_pseudo, base, hold = state
    K, C = belief.shape
    W = counts.shape[0]
    first, code = by_task(task, worker, answer, n, K, C)
    many = np.bincount(code, minlength=W * C)
    seen, weight = np.zeros((W * C, C)), np.zeros((W * C, C))
    if warm:
        for j in range(W):
            for c in range(C):
                for y in range(C):
                    seen[j * C + y, c] = counts[j, c, y]
    else:
        pseudo[:] = base
        start_from_votes(first, code, gold, belief, seen, total)
    if hold < math.inf:
        share_pseudo = share_pseudo * stiffness(first, gold)
        state = CrowdState(logp, belief, counts, total, pseudo, share_pseudo, base, hold)
    share, all_of_them = np.zeros(C), np.ones(W)
    made, converged = 0, False
    while made < sweeps and not converged:
        away = learn_crowd_mean(seen, base, hold, pseudo, all_of_them)
        gap = _expected_logs(seen, total, pseudo, share_pseudo, weight, share)
        bounds[made] = sweep(first, code, many, gold, weight, share, logp, belief, seen, total) - gap + away
        made += 1
        converged = made > 1 and bounds[made - 1] - bounds[made - 2] <= tolerance * n
    for _ in range(SETTLING):
        settle(first, code, gold, state, seen)
    for j in range(W):
        for c in range(C):
            for y in range(C):
                counts[j, c, y] = seen[j * C + y, c]
    return made, converged


@jit
def stiffness(first: Ints, gold: Ints) -> float:
    """By how much the prior of the shares of the truths is strengthened while tasks have few labels.

    A single label per task cannot tell a frequent truth from a crowd that favours an answer: only two labels on one
    task can. Counting every labelled task as evidence nevertheless lets a fit put all tasks in one class.
    """
    tasks, told = 0.0, 0.0
    for x in range(gold.shape[0]):
        n = first[x + 1] - first[x]
        if gold[x] >= 0:
            told += 1.0
        elif n > 0:
            told += PAIR * (n * (n - 1) // 2)
        if n > 0 or gold[x] >= 0:
            tasks += 1.0
    return max(1.0, tasks / max(told, PAIR))


@jit
def by_task(task: Ints, worker: Ints, answer: Ints, n: int, K: int, C: int) -> tuple[Ints, Codes]:
    """The labels grouped by task, in the order in which they came in (counting sort)."""
    first = np.zeros(K + 1, dtype=np.int64)
    for i in range(n):
        first[task[i] + 1] += 1
    for x in range(K):
        first[x + 1] += first[x]
    place = first[:K].copy()
    code = np.empty(n, dtype=np.uint32)
    for i in range(n):
        code[place[task[i]]] = worker[i] * C + answer[i]
        place[task[i]] += 1
    return first, code


@jit
def start_from_votes(first: Ints, code: Codes, gold: Ints, belief: Floats, seen: Floats, total: Floats) -> None:
    """Beliefs equal to the shares of the votes, gold where it is known, and the counts that follow."""
    K, C = belief.shape
    total[:] = 0.0
    for x in range(K):
        n = first[x + 1] - first[x]
        if n == 0 and gold[x] < 0:
            continue
        for c in range(C):
            belief[x, c] = 1.0 if c == gold[x] else 0.0
        if gold[x] < 0:
            for i in range(first[x], first[x + 1]):
                belief[x, code[i] % C] += 1.0 / n
        for c in range(C):
            total[c] += belief[x, c]
        for i in range(first[x], first[x + 1]):
            for c in range(C):
                seen[code[i], c] += belief[x, c]


@jit
def _expected_logs(
    seen: Floats, total: Floats, pseudo: Floats, share_pseudo: Floats, weight: Floats, share: Floats
) -> float:
    """``weight`` gets E log A, ``share`` E log share; returns the divergence of both from their priors."""
    C = pseudo.shape[0]
    gap = expected_row(total, share_pseudo, share)
    counts, row = np.empty(C), np.empty(C)
    for j in range(seen.shape[0] // C):
        for c in range(C):
            for y in range(C):
                counts[y] = seen[j * C + y, c]
            gap += expected_row(counts, pseudo[c], row)
            for y in range(C):
                weight[j * C + y, c] = row[y]
    return gap


@jit
def expected_row(counts: Floats, prior: Floats, out: Floats) -> float:
    """``out`` gets E log of a Dirichlet(prior + counts); returns its divergence from Dirichlet(prior)."""
    C = prior.shape[0]
    whole, before = 0.0, 0.0
    for y in range(C):
        whole += prior[y] + counts[y]
        before += prior[y]
    level = digamma(whole)
    gap = math.lgamma(whole) - math.lgamma(before)
    for y in range(C):
        out[y] = digamma(prior[y] + counts[y]) - level
        gap += math.lgamma(prior[y]) - math.lgamma(prior[y] + counts[y]) + counts[y] * out[y]
    return gap
