"""The relaxation with workers who differ: one task at a time, every label at its type's price.

====== ============== ========= ==================================================================
symbol code           shape     meaning
====== ============== ========= ==================================================================
p_x    beliefs        (G, C)    beliefs at which tasks stand, ``members`` tasks at each
A      channel        (M, C, C) P(a worker of type m says y | truth c)
N, U   supply, budget (M,), ()  labels each type can give, and labels in all
lam    price          ()        price of a label
nu     supply_prices  (M,)      and what a label of type m costs on top
V      values         (points,) value of a task on the grid at these prices: an upper bound on the true one
====== ============== ========= ==================================================================

    V(p) = max{ max_c p_c , max_m -(lam + nu_m + cost_m) + sum_y P(y | p, m) V(p after y from m) }
    value = min over lam, nu >= 0 of   sum_x V(p_x) + lam U + sum_m nu_m N_m

V is computed on a grid, where interpolation errs upwards (V is convex), and raised until it is a supersolution in spite
of rounding (``certify``). The prices come from cutting planes: the plan that is best at some prices is a column of the
master problem (``master``), whose prices are tried next, every other time half-way to the best ones known.

Guarantee: ``value`` is an upper bound whatever the prices, the grid and the moment of stopping; ``lower`` is reached by
the mixture of ``plans`` on the same grid, so that ``gap`` is what better prices could still take off.
Cost: per round one linear program and some M G E operations; a few dozen rounds for a few types.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import NamedTuple

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.beliefs.prior import EPS
from nextlabel.kernels.crowd_bellman import Chain, excess, push, solve_values
from nextlabel.kernels.crowd_grid import SimplexGrid, fill_chain, place
from nextlabel.solve.crowd.grid import POINTS, make_grid, reachable_odds
from nextlabel.solve.crowd.master import Limits, Master, prefer_common_price, solve_master

#: Rounds of the cutting planes at most, unless told otherwise.
ROUNDS = 400
#: The first price of a label, and the least: a label that costs nothing would have no last one.
FIRST_PRICE, LEAST_PRICE = 0.05, 1e-10
#: Values are computed to this; labels a plan takes at most before its tasks stop where they are.
SOLVED, MOST_LABELS = 1e-11, 20_000
#: Entries of the chain at most; above, the grid is coarser.
LARGEST_CHAIN = 20_000_000
#: Grid points with two answers that are reachable beliefs, at most.
REACHABLE = 800


class Types(NamedTuple):
    """Types of workers: channels, labels that each can give (may be infinite), what one of them costs."""

    channel: Floats
    supply: Floats
    cost: Floats


@dataclass(frozen=True, slots=True)
class Relaxation:
    """No policy is worth more than ``value``; the prices, the values on the grid and the plans it comes from.

    A plan says which type of worker a task at a grid point wants next, -1 for none; ``weights`` are the shares of the
    tasks that follow each. ``used`` are the labels by type that the mixture takes.
    """

    value: float
    price: float
    supply_prices: Floats
    lower: float
    gap: float
    grid: SimplexGrid
    values: Floats
    plans: Ints
    weights: Floats
    used: Floats
    error_budget: float
    rounds: int
    seconds: float
    chain: Chain
    channel: Floats


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
    utility: Floats | None = None,
) -> Relaxation:
    """Solve the relaxation for ``members`` tasks at each of the ``beliefs``.

    ``tolerance`` is the gap per task at which the search ends; ``grid`` is the number of grid points, about;
    ``start`` is an earlier relaxation whose prices and plans are tried first. ``utility`` (A, C) is the value of
    decision a if the truth is c; without it a task counts 1 if it comes out right.
    """
    begin = perf_counter()
    search = _Search(beliefs, members, types, budget, utility, start, grid)
    search.run(tolerance, rounds)
    return search.result(begin)


class _Search:
    """The cutting planes; everything per task."""

    def __init__(
        self,
        beliefs: Floats,
        members: Floats,
        types: Types,
        budget: float,
        utility: Floats | None,
        start: Relaxation | None,
        grid: int | None,
    ) -> None:
        self.tasks = float(members.sum())
        C = beliefs.shape[1]
        self.types = types
        # A worker who says the same whatever the truth teaches nothing; a type without supply is never here.
        teaches = (types.channel != types.channel[:, :1]).any(axis=(1, 2))
        self.live = np.flatnonzero(teaches & (types.supply > 0))
        channel = np.ascontiguousarray(types.channel[self.live])
        self.channel = channel
        utility = np.eye(C) if utility is None else utility
        if start is not None and grid is None and _same(start.channel, channel):
            self.grid, self.chain = start.grid, start.chain
        else:
            self.grid = _grid(beliefs, channel, grid)
            self.chain = _chain(self.grid, channel, utility)
        # What a task would be worth if its truth were told: linear in the belief.
        self.ceiling = (self.grid.points * utility.max(axis=0)).sum(axis=1)
        G = len(self.grid.points)
        self.mass = np.zeros(G)
        place(self.grid, np.ascontiguousarray(beliefs), np.ascontiguousarray(members / self.tasks), self.mass)
        self.limits = Limits(budget / self.tasks, types.supply[self.live] / self.tasks, types.cost[self.live])
        self.V = self.ceiling.copy()
        self.plan = np.full(G, -1, dtype=np.int64)
        M = len(self.live)
        self.plans = [self.plan.copy()]
        self.rewards = [float((self.mass * self.chain.stop).sum())]
        self.labels = [np.zeros(M)]
        self.best = np.inf
        self.prices = np.append(FIRST_PRICE, np.zeros(M))
        self.master: Master | None = None
        self.rounds = 0
        if start is not None:
            self._warm(start)

    def _warm(self, start: Relaxation) -> None:
        M = len(self.live)
        if len(start.supply_prices) != len(self.types.supply):
            return
        self.prices = np.append(start.price, np.where(np.isfinite(self.limits.N), start.supply_prices[self.live], 0.0))
        if start.grid is self.grid:
            self.V = start.values.copy()
            place_of = np.full(len(self.types.supply) + 1, -1, dtype=np.int64)
            place_of[self.live] = np.arange(M)
            for plan in start.plans:
                self._keep(place_of[plan])

    def _keep(self, plan: Ints) -> None:
        """Add a plan to the master problem."""
        used = np.zeros(len(self.live))
        self.rewards.append(push(self.chain, plan, self.mass, 1e-13, MOST_LABELS, used))
        self.labels.append(used)
        self.plans.append(plan.copy())

    def _costs(self, prices: Floats) -> Floats:
        return np.asarray(prices[0] + prices[1:] + self.limits.cost, dtype=np.float64)

    def _pays(self, prices: Floats) -> float:
        """lam U + nu N, where a limit that is infinite has no price."""
        amounts = np.append(self.limits.U, self.limits.N)
        finite = np.isfinite(amounts)
        return float((prices[finite] * amounts[finite]).sum())

    def _try(self, prices: Floats) -> float:
        """Solve at these prices and add the plan; the value there."""
        prices = prices.copy()
        prices[0] = max(prices[0], LEAST_PRICE if np.isfinite(self.limits.U) else 0.0)
        cost = np.maximum(self._costs(prices), LEAST_PRICE)
        solve_values(self.chain, cost, self.V, self.plan, SOLVED, 2000)
        self._keep(self.plan)
        value = float((self.mass * self.V).sum()) + self._pays(prices)
        if value < self.best:
            self.best, self.prices = value, prices
        return value

    def _solve_master(self) -> Master:
        self.master = solve_master(np.array(self.rewards), np.array(self.labels), self.limits)
        return self.master

    def run(self, tolerance: float, rounds: int) -> None:
        """Try prices until the master problem says that no others are better by more than ``tolerance``."""
        wanted = self.prices
        for k in range(rounds):
            self._try(wanted)
            self.rounds = k + 1
            master = self._solve_master()
            if self.best - master.value <= tolerance:
                break
            wanted = master.prices if k % 2 == 0 else 0.5 * (master.prices + self.prices)
        self._settle_prices(tolerance)

    def _settle_prices(self, tolerance: float) -> None:
        """Where several prices are as good, show those that charge most to labels of every type alike."""
        for _ in range(4):
            master = self._solve_master()
            wanted = prefer_common_price(
                np.array(self.rewards), np.array(self.labels), self.limits, max(self.best, master.value)
            )
            if wanted is None:
                break
            before, best = self.prices, self.best
            value = self._try(wanted)
            if value <= best + 0.1 * tolerance:
                self.prices, self.best = wanted, value
                break
            self.prices, self.best = (before, best) if best <= value else (wanted, value)
        self._solve_master()

    def result(self, begin: float) -> Relaxation:
        """The best prices, certified, with the plans of positive weight."""
        prices = self.prices.copy()
        prices[0] = max(prices[0], LEAST_PRICE if np.isfinite(self.limits.U) else 0.0)
        cost = np.maximum(self._costs(prices), LEAST_PRICE)
        solve_values(self.chain, cost, self.V, self.plan, SOLVED, 2000)
        raised, off = certify(self.chain, cost, self.V, self.ceiling, self.mass)
        paid = self._pays(prices)
        off += 16.0 * EPS * (1.0 + paid)
        value = float((self.mass * raised).sum()) + paid + 16.0 * EPS * (1.0 + paid)
        assert self.master is not None
        lower = min(self.master.value, value)
        weights = self.master.weights
        kept = np.flatnonzero(weights > 0)
        shares = weights[kept] / weights[kept].sum()
        M = len(self.types.supply)
        supply_prices = np.where(self.types.supply > 0, 0.0, 1.0)
        supply_prices[self.live] = prices[1:]
        used = np.zeros(M)
        used[self.live] = (shares[:, None] * np.array(self.labels)[kept]).sum(axis=0)
        names = np.append(self.live, -1)
        return Relaxation(
            value=self.tasks * value,
            price=float(prices[0]),
            supply_prices=supply_prices,
            lower=self.tasks * lower,
            gap=self.tasks * (value - lower),
            grid=self.grid,
            values=raised,
            plans=names[np.array(self.plans)[kept]],
            weights=shares,
            used=self.tasks * used,
            error_budget=self.tasks * off,
            rounds=self.rounds,
            seconds=perf_counter() - begin,
            chain=self.chain,
            channel=self.channel,
        )


def certify(chain: Chain, cost: Floats, V: Floats, ceiling: Floats, mass: Floats) -> tuple[Floats, float]:
    """V raised until it is a supersolution in spite of rounding, and by how much that raises the value of ``mass``.

    With T V <= V + e and every cost at least c, U = (V + a ceiling) / (1 + a) satisfies T U <= U for a >= e / c,
    because the ceiling is linear in the belief and every label costs. ``e`` takes in the rounding of T itself.
    """
    E = chain.to.shape[2]
    scale = max(1.0, float(np.abs(V).max()), float(cost.max(initial=0.0)))
    worst = excess(chain, cost, V) + (4.0 * E + 32.0) * EPS * scale
    least = float(cost.min(initial=1.0))
    raised = np.maximum(V, chain.stop)
    a = worst / least
    raised = (raised + a * np.maximum(ceiling, raised)) / (1.0 + a)
    raised = raised + 4.0 * EPS * scale
    return raised, float((mass * (raised - V)).sum())


def _grid(beliefs: Floats, channel: Floats, points: int | None) -> SimplexGrid:
    M, C = channel.shape[0], beliefs.shape[1]
    entries = C * C + (C if C > 2 else 0)
    if C == 2:
        wanted = POINTS[2] if points is None else points
        most = min(REACHABLE, wanted)
        also = reachable_odds(beliefs, channel, most) if M else None
        return make_grid(2, max(wanted - (0 if also is None else len(also)), wanted // 3), also)
    wanted = POINTS.get(C, POINTS[4]) if points is None else points
    return make_grid(C, min(wanted, max(LARGEST_CHAIN // (max(M, 1) * entries), 50)))


def _chain(grid: SimplexGrid, channel: Floats, utility: Floats) -> Chain:
    M, C = channel.shape[0], grid.points.shape[1]
    G, E = len(grid.points), C * channel.shape[2] + (C if C > 2 else 0)
    to, weight = np.zeros((M, G, E), dtype=np.int64), np.zeros((M, G, E))
    fill_chain(grid, channel, to, weight)
    stop = (grid.points[:, None, :] * utility).sum(axis=2).max(axis=1)
    return Chain(to, weight, np.ascontiguousarray(stop))


def _same(a: Floats, b: Floats) -> bool:
    return a.shape == b.shape and bool((a == b).all())
