"""One task on a grid of beliefs: the chain that labels make, its values at given prices, and what certifies them.

======== ========= ============ ==================================================================
symbol   code      shape        meaning
======== ========= ============ ==================================================================
R        stop      (S,)         value of stopping at a state
--       ceiling   (S,)         value if the truth were told: linear in the belief
x_0      mass      (S,)         share of the tasks that begin there
n        knots     (n,)         values of a coordinate, dense near 0 and 1 where tasks are nearly decided
G        points    (G, C)       C(n + C - 2, C - 1) grid points
======== ========= ============ ==================================================================

A state is a grid point, once for every different reward: S = B G. Values are numbers for grid points; between them they
are interpolated, which errs upwards because V is convex, and costs nothing at a grid point. The beliefs that can be
reached from the tasks' own by few labels are therefore made grid points, the shortest ways first: their coordinates
(``kernels.crowd_grid``), tail sums of the belief, become knots. Further beliefs fall between knots that are evenly
spaced in log-odds.

A grid of the simplex has too few points per answer from five answers on. ``make_reachable_task`` takes the beliefs that
labels of the types lead to, breadth first, as long as tasks are not decided; whatever lies beyond is written as one of
them and certainty. Where the answers can change names without changing anything (one-coin workers, answers all alike
before the first label), beliefs are sorted, which leaves a small part of them. It is tight for the first labels and
loose for what comes after the last point, where a part of every task counts as decided.

Certificate. With T V <= V + e and at most L labels for a task, V + L e is an upper bound on the true value. With every
cost at least c, so is U = (V + a ceiling) / (1 + a) for a >= e / c: the chain keeps the mean of a linear function, and
every label costs, so that T U <= U. The smaller of both counts (docs/theory_workers.md, Lemmas 4, 4a). ``e`` takes in
the rounding of T itself.
Guarantee: an upper bound for any grid or set of points. Cost: see ``kernels.crowd_grid``.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import combinations_with_replacement
from math import comb
from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array, eye_array
from scipy.sparse.linalg import SuperLU, splu
from scipy.special import expit, logit

from nextlabel.arrays import Floats, Ints
from nextlabel.kernels.crowd_grid import (
    Chain,
    SimplexGrid,
    excess,
    fill_chain,
    place,
    push,
    solve_values,
)
from nextlabel.model.prior import EPS
from nextlabel.solve.crowd.cutting_planes import shares_of

#: Log-odds are spaced evenly up to this; the last knots are 0 and 1.
REACH = 14.0
#: Beliefs looked at on the way to further ones, at most.
MOST_BELIEFS = 20_000
#: Reachable log-odds closer than this are one knot.
APART = 1e-6


def make_grid(answers: int, points: int, also: Floats | None = None) -> SimplexGrid:
    """About ``points`` grid points; ``also`` are log-odds of coordinates that shall be knots, two thirds at most."""
    n = knots_of(answers, points)
    also = np.empty(0) if also is None else also
    even = max(n - 2 - len(also), (n - 2) // 3)
    graded = np.linspace(-1.0, 1.0, even) * REACH if even > 1 else np.zeros(even)
    odds = np.sort(np.concatenate([graded, also]))
    if len(also):  # a knot that is all but another one would make an interval too small to interpolate in
        odds = odds[np.concatenate([[True], np.diff(odds) > APART])]
    return grid_of(answers, np.concatenate([[0.0], expit(odds), [1.0]]))


def knots_of(answers: int, points: int) -> int:
    """The most knots that make at most so many grid points, 2 at least."""
    n = 2
    while comb(n + answers - 1, answers - 1) <= points:
        n += 1
    return n


def grid_of(answers: int, knots: Floats) -> SimplexGrid:
    """The grid with these knots, points in the order of ``kernels.crowd_grid.rank``."""
    d, n = answers - 1, len(knots)
    choose = np.array([[comb(a, b) for b in range(d + 1)] for a in range(n + d)], dtype=np.int64)
    # Falling sequences in the order of their rank: the first coordinate counts most.
    x = knots[np.array(sorted(c[::-1] for c in combinations_with_replacement(range(n), d)), dtype=np.int64)]
    tails = np.concatenate([np.ones((len(x), 1)), x, np.zeros((len(x), 1))], axis=1)
    points = np.ascontiguousarray(tails[:, :-1] - tails[:, 1:])
    corner = np.array([int(np.flatnonzero(points[:, c] == 1.0)[0]) for c in range(answers)], dtype=np.int64)
    return SimplexGrid(np.ascontiguousarray(knots), points, corner, choose, np.empty(0), False)


def reachable_odds(beliefs: Floats, channel: Floats, most: int) -> Floats:
    """Up to ``most`` log-odds of coordinates of beliefs that the tasks' own lead to, by as few labels as possible."""
    here = np.unique(beliefs, axis=0)
    reached = np.empty(0)
    while 0 < len(here) <= MOST_BELIEFS:
        with np.errstate(divide="ignore"):
            odds = logit(np.cumsum(here[:, :0:-1], axis=1).ravel())
        both = _apart(np.concatenate([reached, odds[np.abs(odds) < REACH]]))
        if len(both) > most or len(both) == len(reached):
            break
        reached = both
        joint = here[:, None, :, None] * channel[None]  # belief, type, truth, answer
        chance = joint.sum(axis=2, keepdims=True)
        after = np.divide(joint, chance, out=np.zeros_like(joint), where=chance > 0.0)
        after = np.moveaxis(after, 2, 3).reshape(-1, beliefs.shape[1])
        after = after[after.sum(axis=1) > 0.0]
        here = np.unique(np.round(after, 12), axis=0) if len(after) else after
    return reached


