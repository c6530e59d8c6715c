"""One task on the grid of beliefs: label it by a worker of some type, at that type's price, or stop.

======== ========= ========== ==================================================================
symbol   code      shape      meaning
======== ========= ========== ==================================================================
V        V         (G,)       value of a task at each grid point
R        stop      (G,)       value of stopping there
c_m      cost      (M,)       what a label of type m costs, its prices included
a        plan      (G,)       type wanted next at a grid point, -1 to stop
x        mass      (G,)       tasks at each grid point, in expectation
L_m      used      (M,)       labels of type m that the tasks take in all
======== ========= ========== ==================================================================

    (T V)(i) = max{ R(i), max_m -c_m + sum_e weight[m, i, e] V(to[m, i, e]) }

``improve`` and ``settle`` together are modified policy iteration, in place. Whatever they return, U >= R and U >= T U
make U an upper bound (docs/theory_workers.md), and ``excess`` measures how far that is from true.
Guarantee: none of their own; ``push`` is exact up to rounding for the plan that stops after that many labels.
Cost: M G E operations for ``improve`` and ``excess``, G E for each sweep of ``settle`` and each label of ``push``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.kernels.jit import jit


class Chain(NamedTuple):
    """Where labels lead on the grid (``crowd_grid.fill_chain``), and what stopping is worth."""

    to: Ints
    weight: Floats
    stop: Floats


@jit
def improve(chain: Chain, cost: Floats, V: Floats, plan: Ints) -> float:
    """One sweep of T, in place; the largest change. Of equal types the first is taken."""
    to, weight, stop = chain
    M, G, E = to.shape
    change = 0.0
    for i in range(G):
        best = stop[i]
        wanted = -1
        for m in range(M):
            go = -cost[m]
            for e in range(E):
                go += weight[m, i, e] * V[to[m, i, e]]
            if go > best:
                best = go
                wanted = m
        change = max(change, abs(best - V[i]))
        V[i] = best
        plan[i] = wanted
    return change


@jit
def settle(chain: Chain, cost: Floats, V: Floats, plan: Ints, tolerance: float, most: int) -> None:
    """Sweeps with the plan as it is, in both directions in turn, until no value moves by more than ``tolerance``."""
    to, weight, stop = chain
    G, E = to.shape[1], to.shape[2]
    for sweep in range(most):
        change = 0.0
        for k in range(G):
            i = k if sweep % 2 == 0 else G - 1 - k
            m = plan[i]
            value = stop[i]
            if m >= 0:
                value = -cost[m]
                for e in range(E):
                    value += weight[m, i, e] * V[to[m, i, e]]
            change = max(change, abs(value - V[i]))
            V[i] = value
        if change <= tolerance:
            break


@jit
def solve_values(chain: Chain, cost: Floats, V: Floats, plan: Ints, tolerance: float, rounds: int) -> int:
    """Improve and settle until a sweep of T moves nothing by more than ``tolerance``; the rounds that took."""
    for k in range(rounds):
        change = improve(chain, cost, V, plan)
        if change <= tolerance:
            return k + 1
        settle(chain, cost, V, plan, 0.1 * change, 40)
    return rounds


@jit
def excess(chain: Chain, cost: Floats, V: Floats) -> float:
    """max over grid points of T V - V, at least 0."""
    to, weight, stop = chain
    M, G, E = to.shape
    worst = 0.0
    for i in range(G):
        best = stop[i]
        for m in range(M):
            go = -cost[m]
            for e in range(E):
                go += weight[m, i, e] * V[to[m, i, e]]
            best = max(best, go)
        worst = max(worst, best - V[i])
    return worst


@jit
def push(chain: Chain, plan: Ints, mass: Floats, tolerance: float, most: int, used: Floats) -> float:
    """Let tasks at ``mass`` follow the plan: labels ``used`` by type, and what the tasks are worth in the end.

    After ``most`` labels, or when fewer than ``tolerance`` tasks go on, all that are left stop where they are.
    """
    to, weight, stop = chain
    G, E = to.shape[1], to.shape[2]
    here, there = mass.copy(), np.zeros(G)
    used[:] = 0.0
    reward = 0.0
    for _ in range(most):
        moved = 0.0
        for i in range(G):
            x = here[i]
            if x == 0.0:
                continue
            m = plan[i]
            if m < 0:
                reward += x * stop[i]
                continue
            used[m] += x
            moved += x
            for e in range(E):
                there[to[m, i, e]] += x * weight[m, i, e]
        here, there = there, here
        there[:] = 0.0
        if moved <= tolerance:
            break
    return reward + stopped(here, stop)


@jit
def stopped(mass: Floats, stop: Floats) -> float:
    """What tasks are worth if all of them stop where they are."""
    reward = 0.0
    for i in range(mass.shape[0]):
        reward += mass[i] * stop[i]
    return reward
