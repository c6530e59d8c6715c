"""Channels of workers and truths of tasks learnt together from all labels, by variational Bayes.

====== ============ ========= ==============================================================================
symbol code         shape     meaning
====== ============ ========= ==============================================================================
--     task ...     (n,)      the labels: on which task, by which worker, which answer
--     gold         (K,)      the truth where it is known, else -1
p      belief       (K, C)    q(truth of task x)
n      seen         (W C, C)  expected counts, a row for each worker and answer
E log A weight      (W C, C)  expected log channel, laid out like ``seen``
--     first        (K + 1,)  where each task's labels begin in ``code``
--     code         (n,)      worker * C + answer of each label, grouped by task
--     many         (W C,)    number of labels with each code
a      pseudo       (C, C)    pseudo-counts of a channel; a[c, :] = s_c m_c with the strength s_c fixed
m0     base         (C, C)    the prior idea of m, as pseudo-counts
k      hold         --        labels that each row of m0 is worth
r      part         (W,)      how far each worker is one of those whose mean m is; 1 where all are
====== ============ ========= ==============================================================================

    p_x[c]    ~ exp( E log share_c + sum over labels of E log A_j[c, y] )        (q of the truths: ``sweep``)
    A_j[c, :] ~ Dirichlet(a[c, :] + n_j[c, :]),   share ~ Dirichlet(b + N)        (q of the channels)
    evidence  = sum_x log sum_c exp(...) - sum_j,c KL(A_j[c, :]) - KL(share)  <=  log P(labels | a)

plus, where the crowd's pseudo-counts a are learnt too, the log prior density of where they stand. Each sweep sets one
factor to its optimum given the others, so the evidence bound never falls. The fit starts from the votes: started
elsewhere it may end with two truths exchanged or with every task in one class. The last ``SETTLING`` sweeps weigh each
label by its worker's *other* labels (``settle``, collapsed variational Bayes of order zero),

    p_x[c] ~ (b_c + N_c - p_x[c]) prod over labels of (a[c, y] + n_j[c, y] - p_x[c]) / (... summed over y),

because a label that helps to judge itself makes beliefs too sure; these beliefs are what is kept, and the bound is that
of the fit. Where the crowd is learnt, the shares are held more firmly while few tasks have two labels (``stiffness``).

What the crowd is like on average is learnt from the expected counts of all workers (``learn_crowd_mean``):

    F(m_c) = sum_j r_j log [ B(a_c + n_jc) / B(a_c) ] + k sum_y m0_cy log(m_cy / m0_cy),

B being the multivariate beta function, is the evidence bound as a function of m_c, the channels being at their optimum.
One step of the fixed point m_cy ~ k m0_cy + sum_j r_j a_cy [ psi(a_cy + n_jcy) - psi(a_cy) ] of [Min00] is proposed and
taken as far as F does not fall, within m_cc >= m0_cc: a crowd may turn out better than thought, not worse. Where labels
are few, a row at chance with nearly all tasks in its class explains random answers better than the truth does, and a
fit that may go there does (docs/decisions/0027).
Guarantee: the bound never falls; deterministic. Cost: about 5 ns per sweep and label for two answers, and O(W C^2)
digamma and log Gamma.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from nextlabel.arrays import Floats, Ints
from nextlabel.kernels.crowd_state import CrowdState, channel_of, clamp, new_state, normalise, stream_label
from nextlabel.kernels.jit import jit


@jit
def digamma(x: float) -> float:
    """The derivative of log Gamma at x > 0."""
    down = 0.0
    while x < 10.0:
        down += 1.0 / x
        x += 1.0
    f = 1.0 / (x * x)
    tail = f * (1.0 / 12.0 - f * (1.0 / 120.0 - f * (1.0 / 252.0 - f * (1.0 / 240.0 - f * (1.0 / 132.0)))))
    return math.log(x) - 0.5 / x - tail - down


#: A step that would lower F is halved so many times before it is left out.
HALVINGS = 4


@jit
def learn_crowd_mean(seen: Floats, base: Floats, hold: float, pseudo: Floats, part: Floats) -> float:
    """One step for each row of ``pseudo``; returns the log prior density of where it stands, relative to ``base``."""
    if hold == math.inf:
        return 0.0
    C = base.shape[0]
    away = 0.0
    wish, trial = np.empty(C), np.empty(C)
    for c in range(C):
        strength = base[c].sum()
        whole = 0.0
        for y in range(C):
            level = digamma(pseudo[c, y])
            wish[y] = hold * base[c, y] / strength
            for k in range(y, seen.shape[0], C):
                if seen[k, c] > 0.0:
                    wish[y] += part[k // C] * (pseudo[c, y] * (digamma(pseudo[c, y] + seen[k, c]) - level))
            whole += wish[y]
        now = _bound(seen, c, pseudo[c], base[c], hold, part)
        scale = strength / whole
        for y in range(C):
            wish[y] *= scale
        if wish[c] < base[c, c]:
            for y in range(C):
                wish[y] = base[c, y]
        step = 1.0
        for _ in range(HALVINGS + 1):
            for y in range(C):
                trial[y] = (1.0 - step) * pseudo[c, y] + step * wish[y]
            if _bound(seen, c, trial, base[c], hold, part) >= now:
                pseudo[c] = trial
                break
            step *= 0.5
        for y in range(C):
            away += hold * base[c, y] / strength * math.log(pseudo[c, y] / base[c, y])
    return away


@jit
def _bound(seen: Floats, c: int, row: Floats, base: Floats, hold: float, part: Floats) -> float:
    """F of one row."""
    C = row.shape[0]
    strength = 0.0
    for y in range(C):
        strength += row[y]
    start = math.lgamma(strength)
    found = 0.0
    for y in range(C):
        found += hold * base[y] / strength * math.log(row[y] / base[y])
    for j in range(seen.shape[0] // C):
        said = 0.0
        for y in range(C):
            n = seen[j * C + y, c]
            if n > 0.0:
                said += n
                found += part[j] * (math.lgamma(row[y] + n) - math.lgamma(row[y]))
        if said > 0.0:
            found += part[j] * (start - math.lgamma(strength + said))
    return found


#: Without a sign, an index needs no check for counting from the end.
Codes = NDArray[np.uint32]


@jit
def sweep(
    first: Ints,
    code: Codes,
    many: Ints,
    gold: Ints,
    weight: Floats,
    share: Floats,
    logp: Floats,
    belief: Floats,
    seen: Floats,
    total: Floats,
) -> float:
    """Beliefs of all tasks given the channels, and the counts that follow; returns the sum of log normalisers."""
    K, C = belief.shape
    seen[:] = 0.0
    total[:] = 0.0
    found = 0.0
    if C == 2:
        return _sweep_two(first, code, many, gold, weight, share, belief, seen, total)
    for x in range(K):
        begin, end = first[x], first[x + 1]
        p, q = belief[x], logp[x]
        for c in range(C):
            q[c] = share[c]
        for i in range(begin, end):
            row = weight[code[i]]
            for c in range(C):
                q[c] += row[c]
        if gold[x] >= 0:
            found += q[gold[x]]
            for c in range(C):
                p[c] = 1.0 if c == gold[x] else 0.0
        elif begin == end:
            continue
        else:
            top = q[0]
            for c in range(1, C):
                top = max(top, q[c])
            whole = 0.0
            for c in range(C):
                p[c] = math.exp(q[c] - top)
                whole += p[c]
            found += top + math.log(whole)
            for c in range(C):
                p[c] /= whole
        for c in range(C):
            total[c] += p[c]
        for i in range(begin, end):
            row = seen[code[i]]
            for c in range(C):
                row[c] += p[c]
    return found


@jit
def _sweep_two(
    first: Ints,
    code: Codes,
    many: Ints,
    gold: Ints,
    weight: Floats,
    share: Floats,
    belief: Floats,
    seen: Floats,
    total: Floats,
) -> float:
    """``_sweep`` for two answers by log-odds alone: three times as fast."""
    K = belief.shape[0]
    codes = weight.shape[0]
    odds, ones = np.empty(codes), np.zeros(codes)
    for k in range(codes):
        odds[k] = weight[k, 1] - weight[k, 0]
    start = share[1] - share[0]
    found, first_class, tasks = 0.0, 0.0, 0.0
    product = 1.0  # of normalisers between 1 and 2, whose logarithm is taken once in a while
    for x in range(K):
        begin, end = first[x], first[x + 1]
        if begin == end and gold[x] < 0:
            continue
        tasks += 1.0
        s = start
        for i in range(begin, end):
            s += odds[code[i]]
        if gold[x] >= 0:
            p = 1.0 if gold[x] == 1 else 0.0
            found += s * p
        elif s > 0.0:
            e = math.exp(-s)
            p = 1.0 / (1.0 + e)
            found += s
            product *= 1.0 + e
        else:
            e = math.exp(s)
            p = e / (1.0 + e)
            product *= 1.0 + e
        belief[x, 0] = 1.0 - p
        belief[x, 1] = p
        first_class += p
        if product > 1e200:
            found += math.log(product)
            product = 1.0
        for i in range(begin, end):
            ones[code[i]] += p
    found += math.log(product)
    total[0], total[1] = tasks - first_class, first_class
    found += tasks * share[0]
    for k in range(codes):
        seen[k, 0], seen[k, 1] = many[k] - ones[k], ones[k]
        found += many[k] * weight[k, 0]
    return float(found)


@jit
def settle(first: Ints, code: Codes, gold: Ints, state: CrowdState, seen: Floats) -> None:
    """Beliefs of all tasks, each label weighed by what its worker's other labels say, and the counts that follow."""
    K, C = state.belief.shape
    table = np.empty((seen.shape[0], 2 * C))  # of each code: counts of the answer, counts of all answers, by truth
    for j in range(seen.shape[0] // C):
        for c in range(C):
            row = 0.0
            for y in range(C):
                table[j * C + y, c] = seen[j * C + y, c] + state.pseudo[c, y]
                row += table[j * C + y, c]
            for y in range(C):
                table[j * C + y, C + c] = row
    shares = state.share_pseudo + state.total
    seen[:] = 0.0
    state.total[:] = 0.0
    for x in range(K):
        begin, end = first[x], first[x + 1]
        p, q = state.belief[x], state.logp[x]
        if gold[x] >= 0:
            for c in range(C):
                q[c] = 0.0 if c == gold[x] else -math.inf
        else:
            own = 0.0 if begin == end else 1.0
            if C == 2:
                odds = (shares[1] - own * p[1]) / (shares[0] - own * p[0])
                q[0], q[1] = 0.0, _odds_from_others(table, code, begin, end, p, odds)
            else:
                for c in range(C):
                    q[c] = math.log(shares[c] - own * p[c])
                for i in range(begin, end):
                    row_of = table[code[i]]
                    for c in range(C):
                        q[c] += math.log((row_of[c] - p[c]) / (row_of[C + c] - p[c]))
        normalise(q, p)
        if begin == end and gold[x] < 0:
            continue
        for c in range(C):
            state.total[c] += p[c]
        for i in range(begin, end):
            row_of = seen[code[i]]
            for c in range(C):
                row_of[c] += p[c]


@jit
def _odds_from_others(table: Floats, code: Codes, begin: int, end: int, p: Floats, odds: float) -> float:
    """Log-odds after a task's labels for two answers, one logarithm for all of them."""
    zero, one = p[0], p[1]
    low = 0.0
    for i in range(begin, end):
        row = table[code[i]]
        odds *= (row[1] - one) * (row[2] - zero) / ((row[0] - zero) * (row[3] - one))
        if odds > 1e200 or odds < 1e-200:
            low += math.log(odds)
            odds = 1.0
    return low + math.log(odds)


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
