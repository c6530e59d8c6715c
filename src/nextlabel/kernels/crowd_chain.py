"""One task at prices: the best plan, and the labels by type that a plan uses, on a chain of grid beliefs.

====== ======= ========== ==========================================================================
symbol code    shape      meaning
====== ======= ========== ==========================================================================
--     to      (M, G, E)  grid points that a label of type m at point i may lead to
--     weight  (M, G, E)  and with which probability
R      reward  (G,)       of deciding now
c_m    price   (M,)       of a label of type m
V      value   (G,)       worth of a task
--     plan    (G,)       the type wanted, -1 to stop
--     members (G,)       number of tasks at each grid point
====== ======= ========== ==========================================================================

    V(p) = max{ R(p), max_m  - c_m + sum_e weight[m, p, e] V(to[m, p, e]) }

``best_plan`` iterates upwards from R, ``follow_plan`` pushes the tasks through the chain.
Guarantee: of the chain, up to the tolerances; certified bounds are the business of ``solve.crowd``.
Cost: M G E per sweep, about as many sweeps as a task is given labels.
"""

from __future__ import annotations

from nextlabel.arrays import Floats, Ints
from nextlabel.kernels.uncounted import uncounted

#: A label must be worth this much more than stopping.
BETTER = 1e-12
MOST_SWEEPS = 1000
#: Mass of tasks still under way that is no longer followed.
LEFT_OVER = 1e-7


@uncounted
def best_plan(
    to: Ints, weight: Floats, reward: Floats, price: Floats, tolerance: float, value: Floats, plan: Ints
) -> int:
    """``value`` gets V and ``plan`` what reaches it; return the sweeps made."""
    M, G, E = to.shape
    for i in range(G):
        value[i] = reward[i]
    for sweep in range(MOST_SWEEPS):
        moved = 0.0
        for i in range(G):
            best, kind = reward[i], -1
            for m in range(M):
                worth = -price[m]
                for e in range(E):
                    worth += weight[m, i, e] * value[to[m, i, e]]
                if worth > best + BETTER:
                    best, kind = worth, m
            moved = max(moved, abs(best - value[i]))
            value[i], plan[i] = best, kind
        if moved <= tolerance:
            return sweep + 1
    return MOST_SWEEPS


@uncounted
def follow_plan(
    to: Ints, weight: Floats, reward: Floats, plan: Ints, mass: Floats, spare: Floats, used: Floats
) -> float:
    """Return the expected reward of the tasks in ``mass``, used up here; ``used`` (M,) gets their labels by type."""
    _, G, E = to.shape
    for m in range(used.shape[0]):
        used[m] = 0.0
    earned = 0.0
    for _ in range(MOST_SWEEPS):
        moving = 0.0
        for i in range(G):
            spare[i] = 0.0
        for i in range(G):
            x = mass[i]
            if x > 0.0:
                m = plan[i]
                if m < 0:
                    earned += x * reward[i]
                else:
                    moving += x
                    used[m] += x
                    for e in range(E):
                        spare[to[m, i, e]] += x * weight[m, i, e]
        for i in range(G):
            mass[i] = spare[i]
        if moving <= LEFT_OVER:
            break
    for i in range(G):
        earned += mass[i] * reward[i]
    return earned
