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

``solve_values`` is modified policy iteration, in place. Whatever it returns, U >= R and U >= T U make U an upper bound
(docs/theory_workers.md), and ``excess`` measures how far that is from true.
Guarantee: none of its own; ``push`` is exact up to rounding for the plan that stops after that many labels.
Cost: M G E operations for each sweep of T and each label of ``push``, G E for each sweep in between.
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
def best_label(chain: Chain, cost: Floats, V: Floats, i: int) -> tuple[float, int]:
    """(T V)(i) and the type that reaches it, -1 for stopping; of equal types the first."""
    to, weight, stop = chain
    best, wanted = stop[i], -1
    for m in range(to.shape[0]):
        go = -cost[m]
        for e in range(to.shape[2]):
            go += weight[m, i, e] * V[to[m, i, e]]
        if go > best:
            best, wanted = go, m
    return best, wanted


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
def solve_values(chain: Chain, cost: Floats, V: Floats, plan: Ints, tolerance: float, rounds: int, between: int) -> int:
    """Sweeps of T in place, each but the last followed by at most ``between`` with the plan as it is.

    They end when T moves nothing by more than ``tolerance``; return how many there were.
    """
    for k in range(rounds):
        change = 0.0
        for i in range(V.shape[0]):
            best, plan[i] = best_label(chain, cost, V, i)
            change = max(change, abs(best - V[i]))
            V[i] = best
        if change <= tolerance:
            return k + 1
        settle(chain, cost, V, plan, 0.1 * change, between)
    return rounds


@jit
def excess(chain: Chain, cost: Floats, V: Floats) -> float:
    """max over grid points of T V - V, at least 0."""
    worst = 0.0
    for i in range(V.shape[0]):
        worst = max(worst, best_label(chain, cost, V, i)[0] - V[i])
    return worst


@jit
def push(chain: Chain, share: Floats, mass: Floats, tolerance: float, most: int, used: Floats) -> float:
    """Let tasks at ``mass`` take a label of type m at point i with probability share[m, i], until they stop.

    Return what they are worth in the end; ``used`` gets their labels by type. After ``most`` labels, or when fewer than
    ``tolerance`` tasks go on, all that are left stop where they are.
    """
    to, weight, stop = chain
    M, G, E = to.shape
    here, there = mass.copy(), np.zeros(G)
    used[:] = 0.0
    reward = 0.0
    for _ in range(most):
        moved = 0.0
        for i in range(G):
            if here[i] == 0.0:
                continue
            left = 1.0
            for m in range(M):
                if share[m, i] == 0.0:
                    continue
                x = here[i] * share[m, i]
                left -= share[m, i]
                used[m] += x
                moved += x
                for e in range(E):
                    there[to[m, i, e]] += x * weight[m, i, e]
            reward += here[i] * max(left, 0.0) * stop[i]
        here, there = there, here
        there[:] = 0.0
        if moved <= tolerance:
            break
    rest = 0.0
    for i in range(G):
        rest += here[i] * stop[i]
    return reward + rest