def _apart(odds: Floats) -> Floats:
    odds = np.sort(odds)
    return odds[np.concatenate([[True], np.diff(odds) > APART])] if len(odds) else odds


#: Grid points by the number of answers, unless told otherwise; further answers have as many as the last.
POINTS = {2: 1200, 3: 5000, 4: 6000}
#: Entries of the chain at most; above, the grid is coarser.
LARGEST_CHAIN = 20_000_000
#: The least a label may cost: one that costs nothing would have no last one.
LEAST_COST = 1e-10
#: Values are computed to this, and at the end to that; labels a plan takes before its tasks stop where they are.
SOLVED, CLOSE, MOST_LABELS = 1e-11, 1e-14, 500
#: What values of a task with few labels may be off in all, so that they need not be computed more closely.
ENOUGH = 1e-10
#: Rounds of policy iteration at most, and sweeps in between. Labels that cost next to nothing need more: what is
#: missing is certified anyway.
MOST_ROUNDS, BETWEEN = 30, 40
#: Plans that policy iteration tries at most, and labels of a task from which on a plan is not followed label by label.
MOST_PLANS, MANY_LABELS = 60, 20


class Rewards(NamedTuple):
    """Utilities (decisions, truths) of finished tasks, and which of them the tasks at each belief have."""

    utilities: tuple[Floats, ...]
    of: Ints


