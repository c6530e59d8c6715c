"""One pass over all tasks: what the channels of the workers say about every truth, and the counts that follow.

====== ====== ======== =================================================================================
symbol code   shape    meaning
====== ====== ======== =================================================================================
p      belief (K, C)   q(truth of task x)
n      seen   (W C, C) expected counts, a row for each worker and answer
E log A weight (W C, C) expected log channel, laid out like ``seen``
--     first  (K + 1,) where each task's labels begin in ``code``
--     code   (n,)     worker * C + answer of each label, grouped by task
--     many   (W C,)   number of labels with each code
====== ====== ======== =================================================================================

    sweep:   p_x[c] ~ exp( E log share_c + sum over labels of E log A_j[c, y] )
    settle:  p_x[c] ~ (b_c + N_c - p_x[c]) prod over labels of (a[c, y] + n_j[c, y] - p_x[c]) / (... summed over y)

``sweep`` is the step of variational Bayes. ``settle`` weighs each label by what its worker's *other* labels say
(collapsed variational Bayes of order zero): the label's own share is taken out of the counts first.
Guarantee: deterministic. Cost: about 5 ns per label for two answers.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from nextlabel.arrays import Floats, Ints
from nextlabel.kernels.crowd_state import CrowdState, normalise
from nextlabel.kernels.jit import jit

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
