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

by cutting planes: the best plan at the present prices is the next k (``kernels.crowd_chain``). The dual variables of
the cuts are the weights. Plans of the solution before are the first cuts, evaluated anew for the tasks as they are now,
so that solving again takes a few steps. The certified bound is another matter (``solve.crowd``): here nothing is
proved, and more than two answers are a chain too (``policies.crowd.chain``).
Guarantee: within ``gap`` of the chain's optimum per task. Cost: some 5 to 50 ms.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.kernels.crowd_chain import best_plan, follow_plan
from nextlabel.kernels.crowd_choice import CrowdPlan
from nextlabel.solve.crowd.cutting_planes import Limits, solve_master

#: How far the plans may be from the best ones, per task: where channels are known, and where they are learnt.
GAP, LEARNT_GAP = 2e-5, 1e-4
MOST_CUTS = 200
#: Plans that are kept, those of the largest weight.
MOST_PLANS = 16
#: Labels are not asked for that are worth less than this: where supply is left over, there would be no last one.
LEAST_PRICE = 2e-4
TOLERANCE = 1e-9


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


class RelaxationSolver:
    """Solves for tasks at grid points; remembers the last plans as a start for the next time."""

    def __init__(self, tables: tuple[Ints, Floats], reward: Floats, cost: Floats, start: Ints | None = None) -> None:
        self.to, self.weight = tables
        self.reward, self.cost = reward, cost
        stop = np.full((1, len(reward)), -1, dtype=np.int64)
        self.plans = stop if start is None else np.concatenate([stop, np.where(start < len(cost), start, -1)])

    def solve(self, members: Floats, budget: float, supply: Floats, gap: float = GAP) -> CrowdRelaxation:
        """The relaxation for ``members`` (G,) tasks, ``budget`` labels and ``supply`` (M,) labels by type."""
        tasks = max(float(members.sum()), 1.0)
        mass = members / tasks
        limits = Limits(budget / tasks, np.minimum(supply, budget) / tasks, self.cost)
        plans = list(self.plans)
        cuts = [self._cut(plan, mass) for plan in plans]
        value, worth, best = self.reward.copy(), self.reward, np.inf
        prices = np.zeros(len(self.cost) + 1)
        for step in range(MOST_CUTS):
            master = solve_master(np.array([c[0] for c in cuts]), np.array([c[1] for c in cuts]), limits)
            # Every other time half-way to the best prices known: the master's own leap about while it knows few plans.
            here = master.prices if step % 2 == 0 or best == np.inf else 0.5 * (master.prices + prices)
            plan = np.empty(len(self.reward), dtype=np.int64)
            price = np.maximum(here[0] + here[1:] + self.cost, LEAST_PRICE)
            best_plan(self.to, self.weight, self.reward, price, TOLERANCE, value, plan)
            bound = float(mass @ value + here[0] * limits.U + here[1:] @ limits.N)
            if bound < best:
                best, worth, prices = bound, value.copy(), here
            plans.append(plan)
            cuts.append(self._cut(plan, mass))
            if best - master.value <= gap:
                break
        weights = solve_master(np.array([c[0] for c in cuts]), np.array([c[1] for c in cuts]), limits).weights
        kept = np.sort(np.argsort(-weights, kind="stable")[:MOST_PLANS])
        kept = kept[weights[kept] > 0.0]
        self.plans = np.array([plans[k] for k in kept])
        shares = weights[kept] / weights[kept].sum()
        return CrowdRelaxation(
            value=tasks * best,
            price=float(prices[0]),
            extra=prices[1:],
            plans=self.plans,
            weights=shares,
            values=worth,
            gap=tasks * max(0.0, best - master.value),
            steps=step + 1,
        )

    def _cut(self, plan: Ints, members: Floats) -> tuple[float, Floats]:
        used, mass = np.zeros(len(self.cost)), members.copy()
        return follow_plan(self.to, self.weight, self.reward, plan, mass, np.zeros(len(mass)), used), used

    def losses(self, found: CrowdRelaxation) -> Floats:
        """(M, G) what a label of each type at each belief loses against the best that could be done there."""
        after = np.sum(self.weight * found.values[self.to], axis=2)
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
