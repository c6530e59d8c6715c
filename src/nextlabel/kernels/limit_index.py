"""Limit index of one state of a task: no table, so that only states that are met cost anything.

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
from nextlabel.kernels.jit import jit

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