class SingleTask(NamedTuple):
    """The grid, the chain of the types of workers on it, where tasks begin, and labels for one of them at most (L)."""

    grid: SimplexGrid
    channel: Floats
    chain: Chain
    ceiling: Floats
    mass: Floats
    most: float = np.inf

    @property
    def states(self) -> int:
        """S."""
        return len(self.mass)

    def solve(self, cost: Floats, V: Floats, plan: Ints, close: float = SOLVED) -> None:
        """Values and plan at these costs, in place, from the values given, to ``close`` in a sweep."""
        cost, close = np.maximum(cost, LEAST_COST), max(close, ENOUGH / max(self.most, 1.0))
        rounds = solve_values(self.chain, cost, V, plan, close, MOST_ROUNDS, BETWEEN)
        if rounds == MOST_ROUNDS:  # labels that teach next to nothing: beliefs hardly move from sweep to sweep
            self._iterate_plans(cost, V, plan)

    def _iterate_plans(self, cost: Floats, V: Floats, plan: Ints) -> None:
        """Howard's policy iteration, the values of each plan by a sparse linear system.

        It goes on from the plan given, unless that never comes to an end, and else from the one that always stops.
        """
        for _ in range(MOST_PLANS):
            worth = np.where(plan >= 0, -cost[plan], self.chain.stop)
            with suppress(RuntimeError):  # of a plan that labels for ever the system is singular
                V[:] = self._system(plan).solve(worth) if (plan >= 0).any() else worth
                if (self.chain.stop - V < 1.0).all():
                    worth = V
            if worth is not V:  # it labels for ever somewhere
                plan[:], V[:] = -1, self.chain.stop
            before = plan.copy()
            solve_values(self.chain, cost, V, plan, 0.0, 1, 0)
            if (plan == before).all():
                break

    def _system(self, plan: Ints) -> SuperLU:
        """I - P, where P leads from a state to the next under the plan; states that stop lead nowhere.

        A RuntimeError if a state leads to itself alone: SuperLU would find out late, and complain on stderr.
        """
        go = np.flatnonzero(plan >= 0)
        to, weight = self.chain.to[plan[go], go], self.chain.weight[plan[go], go]
        if ((weight * (to == go[:, None])).sum(axis=1) >= 1.0 - EPS).any():
            raise RuntimeError("a state of the plan leads to itself alone.")
        rows = np.repeat(go, to.shape[1])
        moves = coo_array((weight.ravel(), (rows, to.ravel())), shape=(self.states, self.states))
        return splu((eye_array(self.states) - moves).tocsc())

    def follow(self, plan: Ints) -> tuple[float, Floats]:
        """What tasks that follow the plan are worth in the end, and the labels by type they take."""
        used = np.zeros(len(self.channel))
        worth = push(self.chain, shares_of(plan, len(used)), self.mass, 1e-13, MOST_LABELS, used)
        if used.sum() > MANY_LABELS:  # tasks that go on and on: where they end, by one linear system
            with suppress(RuntimeError):  # where there is no such system, tasks stop after MOST_LABELS
                visits = self._system(plan).solve(self.mass, trans="T")
                used[:] = np.bincount(plan[plan >= 0], weights=visits[plan >= 0], minlength=len(used))
                worth = float((visits * self.chain.stop)[plan < 0].sum())
        return worth, used

    def at_once(self) -> float:
        """What the tasks are worth without a label."""
        return float((self.mass * self.chain.stop).sum())

    def certify(self, cost: Floats, V: Floats) -> tuple[Floats, float]:
        """V raised until it is a supersolution in spite of rounding, and by how much that raises the tasks' value."""
        cost = np.maximum(cost, LEAST_COST)
        scale = max(1.0, float(np.abs(V).max()), float(np.abs(self.ceiling).max()), float(cost.max(initial=0.0)))
        worst = excess(self.chain, cost, V) + (12.0 * self.chain.to.shape[2] + 128.0) * EPS * scale
        a = worst / float(cost.min(initial=1.0))
        above = np.maximum(V, self.chain.stop)
        by_cost = (above + a * np.maximum(self.ceiling, above)) / (1.0 + a)
        raised = np.minimum(by_cost, above + self.most * worst) + 4.0 * EPS * scale
        return raised, float((self.mass * (raised - V)).sum())


def make_single_task(
    beliefs: Floats, members: Floats, channel: Floats, rewards: Rewards, points: int | None
) -> SingleTask:
    """The chain for tasks at these beliefs."""
    return _task(_grid(beliefs, channel, points, len(rewards.utilities)), beliefs, members, channel, rewards)


def _task(grid: SimplexGrid, beliefs: Floats, members: Floats, channel: Floats, rewards: Rewards) -> SingleTask:
    """The chain on these points, once for every reward."""
    share, utilities = np.ascontiguousarray(members / members.sum()), rewards.utilities
    law, B = grid.points, len(utilities)
    G = len(law)
    to, weight = chain_of(grid, channel)
    if B > 1:
        to = np.concatenate([to + b * G for b in range(B)], axis=1)
        weight = np.concatenate([weight] * B, axis=1)
    stop = np.concatenate([(law[:, None, :] * u).sum(axis=2).max(axis=1) for u in utilities])
    ceiling = np.concatenate([(law * u.max(axis=0)).sum(axis=1) for u in utilities])
    mass = np.zeros(B * G)
    for b in range(B):
        here = rewards.of == b
        place(grid, np.ascontiguousarray(beliefs[here]), share[here], mass[b * G : (b + 1) * G])
    return SingleTask(grid, channel, Chain(to, weight, np.ascontiguousarray(stop)), ceiling, mass)


def chain_of(grid: SimplexGrid, channel: Floats) -> tuple[Ints, Floats]:
    """Where labels of each type lead from each point, and with which probability."""
    shape = len(channel), len(grid.points), grid.entries
    to, weight = np.zeros(shape, dtype=np.int64), np.zeros(shape)
    fill_chain(grid, np.ascontiguousarray(channel), to, weight)
    return to, weight


