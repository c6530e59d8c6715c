"""The relaxation with workers who differ: one task at a time, every label at its type's price.

====== ============== ========= ==================================================================
symbol code           shape     meaning
====== ============== ========= ==================================================================
p_x    beliefs        (G, C)    beliefs at which tasks stand, ``members`` tasks at each
A      channel        (M, C, C) P(a worker of type m says y | truth c)
N, U   supply, budget (M,), ()  labels each type can give, and labels in all
lam    price          ()        price of a label
nu     supply_prices  (M,)      and what a label of type m costs on top
V      values         (S,)      value of a task on the grid at these prices: an upper bound on the true one
====== ============== ========= ==================================================================

    V(p) = max{ max_c p_c , max_m -(lam + nu_m + cost_m) + sum_y P(y | p, m) V(p after y from m) }
    value = min over lam, nu >= 0 of   sum_x V(p_x) + lam U + sum_m nu_m N_m

V is computed on a grid, where interpolation errs upwards, and raised until rounding cannot break it (``single_task``).
Prices come from cutting planes for few types, and from an interior-point method for many.

Guarantee: ``value`` is an upper bound whatever the prices, the grid and the moment of stopping. ``lower`` is reached by
the mixture of ``plans`` on the same grid, so that ``gap`` is what better prices could still take off; a finer grid can
take off more.
Cost: milliseconds for a few types and two answers, seconds for hundreds; see the modules called.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import NamedTuple

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.beliefs.prior import EPS
from nextlabel.kernels.crowd_grid import SimplexGrid
from nextlabel.solve.crowd.cutting_planes import CuttingPlanes, Limits
from nextlabel.solve.crowd.interior import solve_interior
from nextlabel.solve.crowd.single_task import LEAST_COST, Rewards, SingleTask, make_reachable_task, make_single_task

#: Rounds of the cutting planes at most, unless told otherwise.
ROUNDS = 400
#: The first price of a label, as a share of what is at stake.
FIRST_PRICE = 0.05
#: Plans that are kept for a later search, per type.
POOL = 2
#: From this many types on, with two answers and with more, the interior-point method is used.
MANY_TYPES, MANY_TYPES_OF_MORE = 8, 24
#: It does so on this many states, and on fewer if there are very many types.
INTERIOR_STATES, VERY_MANY_TYPES, FEWER_STATES = 700, 64, 500


class Types(NamedTuple):
    """Types of workers: channels, labels that each can give (may be infinite), what one of them costs."""

    channel: Floats
    supply: Floats
    cost: Floats


@dataclass(frozen=True, slots=True)
class Relaxation:
    """No policy is worth more than ``value``; the prices, the values on the grid and the plans it comes from.

    A plan says which type of worker a task at a grid point wants next, -1 for none; ``weights`` are the shares of the
    tasks that follow each. ``used`` are the labels by type that the mixture takes. Where tasks have several rewards,
    ``values`` and ``plans`` have all grid points once for each of them.
    """

    value: float
    price: float
    supply_prices: Floats
    lower: float
    gap: float
    values: Floats
    plans: Ints
    weights: Floats
    used: Floats
    error_budget: float
    rounds: int
    seconds: float
    task: SingleTask

    @property
    def grid(self) -> SimplexGrid:
        """The grid of beliefs."""
        return self.task.grid


def relax(
    beliefs: Floats,
    members: Floats,
    types: Types,
    budget: float,
    *,
    start: Relaxation | None = None,
    grid: int | None = None,
    tolerance: float = 1e-7,
    rounds: int = ROUNDS,
    rewards: Rewards | None = None,
    reachable: bool = False,
    interior: bool = False,
) -> Relaxation:
    """Solve the relaxation for ``members`` tasks at each of the ``beliefs``.

    ``tolerance`` is the gap per task at which the search ends; ``grid`` is the number of grid points, about;
    ``start`` is an earlier relaxation with the same types, whose grid, prices and plans are used again. Without
    ``rewards`` a task counts 1 if it comes out right. ``reachable``: instead of a grid of the simplex take beliefs that
    the tasks' own lead to, which is better from five answers on; values and plans are then on those alone.
    ``interior``: use the interior-point method however few the types are, which is quicker where tasks stand at many
    beliefs of two answers.
    """
    begin = perf_counter()
    C = beliefs.shape[1]
    if rewards is None:
        rewards = Rewards((np.eye(C),), np.zeros(len(beliefs), dtype=np.int64))
    # A worker who says the same whatever the truth teaches nothing; a type without supply never comes.
    teaches = (types.channel != types.channel[:, :1]).any(axis=(1, 2))
    live = np.flatnonzero(teaches & (types.supply > 0)) if budget > 0 else np.zeros(0, dtype=np.int64)
    if start is not None and len(start.supply_prices) != len(types.supply):
        start = None
    many = len(live) >= (MANY_TYPES if C == 2 else MANY_TYPES_OF_MORE) or (interior and len(live) > 0)
    if many and grid is None and start is None:
        states = FEWER_STATES if len(live) > VERY_MANY_TYPES else INTERIOR_STATES
        grid = states // len(rewards.utilities)
    channel = np.ascontiguousarray(types.channel[live])
    if reachable:
        task = make_reachable_task(beliefs, members, channel, rewards, grid)
    else:
        known = None if start is None else start.task
        task = make_single_task(beliefs, members, channel, rewards, grid, known)
    tasks = float(members.sum())
    limits = Limits(budget / tasks, types.supply[live] / tasks, types.cost[live])
    if many:
        found = _by_interior_point(task, limits, tolerance)
    else:
        found = _by_cutting_planes(task, limits, live, start, tolerance, rounds)
    return _finish(task, limits, types, live, tasks, found, begin)


class _Found(NamedTuple):
    """What a search ends with, per task; plans count the types that are live."""

    prices: Floats
    V: Floats
    lower: float
    plans: Ints
    weights: Floats
    used: Floats
    rounds: int


def _by_cutting_planes(
    task: SingleTask, limits: Limits, live: Ints, start: Relaxation | None, tolerance: float, rounds: int
) -> _Found:
    at_stake = float((task.ceiling - task.chain.stop).max())
    prices = np.append(FIRST_PRICE * 2.0 * at_stake, np.zeros(len(live)))
    if start is not None:
        prices = np.append(start.price, np.where(np.isfinite(limits.N), start.supply_prices[live], 0.0))
    again = start is not None and start.task.grid is task.grid and start.task.states == task.states
    V = start.values.copy() if start is not None and again else task.ceiling.copy()
    plans: list[Ints] = []
    if start is not None and again:
        name = np.full(len(start.supply_prices) + 1, -1, dtype=np.int64)
        name[live] = np.arange(len(live))
        plans = [name[plan] for plan in start.plans]
    search = CuttingPlanes(task, limits, V, plans, LEAST_COST)
    search.run(tolerance, rounds, prices, float((task.mass * task.ceiling).sum()))
    master = search.settle(tolerance)
    # The latest plans stay in the pool without a weight: they are near the best at nearby prices.
    latest = np.arange(len(master.weights)) >= len(master.weights) - POOL * len(live)
    kept = np.flatnonzero((master.weights > 0.0) | latest)
    weights = master.weights[kept] / master.weights[kept].sum()
    used = (weights[:, None] * np.array(search.labels)[kept]).sum(axis=0)
    return _Found(search.prices, search.V, master.value, np.array(search.plans)[kept], weights, used, search.rounds)


def _by_interior_point(task: SingleTask, limits: Limits, tolerance: float) -> _Found:
    # The last digits cost one iteration more.
    found = solve_interior(task, limits, 0.01 * tolerance)
    plans = found.plans(0)
    weights = np.full(len(plans), 1.0 / len(plans))
    return _Found(found.prices, found.V, found.lower, plans, weights, found.used, found.iterations)


def _finish(
    task: SingleTask, limits: Limits, types: Types, live: Ints, tasks: float, found: _Found, begin: float
) -> Relaxation:
    """The value at the prices found, certified."""
    prices = limits.valid(found.prices, LEAST_COST)
    V, plan = found.V.copy(), np.full(task.states, -1, dtype=np.int64)
    task.solve(limits.costs(prices), V, plan)
    raised, off = task.certify(limits.costs(prices), V)
    paid = limits.pays(prices)
    rounding = 16.0 * EPS * (1.0 + paid + float(np.abs(raised).max()))
    # Nobody is worth more than if all truths were told, whatever the prices.
    told = float((task.mass * task.ceiling).sum())
    value = min(float((task.mass * raised).sum()) + paid, told) + rounding
    # What has no supply is never paid for: any price will do that nobody would pay.
    supply_prices = np.where(types.supply > 0, 0.0, float((task.ceiling - task.chain.stop).max()))
    supply_prices[live] = prices[1:]
    used = np.zeros(len(types.supply))
    used[live] = tasks * found.used
    return Relaxation(
        value=tasks * value,
        price=float(prices[0]),
        supply_prices=supply_prices,
        lower=tasks * min(found.lower, value),
        gap=tasks * max(value - found.lower, 0.0),
        values=raised,
        plans=np.append(live, -1)[found.plans],
        weights=found.weights,
        used=used,
        error_budget=tasks * (off + rounding),
        rounds=found.rounds,
        seconds=perf_counter() - begin,
        task=task,
    )
