"""The sequential problem without delay: one task, price lam per label, every label back at once.

====== ========= ========= ==================================================================
symbol code      shape     meaning
====== ========= ========= ==================================================================
S      S         (N,)      value of the no-delay problem, unlimited labels
L      labels    (N,)      expected labels bought under the maximising policy (L = -dS/dlam)
tail   tail      (D+1,)    P(m labels cannot all be started within U arrivals)
n_i    weight    (B, N)    tasks of class b at node i, for sums over tasks that stand anywhere
e      excess    (., P)    E[ceiling - R where that policy meets the last level]: S less the true value is at most that
====== ========= ========= ==================================================================

    S(i) = max{ R(i), sum_j p_j S(child_j) - lam },        S = ceiling on the last level.

Theorem (docs/theory.md). For every n, V(i, w, n; lam) <= E[S after the w labels], and V -> E[S] as n grows, because a
task may wait, free of charge, for its label before it takes the next arrival. The distance is at most
spread * P(the sequential plan is not through after n arrivals), which ``no_delay`` returns.
Guarantee: upper bound, with its distance. Cost: 4 J N multiply-adds per price and class; for sums at P prices J P for
each node below a task, far fewer where even the truth is not worth a label.
"""

from __future__ import annotations

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.kernels.inputs import Edge, Grid, Lattices
from nextlabel.kernels.jit import jit

#: Arrivals left up to which the edge knows that the no-delay continuation has only so many labels.
EDGE_ROWS = 16


@jit
def no_delay(lattices: Lattices, lam: float, tail: Floats, work: Floats, out: Floats) -> None:
    """For each of B classes: out[b] = (S at the root, labels, P(not through), P(last level reached)).

    ``work`` (3, N) holds S, the labels and the mass at each node of the last class on return.
    """
    first, child, reward, ceiling, prob, _ = lattices
    S, labels, mass = work[0], work[1], work[2]
    B, J = reward.shape[0], prob.shape[2]
    D = first.shape[0] - 2
    for b in range(B):
        for i in range(first[D], first[D + 1]):
            S[i] = ceiling[b, i]
            labels[i] = 0.0
            mass[i] = 0.0
        for i in range(first[D] - 1, -1, -1):
            S[i] = reward[b, i]
            labels[i] = 0.0
            mass[i] = 0.0
            if ceiling[b, i] - reward[b, i] <= lam:  # one label costs more than all of them could add
                continue
            go = 0.0
            bought = 1.0
            for j in range(J):
                go += prob[b, i, j] * S[child[i, j]]
                bought += prob[b, i, j] * labels[child[i, j]]
            if go - lam > reward[b, i]:
                S[i] = go - lam
                labels[i] = bought
        mass[0] = 1.0
        late = 0.0
        for m in range(D):
            going = False
            for i in range(first[m], first[m + 1]):
                x = mass[i]
                if x == 0.0:
                    continue
                if labels[i] > 0.0:
                    going = True
                    for j in range(J):
                        mass[child[i, j]] += x * prob[b, i, j]
                else:
                    late += x * tail[m]
            if not going:
                break
        rim = 0.0
        for i in range(first[D], first[D + 1]):
            rim += mass[i]
        out[b, 0] = S[0]
        out[b, 1] = labels[0]
        out[b, 2] = late
        out[b, 3] = rim


@jit
def edge_values(first: Ints, prob: Floats, child: Ints, grid: Grid, S: Floats, work: Floats, out: Floats) -> None:
    """E[S after the w labels in flight] for the states on the edge: level + w = C, or w = W."""
    C, W, off = grid.C, grid.W, grid.off
    J = prob.shape[1]
    for i in range(first[C + 1]):
        work[i] = S[i]
    for w in range(W + 1):
        if w > 0:
            for i in range(first[C - w + 1]):
                e = 0.0
                for j in range(J):
                    e += prob[i, j] * work[child[i, j]]
                work[i] = e
        lo = 0 if w == W else first[C - w]
        for i in range(lo, first[C - w + 1]):
            out[off[w] + i] = work[i]


@jit
def fill_edge(lattices: Lattices, grid: Grid, lam: float, out: Edge) -> None:
    """What the states on the edge are worth, and buy, when they go on without delay at price ``lam``."""
    first, child, reward, ceiling, prob, _ = lattices
    C = grid.C
    B, nodes = reward.shape
    limited = out.value.shape[1] - 1
    J = prob.shape[2]
    D = first.shape[0] - 2
    deepest = min(D, C + limited)
    numbers = np.empty((3, nodes))
    S, labels, work = numbers[0], numbers[1], numbers[2]
    root, tail = np.empty((1, 4)), np.zeros(D + 1)
    for b in range(B):
        for i in range(first[deepest + 1]):
            # A lattice that ends before the limit does must end high, or the edge would be a plain cap.
            S[i] = ceiling[b, i] if i >= first[D] else reward[b, i]
            labels[i] = 0.0
        for n in range(limited):
            for i in range(first[deepest]):  # levels rise, so that the children are still those of n - 1
                go = 0.0
                for j in range(J):
                    go += prob[b, i, j] * S[child[i, j]]
                if go - lam > S[i]:
                    S[i] = go - lam
                    labels[i] = 1.0
                    for j in range(J):
                        labels[i] += prob[b, i, j] * labels[child[i, j]]
            edge_values(first, prob[b], child, grid, S, work, out.value[b, n])
            edge_values(first, prob[b], child, grid, labels, work, out.labels[b, n])
        one = Lattices(first, child, reward[b : b + 1], ceiling[b : b + 1], prob[b : b + 1], lattices.node_of)
        no_delay(one, lam, tail, numbers, root)
        edge_values(first, prob[b], child, grid, S, work, out.value[b, limited])
        edge_values(first, prob[b], child, grid, labels, work, out.labels[b, limited])


@jit
def no_delay_sums(lattices: Lattices, weight: Floats, prices: Floats, out: Floats) -> None:
    """Add the sums over b and i of n_i S(i), n_i L(i) and n_i e(i) to out (3, P)."""
    first, child, reward, ceiling, prob, _ = lattices
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