def _grid(beliefs: Floats, channel: Floats, points: int | None, blocks: int) -> SimplexGrid:
    M, C = channel.shape[0], beliefs.shape[1]
    wanted = POINTS.get(C, POINTS[max(POINTS)]) if points is None else points
    entries = max(M, 1) * blocks * (C * C + (C if C > 2 else 0))
    wanted = min(wanted, max(LARGEST_CHAIN // entries, 50))
    return make_grid(C, wanted, reachable_odds(beliefs, channel, 2 * knots_of(C, wanted) // 3))


#: Points at most, unless told otherwise, and comparisons of beliefs with points, about.
REACHABLE_POINTS, COMPARISONS = 3000, 2e8
#: A belief above this is decided, and leads nowhere.
DECIDED = 1.0 - 1e-5
#: Digits in which beliefs must agree to be one point.
DIGITS = 12


def make_reachable_task(
    beliefs: Floats, members: Floats, channel: Floats, rewards: Rewards, points: int | None
) -> SingleTask:
    """The chain over beliefs that can be reached; one reward for all tasks."""
    utility = rewards.utilities[0]
    C = beliefs.shape[1]
    symmetric = is_symmetric(channel, utility, beliefs)
    most = int(min(points or REACHABLE_POINTS, np.sqrt(COMPARISONS / (max(len(channel), 1) * C))))
    reached = reachable_beliefs(beliefs, members, channel, most, symmetric=symmetric)
    law, none = np.concatenate([np.eye(C), reached]), np.zeros((0, 0), dtype=np.int64)
    now = (law[:, None, :] * utility).sum(axis=2).max(axis=1)
    gain = np.sqrt(np.maximum((law * utility.max(axis=0)).sum(axis=1) - now, 0.0))
    grid = SimplexGrid(np.empty(0), law, np.arange(C, dtype=np.int64), none, gain, symmetric)
    return _task(grid, beliefs, members, channel, rewards)


def is_symmetric(channel: Floats, utility: Floats, beliefs: Floats) -> bool:
    """Whether any two neighbouring answers, hence any two, can change names without changing anything."""
    if not (beliefs == beliefs[:, :1]).all():
        return False
    rows = sorted(utility.tolist())
    for a in range(channel.shape[1] - 1):
        swap = np.arange(channel.shape[1])
        swap[[a, a + 1]] = a + 1, a
        if not (channel[:, swap][:, :, swap] == channel).all() or sorted(utility[:, swap].tolist()) != rows:
            return False
    return True


def reachable_beliefs(beliefs: Floats, members: Floats, channel: Floats, most: int, *, symmetric: bool) -> Floats:
    """Up to ``most`` beliefs that are not decided, level by level; of a level that is too large the most likely."""
    here, likely = _merge(beliefs, members / members.sum(), symmetric)
    levels, known = [here[:0]], set[tuple[float, ...]]()
    while len(here) and len(known) < most:
        names = list(map(tuple, np.round(here, DIGITS).tolist()))
        new = np.array([name not in known for name in names]) & (here.max(axis=1) <= DECIDED)
        first = np.flatnonzero(new)[np.argsort(-likely[new], kind="stable")[: most - len(known)]]
        here, likely = here[first], likely[first]
        known.update(names[i] for i in first)
        levels.append(here)
        joint = here[:, None, :, None] * channel[None]  # belief, type, truth, answer
        chance = joint.sum(axis=2)
        after = np.moveaxis(joint, 2, 3)[chance > 0.0]
        weight = (likely[:, None, None] * chance)[chance > 0.0] / max(len(channel), 1)
        here, likely = _merge(after / after.sum(axis=1, keepdims=True), weight, symmetric)
    return np.ascontiguousarray(np.concatenate(levels))


def _merge(beliefs: Floats, weight: Floats, symmetric: bool) -> tuple[Floats, Floats]:
    """Different beliefs, and the weight of each."""
    if len(beliefs) == 0:
        return beliefs, weight
    if symmetric:
        beliefs = np.sort(beliefs, axis=1)[:, ::-1]
    _, first, number = np.unique(np.round(beliefs, DIGITS), axis=0, return_index=True, return_inverse=True)
    total = np.bincount(number.ravel(), weights=weight).astype(np.float64)
    return np.ascontiguousarray(beliefs[first]), total
