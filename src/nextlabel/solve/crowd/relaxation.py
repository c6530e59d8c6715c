"""The relaxation with workers who differ: one task at a time, every label at its type's price.

====== ============== ========= ==================================================================
symbol code           shape     meaning
====== ============== ========= ==================================================================
p_x    beliefs        (G, C)    beliefs at which tasks stand, ``members`` tasks at each
A      channel        (M, C, C) P(a worker of type m says y | truth c)
N, U   supply, budget (M,), ()  labels each type can give, and labels in all
lam    price          ()        price of a label
nu     supply_prices  (M,)      and what a label of type m costs on top
V      --             (S,)      value of a task on the grid at these prices: an upper bound on the true one
====== ============== ========= ==================================================================

    V(p) = max{ max_c p_c , max_m -(lam + nu_m + cost_m) + sum_y P(y | p, m) V(p after y from m) }
    value = min over lam, nu >= 0 of   sum_x V(p_x) + lam U + sum_m nu_m N_m

V is computed on a grid, where interpolation errs upwards, and raised until rounding cannot break it (``single_task``).
Prices come from cutting planes for few types, and from an interior-point method for many.

Guarantee: ``value`` is an upper bound whatever the prices, the grid and the moment of stopping. ``lower`` is reached by
a mixture of plans on the same grid, so that ``gap`` is what better prices could still take off; a finer grid can
take off more.
Cost: milliseconds for a few types and two answers, seconds for hundreds; see the modules called.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.beliefs.prior import EPS
from nextlabel.solve.crowd.cutting_planes import CuttingPlanes, Limits
from nextlabel.solve.crowd.interior import Solved, solve_interior
from nextlabel.solve.crowd.single_task import (
    CLOSE,
    LEAST_COST,
    Rewards,
    SingleTask,
    make_reachable_task,
    make_single_task,
)

#: Rounds of the cutting planes at most.
ROUNDS = 400
#: The first price of a label, as a share of what is at stake.
FIRST_PRICE = 0.05
#: From this many types on, with two answers and with more, the interior-point method is used.
MANY_TYPES, MANY_TYPES_OF_MORE = 8, 24
#: What types that teach next to nothing may add to the bound, per task.
IGNORED = 1e-7
#: A gap per task from which on the interior-point method has failed, and cutting planes have their turn.
WIDE = 1e-4
#: It does so on this many states, and on fewer if there are very many types.
INTERIOR_STATES, VERY_MANY_TYPES, FEWER_STATES = 700, 64, 500


class Types(NamedTuple):
    """Types of workers: channels, labels that each can give (may be infinite), what one of them costs."""

    channel: Floats
    supply: Floats
    cost: Floats


@dataclass(frozen=True, slots=True)
class Relaxation:
    """No policy is worth more than ``value``; a mixture of plans on the grid reaches ``lower`` by ``used`` labels."""

    value: float
    price: float
    supply_prices: Floats
    lower: float
    gap: float
    used: Floats
    error_budget: float


def relax(
    beliefs: Floats,
    members: Floats,
    types: Types,
    budget: float,
    *,
    grid: int | None = None,
    tolerance: float = 1e-7,
    rewards: Rewards | None = None,
    reachable: bool = False,
    interior: bool = False,
) -> Relaxation:
    """Solve the relaxation for ``members`` tasks at each of the ``beliefs``.

    ``tolerance`` is the gap per task at which the search ends; ``grid`` is the number of grid points, about. Without
    ``rewards`` a task counts 1 if it comes out right. ``reachable``: instead of a grid of the simplex take beliefs that
    the tasks' own lead to, which is better from five answers on. ``interior``: use the interior-point method however
    few the types are, which is quicker where tasks stand at many beliefs of two answers.
    """
    C = beliefs.shape[1]
    if rewards is None:
        rewards = Rewards((np.eye(C),), np.zeros(len(beliefs), dtype=np.int64))
    tasks = float(members.sum())
    # Types that teach next to nothing are paid for all that their labels can gain (docs/theory_workers.md, Lemma 4b).
    amount = np.minimum(types.supply, budget)
    gain = _gain_of_label(types.channel) * max(float(np.ptp(u)) for u in rewards.utilities)
    charge = np.where(gain > 0.0, np.minimum(amount, 1e300) * gain, 0.0)
    live = np.flatnonzero((charge > IGNORED * tasks / len(charge)) & (amount > 0))
    ignored = float(np.delete(charge, live).sum())
    many = len(live) >= (MANY_TYPES if C == 2 else MANY_TYPES_OF_MORE) or (interior and len(live) > 0)
    if many and grid is None:
        states = FEWER_STATES if len(live) > VERY_MANY_TYPES else INTERIOR_STATES
        grid = states // len(rewards.utilities)
    make = make_reachable_task if reachable else make_single_task
    task = make(beliefs, members, np.ascontiguousarray(types.channel[live]), rewards, grid)
    task = task._replace(most=np.ceil(budget))
    limits = Limits(budget / tasks, types.supply[live] / tasks, types.cost[live])
    # The last digits cost the interior-point method one iteration more.
    if many:
        best = _certified(task, limits, types, live, (tasks, ignored), solve_interior(task, limits, 0.01 * tolerance))
        if best.gap <= WIDE * tasks:
            return best
        # Channels that teach next to nothing, or all but everything, leave the method without digits.
    other = _certified(task, limits, types, live, (tasks, ignored), _cutting_planes(task, limits, tolerance))
    return min(best, other, key=lambda one: one.gap) if many else other


def _gain_of_label(channel: Floats) -> Floats:
    """1 - sum_y min_c A[c, y]: a label gains at most this share of R_inf - R."""
    return np.asarray(np.maximum(1.0 - channel.min(axis=1).sum(axis=1), 0.0), dtype=np.float64)


def _cutting_planes(task: SingleTask, limits: Limits, tolerance: float) -> Solved:
    at_stake = float((task.ceiling - task.chain.stop).max())
    search = CuttingPlanes(task, limits, task.ceiling.copy(), least=LEAST_COST)
    prices = np.append(FIRST_PRICE * 2.0 * at_stake, np.zeros(len(limits.N)))
    search.run(tolerance, ROUNDS, prices, float((task.mass * task.ceiling).sum()))
    master = search.settle(tolerance)
    used = master.weights @ np.array(search.labels) / master.weights.sum()
    return Solved(search.prices, search.V, master.value, used)


def _certified(
    task: SingleTask, limits: Limits, types: Types, live: Ints, scale: tuple[float, float], solved: Solved
) -> Relaxation:
    """The value at the prices found, raised until rounding cannot break it.

    ``scale``: tasks, and what types that were left out could add to all of them.
    """
    tasks, ignored = scale
    prices = limits.valid(solved.prices, LEAST_COST)
    V, plan = task.chain.stop.copy(), np.full(task.states, -1, dtype=np.int64)
    task.solve(limits.costs(prices), V, plan, CLOSE)
    raised, off = task.certify(limits.costs(prices), V)
    paid = limits.pays(prices)
    rounding = 16.0 * EPS * (1.0 + paid + float(np.abs(raised).max()))
    # Nobody is worth more than if all truths were told, whatever the prices.
    told = float((task.mass * task.ceiling).sum())
    value = min(float((task.mass * raised).sum()) + paid + ignored / tasks, told) + rounding
    # What has no supply is never paid for: any price will do that nobody would pay.
    supply_prices = np.where(types.supply > 0, 0.0, float((task.ceiling - task.chain.stop).max()))
    supply_prices[live] = prices[1:]
    used = np.zeros(len(types.supply))
    used[live] = tasks * solved.used
    return Relaxation(
        value=tasks * value,
        price=float(prices[0]),
        supply_prices=supply_prices,
        lower=tasks * min(solved.lower, value),
        gap=tasks * max(value - solved.lower, 0.0),
        used=used,
        error_budget=tasks * (off + rounding),
    )
