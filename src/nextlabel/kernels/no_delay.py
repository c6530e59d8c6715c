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

The limit index of one state needs no table, so that only states that are met cost anything:

========= ======= ========== =====================================================================================
symbol    code    shape      meaning
========= ======= ========== =====================================================================================
R         facts   (N, J)     facts[i, 0]: reward of deciding now, down to the last level D, where all stop
p_j       facts   (N, J)     facts[i, 1 + j], j < J - 1: probability of an answer up to j
G         known   (nodes,)   Gittins index of a node, nan until it is asked for
S         S       (N,)       value of the best plan at price lam below one node; ``labels`` how many it buys
========= ======= ========== =====================================================================================

    G(i) = max over stopping times tau >= 1 of E[R_tau - R_i] / E[tau],
    G(i, w) = min over the nodes j that w labels can lead to from i (with a positive probability) of G(j).

Nodes are vectors of counts, so that what can follow a node of level m is the same lattice again with D - m levels:
``node_at[k]`` is the node that stands where node k stands in it.
Guarantee: exact on the lattice, up to rounding.
Cost: for each node asked for a few sweeps over the nodes below it.
"""

from __future__ import annotations

from typing import NamedTuple

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
        S[:], labels[:], mass[:] = reward[b], 0.0, 0.0
        S[first[D] :] = ceiling[b, first[D] :]
        for i in range(first[D] - 1, -1, -1):
            if ceiling[b, i] - reward[b, i] <= lam:  # one label costs more than all of them could add
                continue
            go, bought = 0.0, 1.0
            for j in range(J):
                go += prob[b, i, j] * S[child[i, j]]
                bought += prob[b, i, j] * labels[child[i, j]]
            if go - lam > reward[b, i]:
                S[i], labels[i] = go - lam, bought
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
        out[b, 0], out[b, 1], out[b, 2], out[b, 3] = S[0], labels[0], late, mass[first[D] :].sum()


@jit
def edge_values(first: Ints, prob: Floats, child: Ints, grid: Grid, S: Floats, work: Floats, out: Floats) -> None:
    """E[S after the w labels in flight] for the states on the edge: level + w = C, or w = W."""
    C, W, off = grid.C, grid.W, grid.off
    J = prob.shape[1]
    work[: first[C + 1]] = S[: first[C + 1]]
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
        # A lattice that ends before the limit does must end high, or the edge would be a plain cap.
        S[:], labels[:] = reward[b], 0.0
        S[first[D] :] = ceiling[b, first[D] :]
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
    rows = np.zeros((2, np.diff(first).max(), 3, P))  # S, L and e of the nodes of a level
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
            below = rows[(m + 1) % 2]
            for i in range(first[m], first[m + 1]):
                if not needed[i]:
                    continue
                here, R = rows[m % 2, i - first[m]], reward[b, i]
                gap = ceiling[b, i] - R
                k = 0
                while k < P and prices[k] >= gap:  # one label costs more than all of them could add
                    k += 1
                while m < D and k < P:  # going on pays from some price down
                    go = -prices[k]
                    for j in range(J):
                        go += prob[b, i, j] * below[child[i, j] - first[m + 1], 0, k]
                    if go > R:
                        break
                    k += 1
                for p in range(P):
                    here[0, p], here[1, p], here[2, p] = R, 0.0, 0.0
                    if p >= k and m == D:
                        here[0, p], here[2, p] = ceiling[b, i], gap
                    elif p >= k:
                        here[0, p], here[1, p] = -prices[p], 1.0
                for j in range(J if m < D else 0):
                    q, after = prob[b, i, j], below[child[i, j] - first[m + 1]]
                    for r in range(3):
                        for p in range(k, P):
                            here[r, p] += q * after[r, p]
                n = weight[b, i]
                for r in range(3 if n > 0.0 else 0):
                    for p in range(P):
                        out[r, p] += n * here[r, p]


#: Plans of so many labels are tried first, then of twice as many.
FEW_LABELS = 6


class Workspace(NamedTuple):
    """Room for the lattice below one node."""

    node_at: Ints
    R: Floats
    p: Floats
    S: Floats
    labels: Floats


@jit
def new_workspace(nodes: int, answers: int) -> Workspace:
    """Room for ``nodes`` nodes."""
    return Workspace(
        np.zeros(nodes, dtype=np.int64), np.empty(nodes), np.empty((answers, nodes)), np.empty(nodes), np.empty(nodes)
    )


@jit
def answer_chance(facts: Floats, i: int, j: int) -> float:
    """p_j in node i."""
    upto: float = facts[i, 1 + j] if j < facts.shape[1] - 1 else 1.0
    return upto - facts[i, j] if j > 0 else upto


@jit
def gather_below(first: Ints, child: Ints, facts: Floats, left: int, root: int, room: Workspace) -> None:
    """R and p of what is below ``root``, and where it is."""
    room.node_at[0] = root
    for k in range(first[left + 1]):
        i = room.node_at[k]
        room.R[k] = facts[i, 0]
        for j in range(child.shape[1]):
            room.p[j, k] = answer_chance(facts, i, j)
            if k < first[left]:
                room.node_at[child[k, j]] = child[i, j]


@jit
def gather_below_binary(first: Ints, facts: Floats, m: int, root: int, room: Workspace) -> None:
    """``gather_below`` for two answers, where nodes of one level that follow a node are neighbours."""
    ones = root - first[m]
    for level in range(m, first.shape[0] - 1):
        n, o, i = level - m + 1, first[level - m], first[level] + ones
        R, no, yes = room.R[o : o + n], room.p[0, o : o + n], room.p[1, o : o + n]
        some = facts[i : i + n]
        for a in range(n):
            R[a], no[a], yes[a] = some[a, 0], some[a, 1], 1.0 - some[a, 1]


@jit
def best_plan(first: Ints, child: Ints, left: int, lam: float, room: Workspace) -> None:
    """S and labels of the best plan at price lam, ``left`` levels down; node 0 buys in any case."""
    R, p, S, labels = room.R, room.p, room.S, room.labels
    for k in range(first[left] - 1, -1, -1):
        go, bought = -lam, 1.0
        for j in range(child.shape[1]):
            go += p[j, k] * S[child[k, j]]
            bought += p[j, k] * labels[child[k, j]]
        stops = k > 0 and go <= R[k]
        S[k] = R[k] if stops else go
        labels[k] = 0.0 if stops else bought


@jit
def best_plan_binary(first: Ints, left: int, lam: float, room: Workspace) -> None:
    """``best_plan`` for two answers, level by level: four times as fast, for most problems are binary."""
    for m in range(left - 1, -1, -1):
        o, below, n = first[m], first[m + 1], m + 1
        R, no, yes = room.R[o : o + n], room.p[0, o : o + n], room.p[1, o : o + n]
        S, labels = room.S[o : o + n], room.labels[o : o + n]
        after, more = room.S[below : below + n + 1], room.labels[below : below + n + 1]
        for a in range(n):
            go = no[a] * after[a] + yes[a] * after[a + 1] - lam
            bought = no[a] * more[a] + yes[a] * more[a + 1] + 1.0
            stops = m > 0 and go <= R[a]
            S[a] = R[a] if stops else go
            labels[a] = 0.0 if stops else bought


@jit
def limit_index(first: Ints, child: Ints, facts: Floats, m: int, root: int, room: Workspace) -> float:
    """G of node ``root`` of level m by Dinkelbach's iteration.

    It starts at the price that one label alone is worth, and climbs: the best plan at a price gives the next one. Plans
    of a few labels climb first, for they cost little and come near.
    """
    J = child.shape[1]
    left = first.shape[0] - 2 - m
    if J == 2:
        gather_below_binary(first, facts, m, root, room)
    else:
        gather_below(first, child, facts, left, root, room)
    lam: float = -room.R[0]
    for j in range(J):
        lam += room.p[j, 0] * room.R[child[0, j]]
    lam = max(lam, 0.0)
    levels = 0
    while levels < left:
        levels = min(max(2 * levels, FEW_LABELS), left)
        for k in range(first[levels], first[levels + 1]):
            room.S[k], room.labels[k] = room.R[k], 0.0
        for _ in range(100):
            if J == 2:
                best_plan_binary(first, levels, lam, room)
            else:
                best_plan(first, child, levels, lam, room)
            gain = room.S[0] - room.R[0]
            if gain <= 1e-15 * max(1.0, abs(room.R[0])):
                break
            lam += gain / room.labels[0]
    return lam


@jit
def limit_indices(first: Ints, child: Ints, facts: Floats, nodes: Ints, out: Floats) -> None:
    """out[k] = G of nodes[k], which rise; 0 on the last level."""
    room = new_workspace(first[-1], child.shape[1])
    m = 0
    for k in range(nodes.shape[0]):
        while first[m + 1] <= nodes[k]:
            m += 1
        out[k] = limit_index(first, child, facts, m, nodes[k], room) if m < first.shape[0] - 2 else 0.0


@jit
def least_limit_index(
    first: Ints, child: Ints, facts: Floats, m: int, root: int, w: int, room: Workspace, ahead: Ints, known: Floats
) -> float:
    """G(i, w) of node i = ``root`` of level m; ``known`` gets the indices that are new, ``ahead`` is for first[w+1]."""
    ahead[0] = root
    for k in range(1, first[w + 1]):
        ahead[k] = -1
    for k in range(first[w]):
        for j in range(child.shape[1]):
            if ahead[k] >= 0 and answer_chance(facts, ahead[k], j) > 0.0:
                ahead[child[k, j]] = child[ahead[k], j]
    least: float = np.inf
    for k in range(first[w], first[w + 1]):
        i = ahead[k]
        if i >= 0:
            if np.isnan(known[i]):
                known[i] = limit_index(first, child, facts, m + w, i, room)
            least = min(least, known[i])
    return least
