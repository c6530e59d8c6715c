"""The relaxation that the policy ``crowd`` follows: a few single-task plans with weights, solved again and again.

====== ======== ========== ============================================================================
symbol code     shape      meaning
====== ======== ========== ============================================================================
lam    price    --         of a label of the budget
nu_m   extra    (M,)       of a label of type m, above it
U      budget   --         labels left
N_m    supply   (M,)       labels that type m can still give
r_k    earned   --         expected reward of all tasks under plan k
u_k    used     (M,)       labels by type that plan k uses
w_k    weights  (plans,)   share of the tasks that follow plan k
====== ======== ========== ============================================================================

    min over lam, nu >= 0 of  max_k { r_k - (lam + nu + cost) . u_k } + lam U + nu . N

by the cutting planes of ``solve.crowd.cutting_planes``, whose dual variables are the weights. Plans of the solution
before are the first cuts, evaluated anew for the tasks as they are now, so that solving again takes a few steps. The
certified bound is another matter (``solve.crowd``): here nothing is proved, and more than two answers are a chain too
(``policies.crowd.chain``).
Guarantee: within ``gap`` of the chain's optimum per task. Cost: some 5 to 50 ms.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.kernels.crowd_bellman import Chain, push, solve_values
from nextlabel.kernels.crowd_choice import CrowdPlan
from nextlabel.solve.crowd.cutting_planes import CuttingPlanes, Limits
from nextlabel.solve.crowd.single_task import shares_of

#: How far the plans may be from the best ones, per task: where channels are known, and where they are learnt.
GAP, LEARNT_GAP = 2e-5, 1e-4
MOST_CUTS = 200
#: Plans that are kept, those of the largest weight.
MOST_PLANS = 16
#: Labels are not asked for that are worth less than this: where supply is left over, there would be no last one.
LEAST_PRICE = 2e-4
#: Accuracy of V, sweeps at most, and the share of the tasks still under way that is no longer followed.
TOLERANCE, MOST_SWEEPS, LEFT_OVER = 1e-9, 1000, 1e-7


@dataclass(frozen=True, slots=True, eq=False)
class CrowdRelaxation:
    """Prices, plans (plans, G) with their weights, and V on the grid."""

    value: float
    price: float
    extra: Floats
    plans: Ints
    weights: Floats
    values: Floats
    gap: float
    steps: int


class _Task(NamedTuple):
    """Tasks on a chain, valued upwards from stopping at once."""

    chain: Chain
    mass: Floats

    def solve(self, cost: Floats, V: Floats, plan: Ints) -> None:
        """V at these costs, and the plan that reaches it."""
        V[:] = self.chain.stop
        solve_values(self.chain, np.maximum(cost, LEAST_PRICE), V, plan, TOLERANCE, MOST_SWEEPS, 0)

    def follow(self, plan: Ints) -> tuple[float, Floats]:
        """Expected reward under the plan, and labels by type."""
        used = np.zeros(len(self.chain.to))
        return push(self.chain, shares_of(plan, len(used)), self.mass, LEFT_OVER, MOST_SWEEPS, used), used


class RelaxationSolver:
    """Solves for tasks at grid points; remembers the last plans as a start for the next time."""

    def __init__(self, tables: tuple[Ints, Floats], reward: Floats, cost: Floats, start: Ints | None = None) -> None:
        self.chain, self.cost = Chain(*tables, reward), cost
        nothing = np.zeros((0, len(reward)), dtype=np.int64)
        self.plans = nothing if start is None else np.where(start < len(cost), start, -1)

    def solve(self, members: Floats, budget: float, supply: Floats, gap: float = GAP) -> CrowdRelaxation:
        """The relaxation for ``members`` (G,) tasks, ``budget`` labels and ``supply`` (M,) labels by type."""
        tasks = max(float(members.sum()), 1.0)
        task = _Task(self.chain, members / tasks)
        limits = Limits(budget / tasks, np.minimum(supply, budget) / tasks, self.cost)
        search = CuttingPlanes(task, limits, self.chain.stop.copy(), self.plans)
        master = search.run(gap, MOST_CUTS)
        kept = np.sort(np.argsort(-master.weights, kind="stable")[:MOST_PLANS])
        kept = kept[master.weights[kept] > 0.0]
        self.plans = np.array([search.plans[k] for k in kept])
        values, plan = self.chain.stop.copy(), np.empty(len(self.chain.stop), dtype=np.int64)
        task.solve(limits.costs(search.prices), values, plan)
        return CrowdRelaxation(
            value=tasks * search.best,
            price=float(search.prices[0]),
            extra=search.prices[1:],
            plans=self.plans,
            weights=master.weights[kept] / master.weights[kept].sum(),
            values=values,
            gap=tasks * max(0.0, search.best - master.value),
            steps=search.rounds,
        )

    def losses(self, found: CrowdRelaxation) -> Floats:
        """(M, G) what a label of each type at each belief loses against the best that could be done there."""
        after = np.sum(self.chain.weight * found.values[self.chain.to], axis=2)
        prices = np.maximum(found.price + found.extra + self.cost, LEAST_PRICE)
        return np.asarray(np.maximum(found.values[None, :] + prices[:, None] - after, 0.0))


def crowd_plan(
    grid: Floats, found: CrowdRelaxation, losses: Floats, reward: Floats, *, finish: bool = False
) -> CrowdPlan:
    """The relaxation as the decision core reads it, with room for ``MOST_PLANS`` plans.

    The task with the most left to gain goes first, or with ``finish`` the one that is most certain already.
    """
    G = losses.shape[1]
    wants = np.full((MOST_PLANS, G), -1, dtype=np.int64)
    wants[: len(found.plans)] = found.plans
    chance = np.ones(MOST_PLANS)
    chance[: len(found.weights)] = np.cumsum(found.weights)
    surplus = reward if finish else np.maximum(found.values - reward, 0.0)
    return _ordered(grid, wants, chance, surplus, losses, found.extra.copy())


def ranked_plan(grid: Floats, rank: Floats) -> CrowdPlan:
    """A plan for rules that take the bin of the largest ``rank`` (G,), whoever the worker is (type 0)."""
    G = len(rank)
    wants = np.full((MOST_PLANS, G), -1, dtype=np.int64)
    wants[0] = 0
    chance = np.ones(MOST_PLANS)
    return _ordered(grid, wants, chance, rank, np.zeros((1, G)), np.zeros(1))


def scored_plan(grid: Floats, score: Floats) -> CrowdPlan:
    """A plan for rules that give a worker of type m the task with the largest ``score[m]`` (M, G), if it is above 0."""
    most = score.max(axis=1)
    wants = np.full((MOST_PLANS, len(grid)), -1, dtype=np.int64)
    return _ordered(grid, wants, np.ones(MOST_PLANS), score.max(axis=0), most[:, None] - score, most)


def _ordered(grid: Floats, wants: Ints, chance: Floats, surplus: Floats, losses: Floats, refuse: Floats) -> CrowdPlan:
    """With the groups that want each type by falling surplus, and the bins by rising loss."""
    M, plans = len(losses), len(wants)
    kinds = wants.T.ravel()  # group = bin * plans + plan
    by_surplus = np.lexsort((np.arange(kinds.size), -np.repeat(surplus, plans), np.where(kinds < 0, M, kinds)))
    first = np.searchsorted(kinds[by_surplus][: np.count_nonzero(kinds >= 0)], np.arange(M + 1))
    order = by_surplus[: int(first[-1])]
    # Losses that differ in their last digits are equal: then the larger surplus goes first.
    spare = np.lexsort((np.broadcast_to(-surplus, losses.shape), np.round(losses, 9)), axis=1)
    return CrowdPlan(
        grid, wants, chance, surplus, losses, refuse, first.astype(np.int64), order.astype(np.int64),
        np.ascontiguousarray(spare, dtype=np.int64),
    )  # fmt: skip
