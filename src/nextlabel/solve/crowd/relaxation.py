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

The interior-point method (Mehrotra's predictor and corrector) solves the whole linear program:

====== ======= ============ ==================================================================
symbol code    shape        meaning
====== ======= ============ ==================================================================
z      z       (M+1+S,)     nu, lam, V: kept strictly feasible, so that every iterate is a bound
s, x   s, x    (rows,)      slacks and multipliers of the rows of A z >= c
mu     mu      ()           mean of s x: what is left to gain, per row
====== ======= ============ ==================================================================

    min  sum_i x_0(i) V_i + lam U + sum_m nu_m N_m
    subject to    V >= R,    V >= T_m V - lam - nu_m - cost_m for every m,    lam >= 0,    nu >= 0

The multipliers of the labels are tasks that take them: state by state, their shares are a plan that draws the next type
by lot, whose value is the lower bound. SciPy's HiGHS, given the same program, takes 0.3 to 7 times as long: twice from
64 types on where labels are plenty, seven times with three answers, which is why this method stays.
Guarantee: the plan is feasible for the relaxation on the grid, so that value and lower bound are proved apart from it.
Cost: 40 to 120 iterations, whatever the number of types.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.sparse import coo_array, csr_array
from threadpoolctl import ThreadpoolController

from nextlabel.arrays import Floats, Ints
from nextlabel.kernels.crowd_grid import push
from nextlabel.model.prior import EPS
from nextlabel.solve.crowd.cutting_planes import CuttingPlanes, Limits
from nextlabel.solve.crowd.single_task import (
    CLOSE,
    LEAST_COST,
    MOST_LABELS,
    Rewards,
    SingleTask,
    make_reachable_task,
    make_single_task,
)

_THREADS = ThreadpoolController()

ITERATIONS = 250
#: Every state begins with so many tasks at least: the values of states that nobody enters would be free.
EVERYWHERE = 1e-10
#: The share of the way to the boundary that is taken, and the share of a plan below which a type is not wanted.
BOUNDARY, LEAST_SHARE = 0.995, 1e-9
#: Labels that a type or the budget can give are at most this many per task: more are never wanted.
PLENTY = 1e3


class Solved(NamedTuple):
    """Prices, values near the optimum, and a plan per task: what it is worth and its labels by type."""

    prices: Floats
    V: Floats
    lower: float
    used: Floats


class _Step(NamedTuple):
    """A direction of z, s and x, and how far it can be gone."""

    z: Floats
    s: Floats
    x: Floats
    far_s: float
    far_x: float


class _Program:
    """Rows A z >= c: V_i - R_i, then nu and lam, then V_i - sum_e weight[m, i, e] V_to + lam + nu_m + cost_m."""

    def __init__(self, task: SingleTask, limits: Limits) -> None:
        to, weight, stop = task.chain
        M, S, E = to.shape
        kind, state = np.divmod(np.arange(M * S), S)
        label = S + M + 1 + np.arange(M * S)
        at, share = (
            np.column_stack([state, to.reshape(-1, E)]),
            np.column_stack([np.ones(M * S), -weight.reshape(-1, E)]),
        )
        rows = [np.arange(S + M + 1), label, label, np.repeat(label, E + 1)]
        columns = [np.append(M + 1 + np.arange(S), np.arange(M + 1)), kind, np.full(M * S, M), M + 1 + at.ravel()]
        entries = np.append(np.ones(S + M + 1 + 2 * M * S), share.ravel())
        self.A: csr_array = coo_array((entries, (np.concatenate(rows), np.concatenate(columns)))).tocsr()
        self.At: csr_array = self.A.T.tocsr()
        self.c = np.concatenate([stop, np.zeros(M + 1), -np.repeat(limits.cost, S)])
        self.shape = M, S
        self._border, self._share = (kind[:, None] * S + at).ravel(), share
        upper = at[:, :, None] <= at[:, None, :]
        self._row, self._pairs = np.nonzero(upper)[0], (at[:, :, None] * S + at[:, None, :])[upper]
        self._products = (share[:, :, None] * share[:, None, :])[upper]

    def factor(self, d: Floats) -> tuple[Floats, bool]:
        """The Cholesky factor of A' diag(d) A."""
        M, S = self.shape
        stop, price, label = d[:S], d[S : S + M + 1], d[S + M + 1 :]
        H, taken = np.zeros((M + 1 + S, M + 1 + S)), label.reshape(M, S).sum(axis=1)
        H[range(M + 1), range(M + 1)] = price + np.append(taken, taken.sum())
        H[:M, M] = taken
        H[:M, M + 1 :] = np.bincount(self._border, (self._share * label[:, None]).ravel(), M * S).reshape(M, S)
        H[M, M + 1 :] = H[:M, M + 1 :].sum(axis=0)
        H[M + 1 :, M + 1 :] = np.bincount(self._pairs, self._products * label[self._row], S * S).reshape(S, S)
        H[range(M + 1, M + 1 + S), range(M + 1, M + 1 + S)] += stop
        found: tuple[Floats, bool] = cho_factor(H, overwrite_a=True, check_finite=False)
        return found

    def direction(self, F: tuple[Floats, bool], off: Floats, x: Floats, s: Floats, complementarity: Floats) -> _Step:
        """Newton's step towards A' x = b and s x + complementarity = s x; ``F`` is the factor of A' diag(x/s) A."""
        dz = cho_solve(F, off - self.At @ (complementarity / s), check_finite=False)
        ds = self.A @ dz
        dx = -(complementarity + x * ds) / s
        return _Step(dz, ds, dx, longest_step(s, ds), longest_step(x, dx))


def longest_step(v: Floats, dv: Floats) -> float:
    """The largest step up to 1 that keeps v + step dv at least 0."""
    down = dv < 0.0
    return float(min(1.0, (-v[down] / dv[down]).min(initial=1.0)))


def solve_interior(task: SingleTask, limits: Limits, tolerance: float) -> Solved:
    """Prices whose value is within about ``tolerance`` of the least, per task."""
    M, S = len(task.channel), task.states
    rows, program = S + M * S + M + 1, _Program(task, limits)
    b = np.concatenate([np.minimum(limits.N, PLENTY), [min(limits.U, PLENTY)], task.mass + EVERYWHERE])
    top = float(task.ceiling.max())
    room = max(1e-3, top - float(task.chain.stop.min()))
    z = best = np.concatenate([np.full(M, 0.04 * room), [0.2 * room], np.full(S, top + 0.1 * room)])
    x = flow = np.full(rows, 1.0 / (1 + M))
    s = program.A @ z - program.c
    for _ in range(ITERATIONS):
        off, left = program.At @ x - b, float((x * s).sum())
        if left <= 0.1 * tolerance and np.abs(off).max() <= tolerance:
            break
        try:
            F = program.factor(x / s)
        except LinAlgError:  # no digits left
            break
        ahead = program.direction(F, off, x, s, x * s)
        gained = float(((x + ahead.far_x * ahead.x) * (s + ahead.far_s * ahead.s)).sum())
        centre = (gained / left) ** 3 * left / rows
        step = program.direction(F, off, x, s, x * s - centre + ahead.x * ahead.s)
        z = z + min(1.0, BOUNDARY * step.far_s) * step.z
        x = x + min(1.0, BOUNDARY * step.far_x) * step.x
        s = program.A @ z - program.c
        if not (s.min() > 0.0 and np.isfinite(x).all()):  # no digits left
            break
        best, flow = z, x
    return _result(task, limits, best, flow)


def _result(task: SingleTask, limits: Limits, z: Floats, x: Floats) -> Solved:
    """Prices, and the plan by lot with its value once it is scaled down to what is there."""
    M, S = len(task.channel), task.states
    prices = np.concatenate([z[M : M + 1], np.where(np.isfinite(limits.N), z[:M], 0.0)])
    flow = np.append(x[:S], x[S + M + 1 :]).reshape(M + 1, S)
    share = flow[1:] / flow.sum(axis=0)
    share[share < LEAST_SHARE] = 0.0
    used = np.zeros(M)
    worth = push(task.chain, share, task.mass, 1e-13, MOST_LABELS, used) - float((limits.cost * used).sum())
    # A little more than there is: the rest of the tasks stop at once.
    kept = min(1.0, float((limits.N / np.maximum(used, 1e-300)).min()), limits.U / max(float(used.sum()), 1e-300))
    lower = kept * worth + (1.0 - kept) * task.at_once()
    return Solved(np.maximum(prices, 0.0), z[M + 1 :].copy(), lower, kept * used)


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
) -> Relaxation:
    """Solve the relaxation for ``members`` tasks at each of the ``beliefs``.

    ``tolerance`` is the gap per task at which the search ends; ``grid`` is the number of grid points, about. Without
    ``rewards`` a task counts 1 if it comes out right. ``reachable``: instead of a grid of the simplex take beliefs that
    the tasks' own lead to, which is better from five answers on.
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
    many = len(live) >= (MANY_TYPES if C == 2 else MANY_TYPES_OF_MORE)
    if many and grid is None:
        states = FEWER_STATES if len(live) > VERY_MANY_TYPES else INTERIOR_STATES
        grid = states // len(rewards.utilities)
    make = make_reachable_task if reachable else make_single_task
    task = make(beliefs, members, np.ascontiguousarray(types.channel[live]), rewards, grid)
    task = task._replace(most=np.ceil(budget))
    limits = Limits(budget / tasks, types.supply[live] / tasks, types.cost[live])
    # The last digits cost the interior-point method one iteration more.
    if many:
        with _THREADS.limit(limits=1, user_api="blas"):  # where all cores are busy, threads would wait for each other
            solved = solve_interior(task, limits, 0.01 * tolerance)
        best = _certified(task, limits, types, live, (tasks, ignored), solved)
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
