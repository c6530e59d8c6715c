"""Policies that know who is there: which task a worker gets depends on the worker too, or there is none for them.

A policy of this kind says what a label of each type of worker is worth at each belief (``WorkerPolicy.score``). The
allocator (``policies.crowd.allocator``) groups workers into types, keeps beliefs, labels in flight and turns, and asks
again as labels come in; so the same few lines play in the simulator, in a replay and in a backtest.

The relaxation that the policy ``crowd`` follows: a few single-task plans with weights, solved again and again.

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
before are the first cuts, evaluated anew for the tasks as they are now. The certified bound is another matter
(``solve.crowd``): here nothing is proved, and more than two answers are a chain too.
Guarantee: within ``gap`` of the chain's optimum per task. Cost: some 5 to 50 ms.

The chain: beliefs of one task as grid points, and where a label of each type of worker leads.

====== ======= ========== =====================================================================================
symbol code    shape      meaning
====== ======= ========== =====================================================================================
p      grid    (G,)       two answers: P(truth = 1). More: u, the probability of the likeliest truth
A      channel (M, C, C)  P(a worker of type m says y | truth c)
a      right   (M,)       more than two answers: the accuracy of the worker who tells truths apart as well
--     to      (M, G, E)  grid points after a label, and
--     weight  (M, G, E)  with which probability
====== ======= ========== =====================================================================================

Two answers: log-odds evenly spaced, p' = p A[1, y] / P(y) shared between its two neighbours.

More answers: the belief outside the likeliest truth is taken to be spread evenly, and a worker to be right with
probability a and wrong in every way alike, with the mean Bhattacharyya coefficient of the channel's pairs of rows:

    mean over c < d of sum_y sqrt(A[c, y] A[d, y])  =  2 sqrt(a e) + (C - 2) e,        e = (1 - a) / (C - 1).

This is a bucketing of the beliefs by their largest probability: it decides who gets what, and claims nothing.
Guarantee: none for more than two answers; for two, the grid's. Cost: M G E.

Types: workers of alike channels as one, so that the relaxation has few prices however many workers there are.
Square-root angles of the channels, rounded to cells, are merged two by two: each time the pair whose merging moves the
channels least, weighed by the labels that they are expected to give (Ward).
Guarantee: deterministic; a heuristic. Cost: O(cells^2) per merge, some hundred cells whatever the number of workers.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.errors import InputError, refuse
from nextlabel.kernels.crowd_campaign import CrowdPlan
from nextlabel.kernels.crowd_grid import Chain as ChainArrays
from nextlabel.kernels.crowd_grid import push, solve_values
from nextlabel.policies.base import Policy, ScoreTables, Setting
from nextlabel.solve.crowd.cutting_planes import CuttingPlanes, Limits, shares_of

if TYPE_CHECKING:
    from nextlabel.policies.crowd.allocator import CrowdAllocator

#: Largest log-odds of the grid, and the distance of its points.
REACH, STEP = 8.0, 0.05


@dataclass(frozen=True, eq=False)
class Chain:
    """Grid beliefs of a task with ``answers`` answers, and the labels of M types of workers on it."""

    channels: Floats

    @property
    def answers(self) -> int:
        """C, the number of answers."""
        return int(self.channels.shape[1])

    @cached_property
    def grid(self) -> Floats:
        """(G,) beliefs, rising."""
        return belief_grid(self.answers)

    @cached_property
    def reward(self) -> Floats:
        """(G,) probability of the likeliest truth."""
        return np.maximum(self.grid, 1.0 - self.grid) if self.answers == 2 else self.grid

    @cached_property
    def tables(self) -> tuple[Ints, Floats]:
        """``to`` and ``weight``, (M, G, 4) each: two outcomes of a label, each shared between two grid points."""
        after, chance = self._two_answers() if self.answers == 2 else self._more_answers()
        return _shared(self.grid, after, chance)

    def mixed(self, shares: Floats) -> tuple[Ints, Floats]:
        """``to`` and ``weight``, (1, G, 4 M), of a label by whoever comes: type m with probability ``shares[m]``."""
        to, weight = self.tables
        M, G, E = to.shape
        part = weight * (shares / shares.sum())[:, None, None]
        return (
            np.ascontiguousarray(np.moveaxis(to, 0, 1).reshape(1, G, M * E)),
            np.ascontiguousarray(np.moveaxis(part, 0, 1).reshape(1, G, M * E)),
        )

    def _two_answers(self) -> tuple[Floats, Floats]:
        p, A = self.grid[None, :, None], self.channels[:, None, :, :]
        one, zero = p * A[:, :, 1, :], (1.0 - p) * A[:, :, 0, :]
        chance = one + zero
        return np.divide(one, chance, out=np.full_like(chance, 0.5), where=chance > 0), chance

    def _more_answers(self) -> tuple[Floats, Floats]:
        C, u = self.answers, self.grid[None, :]
        a = np.array([matched_accuracy(channel) for channel in self.channels])[:, None]
        e, rest = (1.0 - a) / (C - 1), (1.0 - u) / (C - 1)
        named = u * a + (1.0 - u) * e
        other = 1.0 - named
        # Another truth is named: it, or still the likeliest one, or any of the rest is then the likeliest.
        top = np.maximum(np.maximum(rest * a, u * e), rest * e)
        after = np.stack([u * a / named, np.divide((C - 1) * top, other, out=np.ones_like(top), where=other > 0)], -1)
        return np.clip(after, 1.0 / C, 1.0), np.stack([named, other], -1)


def reward_on(grid: Floats, right: Floats, utility: tuple[tuple[float, ...], ...] | None) -> Floats:
    """(G,) expected utility [answer][truth] of the best answer, the worst counted as 0 and the best as 1.

    Of more than two answers, and without a utility, it is ``right``, the chance that the likeliest answer is right.
    """
    if utility is None or len(utility) > 2:
        return right
    worth = np.asarray(utility) - np.min(utility)
    return np.asarray((np.stack([1.0 - grid, grid], axis=1) @ worth.T).max(axis=1) / (worth.max() or 1.0))


def belief_grid(answers: int) -> Floats:
    """(G,) grid beliefs: p for two answers, the largest probability (from 1 / answers) for more."""
    low = -REACH if answers == 2 else -float(np.log(answers - 1.0))
    points = np.linspace(low, REACH, int(np.ceil((REACH - low) / STEP)) + 1)
    return np.asarray(1.0 / (1.0 + np.exp(-points)))


def matched_accuracy(channel: Floats) -> float:
    """a of the even worker with the same mean Bhattacharyya coefficient between truths, by bisection."""
    C = len(channel)
    root = np.sqrt(channel)
    overlap = root @ root.T
    wanted = float((overlap.sum() - np.trace(overlap)) / (C * (C - 1)))
    low, high = 1.0 / C, 1.0
    for _ in range(60):
        a = 0.5 * (low + high)
        e = (1.0 - a) / (C - 1)
        if 2.0 * np.sqrt(a * e) + (C - 2) * e > wanted:
            low = a
        else:
            high = a
    return 0.5 * (low + high)


def _shared(grid: Floats, after: Floats, chance: Floats) -> tuple[Ints, Floats]:
    """Beliefs (M, G, Y) shared between their neighbours on the grid, so that the mean stays."""
    inside = np.clip(after, grid[0], grid[-1])
    k = np.clip(np.searchsorted(grid, inside, side="right") - 1, 0, len(grid) - 2)
    upper = (inside - grid[k]) / (grid[k + 1] - grid[k])
    to = np.concatenate([k, k + 1], axis=-1)
    return to, np.concatenate([chance * (1.0 - upper), chance * upper], axis=-1)


#: Types of workers at most.
MOST_TYPES = 6
#: Types of known channels at most, before the nearest are merged.
MOST_KNOWN = 12
#: Size of a cell, in radians: 0.08 is from .75 to .68, or from .95 to .91.
CELL = 0.08
#: Types that are nearer to each other than this are one.
ALIKE = 0.04


@dataclass(frozen=True, slots=True, eq=False)
class CrowdTypes:
    """``kind`` (W,) the type of each worker, ``channels`` (M, C, C) of the types, ``share`` (M,) of the labels."""

    kind: Ints
    channels: Floats
    share: Floats


def same_channels(channels: Floats, weights: Floats) -> CrowdTypes | None:
    """Workers whose channels are equal as one type; None if there are more than ``MOST_KNOWN`` types."""
    different, kind = np.unique(channels, axis=0, return_inverse=True)
    if len(different) > MOST_KNOWN:
        return None
    share = np.bincount(kind.ravel(), np.maximum(weights, 0.0), minlength=len(different)).astype(np.float64)
    return CrowdTypes(kind.ravel().astype(np.int64), different, share / (share.sum() or 1.0))


def group_workers(channels: Floats, weights: Floats) -> CrowdTypes:
    """At most ``MOST_TYPES`` types for W workers with these channels (W, C, C) and expected labels to come (W,)."""
    answers = channels.shape[1]
    if answers == 2:
        features = np.arcsin(np.sqrt(np.clip(channels[:, :, 1], 0.0, 1.0)))
    else:
        rounded, back = np.unique(np.round(channels, 2), axis=0, return_inverse=True)
        right = np.array([matched_accuracy(one) for one in rounded])[back.ravel()]
        features = np.arcsin(np.sqrt(right))[:, None]
    weight = np.maximum(weights, 1e-9)
    _, cell = np.unique(np.floor(features / CELL), axis=0, return_inverse=True)
    cell = cell.ravel()
    mass = np.bincount(cell, weight).astype(np.float64)
    centre = np.column_stack([np.bincount(cell, weight * f) / mass for f in features.T])
    kind = _merge(centre, mass)[cell]
    M = int(kind.max()) + 1
    share = np.bincount(kind, weight, minlength=M)
    mean = np.zeros((M, answers, answers))
    np.add.at(mean, kind, weight[:, None, None] * channels)
    return CrowdTypes(kind.astype(np.int64), mean / share[:, None, None], share / share.sum())


def _merge(centre: Floats, mass: Floats) -> Ints:
    """The type of each cell, numbered in the order of the cells."""
    centre, mass = centre.copy(), mass.copy()
    group = np.arange(len(mass))
    alive = np.ones(len(mass), dtype=bool)
    distance = np.sum((centre[:, None] - centre[None]) ** 2, axis=2)
    cost = distance * (mass[:, None] * mass[None] / (mass[:, None] + mass[None]))
    np.fill_diagonal(cost, np.inf)
    while True:
        near = np.where(distance <= ALIKE**2, cost, np.inf)
        pick = near if np.isfinite(near).any() else cost
        if pick is cost and int(alive.sum()) <= MOST_TYPES:
            break
        a, b = sorted(int(k) for k in np.unravel_index(np.argmin(pick), pick.shape))
        whole = mass[a] + mass[b]
        centre[a] = (mass[a] * centre[a] + mass[b] * centre[b]) / whole
        mass[a] = whole
        group[group == b] = a
        alive[b] = False
        for table in (cost, distance):
            table[b, :] = table[:, b] = np.inf
        far = np.sum((centre - centre[a]) ** 2, axis=1)
        others = alive & (np.arange(len(mass)) != a)
        distance[a, others] = distance[others, a] = far[others]
        cost[a, others] = cost[others, a] = (far * mass * whole / (mass + whole))[others]
    return np.searchsorted(np.unique(group), group)


#: How far the plans may be from the best ones, per task: where channels are known, and where they are learnt.
GAP, LEARNT_GAP = 2e-5, 1e-4
MOST_CUTS = 200
#: Plans that are kept, those of the largest weight.
MOST_PLANS = 16
#: Labels are not asked for that are worth less than this: where supply is left over, there would be no last one.
LEAST_PRICE = 2e-4
#: Accuracy of V, sweeps at most, and the share of the tasks still under way that is no longer followed.
TOLERANCE, MOST_SWEEPS, LEFT_OVER = 1e-9, 1000, 1e-7


class CrowdRelaxation(NamedTuple):
    """Value of all tasks, prices by type above the first, plans (plans, G) with their weights, and V on the grid.

    ``losses`` (M, G) is what a label of each type at each belief loses against the best that could be done there.
    """

    value: float
    extra: Floats
    plans: Ints
    weights: Floats
    values: Floats
    losses: Floats


class _Task(NamedTuple):
    """Tasks on a chain, valued upwards from stopping at once."""

    chain: ChainArrays
    mass: Floats

    def solve(self, cost: Floats, V: Floats, plan: Ints) -> None:
        """V at these costs, and the plan that reaches it."""
        V[:] = self.chain.stop
        solve_values(self.chain, np.maximum(cost, LEAST_PRICE), V, plan, TOLERANCE, MOST_SWEEPS, 0)

    def follow(self, plan: Ints) -> tuple[float, Floats]:
        """Expected reward under the plan, and labels by type."""
        used = np.zeros(len(self.chain.to))
        return push(self.chain, shares_of(plan, len(used)), self.mass, LEFT_OVER, MOST_SWEEPS, used), used


def solve_relaxation(
    tables: tuple[Ints, Floats], reward: Floats, cost: Floats, members: Floats, budget: float, supply: Floats,
    gap: float = GAP, start: Ints | None = None,
) -> CrowdRelaxation:  # fmt: skip
    """The relaxation for ``members`` (G,) tasks, ``budget`` labels and ``supply`` (M,) labels by type.

    ``start``: plans to begin with, those of the time before.
    """
    chain, tasks = ChainArrays(*tables, reward), max(float(members.sum()), 1.0)
    task, limits = _Task(chain, members / tasks), Limits(budget / tasks, np.minimum(supply, budget) / tasks, cost)
    first = np.zeros((0, len(reward)), dtype=np.int64) if start is None else np.where(start < len(cost), start, -1)
    search = CuttingPlanes(task, limits, chain.stop.copy(), first)
    master = search.run(gap, MOST_CUTS)
    kept = np.sort(np.argsort(-master.weights, kind="stable")[:MOST_PLANS])
    kept = kept[master.weights[kept] > 0.0]
    values, plan = chain.stop.copy(), np.empty(len(chain.stop), dtype=np.int64)
    task.solve(limits.costs(search.prices), values, plan)
    after = np.sum(chain.weight * values[chain.to], axis=2)
    costs = np.maximum(search.prices[0] + search.prices[1:] + cost, LEAST_PRICE)
    losses = np.asarray(np.maximum(values[None, :] + costs[:, None] - after, 0.0))
    plans, weights = np.array([search.plans[k] for k in kept]), master.weights[kept] / master.weights[kept].sum()
    return CrowdRelaxation(tasks * search.best, search.prices[1:], plans, weights, values, losses)


def crowd_plan(grid: Floats, relaxation: CrowdRelaxation, reward: Floats, *, finish: bool = False) -> CrowdPlan:
    """The relaxation as the decision core reads it.

    The task with the most left to gain goes first, or with ``finish`` the one that is most certain already.
    """
    surplus = reward if finish else np.maximum(relaxation.values - reward, 0.0)
    return _plan(grid, relaxation.plans, relaxation.weights, surplus, relaxation.losses, relaxation.extra.copy())


def ranked_plan(grid: Floats, rank: Floats) -> CrowdPlan:
    """A plan for rules that take the bin of the largest ``rank`` (G,), whoever the worker is (type 0)."""
    G = len(rank)
    return _plan(grid, np.zeros((1, G), dtype=np.int64), np.ones(1), rank, np.zeros((1, G)), np.zeros(1))


def scored_plan(grid: Floats, score: Floats) -> CrowdPlan:
    """A plan for rules that give a worker of type m the task with the largest ``score[m]`` (M, G), if it is above 0."""
    most, none = score.max(axis=1), np.zeros((0, len(grid)), dtype=np.int64)
    return _plan(grid, none, np.zeros(0), score.max(axis=0), most[:, None] - score, most)


def _plan(grid: Floats, plans: Ints, weights: Floats, surplus: Floats, losses: Floats, refuse: Floats) -> CrowdPlan:
    """With the groups that want each type by falling surplus, and the bins by rising loss."""
    wants, chance, M = np.full((MOST_PLANS, len(grid)), -1, dtype=np.int64), np.ones(MOST_PLANS), len(losses)
    wants[: len(plans)], chance[: len(weights)] = plans, np.cumsum(weights)
    kinds = wants.T.ravel()  # group = bin * plans + plan
    by_surplus = np.lexsort((np.arange(kinds.size), -np.repeat(surplus, MOST_PLANS), np.where(kinds < 0, M, kinds)))
    first = np.searchsorted(kinds[by_surplus][: np.count_nonzero(kinds >= 0)], np.arange(M + 1))
    order = by_surplus[: int(first[-1])]
    # Losses that differ in their last digits are equal: then the larger surplus goes first.
    spare = np.lexsort((np.broadcast_to(-surplus, losses.shape), np.round(losses, 9)), axis=1)
    return CrowdPlan(
        grid, wants, chance, surplus, losses, refuse, first.astype(np.int64), order.astype(np.int64),
        np.ascontiguousarray(spare, dtype=np.int64),
    )  # fmt: skip


class CrowdView(NamedTuple):
    """What a policy that knows workers looks at: beliefs of tasks as G points, workers in M types."""

    grid: Floats  # (G,) P(truth = 1) for two answers, the largest probability for more
    reward: Floats  # (G,) the chance that the likeliest answer is right
    to: Ints  # (M, G, E) beliefs after a label of each type, as points of the grid
    weight: Floats  # (M, G, E) and with which probability
    share: Floats  # (M,) of the arrivals to come
    cost: Floats  # (M,) of a label
    supply: Floats  # (M,) labels that each type can still give
    members: Floats  # (G,) tasks at each belief
    left: float  # labels left

    def after(self, values: Floats) -> Floats:
        """(M, G) E[values after a label of each type]."""
        return np.asarray(np.sum(self.weight * values[self.to], axis=2))


class WorkerPolicy(Policy):
    """A rule that looks at who has come, and so has no table by the state of the task alone."""

    in_flight = "all of it, in expectation"
    by_table = False
    knows_workers = True

    @abstractmethod
    def score(self, view: CrowdView) -> Floats:
        """(types, beliefs) what a label of a worker of the type is worth; the worker gets the task with the largest.

        Where workers may be turned away, one for whom no score is above 0 is.
        """

    def plan(self, crowd: CrowdAllocator) -> CrowdPlan:
        """The scores as the decision core reads them."""
        view = crowd.view()
        score, shape = np.asarray(self.score(view), dtype=np.float64), view.to.shape[:2]
        refuse((
            score.shape != shape or not np.isfinite(score).all(),
            f"policy {self.name!r} returns scores of shape {score.shape}, and finite ones of {shape} are needed.",
            "Return one row for each type of worker and one column for each belief.",
        ))  # fmt: skip
        return scored_plan(view.grid, score)

    def scores(self, setting: Setting) -> list[ScoreTables]:
        """Refused: there is nobody to tell apart."""
        raise InputError(
            f"the policy {self.name} is for workers who differ, and the problem does not say who they are.",
            "Add [[workers]] tables with accuracy and supply to the problem file, or use index.",
        )


class Crowd(WorkerPolicy):
    """Follows the relaxation with a price for each type of worker, solved again as labels come in."""

    name = "crowd"
    priced = True
    planned_ahead = True
    solves_again = True

    def plan(self, crowd: CrowdAllocator) -> CrowdPlan:
        """The relaxation for the tasks as they stand."""
        return crowd.relaxation()

    def score(self, view: CrowdView) -> Floats:
        """What a label adds to the chance that the task is right, less its cost: the relaxation looks further."""
        return view.after(view.reward) - view.reward - view.cost[:, None]


class ActiveLab(WorkerPolicy):
    """Rounds of the items of the lowest score of ActiveLab, a baseline for recorded labels with features."""

    name = "activelab"
    live = False

    def score(self, view: CrowdView) -> Floats:
        """Refused: the score is not one of beliefs (``simulation.crowd_replay``)."""
        raise InputError(
            "the policy activelab is for recorded labels of items with features.",
            "Use it in nextlabel backtest --features, or crowd-uncertainty here.",
        )


class CrowdUncertainty(WorkerPolicy):
    """The task whose truth is least certain, whoever the worker is."""

    name = "crowd-uncertainty"

    def plan(self, crowd: CrowdAllocator) -> CrowdPlan:
        """All workers are of one type."""
        return ranked_plan(crowd.grid, -Chain(crowd.channels[:1]).reward)

    def score(self, view: CrowdView) -> Floats:
        """How far the likeliest answer is from certain."""
        return np.tile(1.0 - view.reward, (len(view.cost), 1))
