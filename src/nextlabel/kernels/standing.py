"""The no-delay problem seen from many beliefs at once: sums over tasks that stand anywhere on their lattices.

====== ========= ========= ==================================================================
symbol code      shape     meaning
====== ========= ========= ==================================================================
lam    prices    (P,)      prices of a label, what it costs included, falling
n_i    weight    (B, N)    tasks of class b at node i
S      S         (., P)    value of the no-delay problem at each price, two levels at a time
L      labels    (., P)    expected labels bought under the maximising policy (L = -dS/dlam)
e      excess    (., P)    E[ceiling - R where that policy meets the last level]: S less the true value is at most that
====== ========= ========= ==================================================================

    S(i) = max{ R(i), sum_j p_j S(child_j) - lam },        S = ceiling on the last level.

Guarantee: upper bound, with its distance. Cost: J P multiply-adds for each node below a task, far fewer where even the
truth is not worth a label; a few levels of memory.
"""

from __future__ import annotations

import numpy as np

from nextlabel.arrays import Floats
from nextlabel.kernels.inputs import Lattices
from nextlabel.kernels.jit import jit


@jit
def move_one_label(lattices: Lattices, weight: Floats) -> None:
    """Move every task one label on, in expectation; none is on the last level."""
    first, child, prob = lattices.first, lattices.child, lattices.prob
    for b in range(weight.shape[0]):
        for i in range(first[-2] - 1, -1, -1):
            x = weight[b, i]
            if x > 0.0:
                weight[b, i] = 0.0
                for j in range(prob.shape[2]):
                    weight[b, child[i, j]] += x * prob[b, i, j]


@jit
def standing_sums(lattices: Lattices, weight: Floats, prices: Floats, out: Floats) -> None:
    """Add the sums over b and i of n_i S(i), n_i L(i) and n_i e(i) to out (3, P)."""
    first, child, reward, ceiling, prob = lattices
    B, J, P = reward.shape[0], prob.shape[2], prices.shape[0]
    D = first.shape[0] - 2
    width = 0
    for m in range(D + 1):
        width = max(width, first[m + 1] - first[m])
    S = np.zeros((2, width, P))
    labels = np.zeros((2, width, P))
    excess = np.zeros((2, width, P))
    needed = np.zeros(first[D + 1], dtype=np.bool_)
    for b in range(B):
        low = D
        for m in range(D, -1, -1):
            for i in range(first[m], first[m + 1]):
                needed[i] = weight[b, i] > 0.0
                if needed[i]:
                    low = m
        for i in range(first[low], first[D]):
            if needed[i] and ceiling[b, i] - reward[b, i] > prices[P - 1]:
                for j in range(J):
                    needed[child[i, j]] = True
        for m in range(D, low - 1, -1):
            here, below = m % 2, (m + 1) % 2
            for i in range(first[m], first[m + 1]):
                if not needed[i]:
                    continue
                x = i - first[m]
                R = reward[b, i]
                gap = ceiling[b, i] - R
                k = 0
                while k < P and prices[k] >= gap:  # one label costs more than all of them could add
                    S[here, x, k] = R
                    labels[here, x, k] = 0.0
                    excess[here, x, k] = 0.0
                    k += 1
                if m == D:
                    for p in range(k, P):
                        S[here, x, p] = ceiling[b, i]
                        labels[here, x, p] = 0.0
                        excess[here, x, p] = gap
                else:
                    while k < P:  # going on pays from some price down
                        go = -prices[k]
                        for j in range(J):
                            go += prob[b, i, j] * S[below, child[i, j] - first[m + 1], k]
                        if go > R:
                            break
                        S[here, x, k] = R
                        labels[here, x, k] = 0.0
                        excess[here, x, k] = 0.0
                        k += 1
                    for p in range(k, P):
                        S[here, x, p] = -prices[p]
                        labels[here, x, p] = 1.0
                        excess[here, x, p] = 0.0
                    for j in range(J):
                        q = prob[b, i, j]
                        y = child[i, j] - first[m + 1]
                        for p in range(k, P):
                            S[here, x, p] += q * S[below, y, p]
                            labels[here, x, p] += q * labels[below, y, p]
                            excess[here, x, p] += q * excess[below, y, p]
                n = weight[b, i]
                if n > 0.0:
                    for p in range(P):
                        out[0, p] += n * S[here, x, p]
                        out[1, p] += n * labels[here, x, p]
                        out[2, p] += n * excess[here, x, p]
