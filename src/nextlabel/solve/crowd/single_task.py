"""One task on the grid: the chain that labels make, its values at given prices, and what certifies them.

======== ========= ============ ==================================================================
symbol   code      shape        meaning
======== ========= ============ ==================================================================
R        stop      (S,)         value of stopping at a state
--       ceiling   (S,)         value if the truth were told: linear in the belief
x_0      mass      (S,)         share of the tasks that begin there
======== ========= ============ ==================================================================

A state is a grid point, once for every different reward: S = B G. Values are numbers for grid points; between them
they are interpolated, which errs upwards because V is convex.

Certificate. With T V <= V + e and every cost at least c, U = (V + a ceiling) / (1 + a) satisfies T U <= U for
a >= e / c: the chain keeps the mean of a linear function, and every label costs. U >= R and U >= T U make U an upper
bound on the true value (docs/theory_workers.md). ``e`` takes in the rounding of T itself.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.beliefs.prior import EPS
from nextlabel.kernels.crowd_bellman import Chain, excess, push, solve_values
from nextlabel.kernels.crowd_grid import SimplexGrid, fill_chain, place
from nextlabel.solve.crowd.grid import knots_of, make_grid, reachable_odds

#: Grid points by the number of answers, unless told otherwise; further answers have as many as the last.
POINTS = {2: 1200, 3: 5000, 4: 6000}
#: Entries of the chain at most; above, the grid is coarser.
LARGEST_CHAIN = 20_000_000
#: The least a label may cost: one that costs nothing would have no last one.
LEAST_COST = 1e-10
#: Values are computed to this; labels a plan takes at most before its tasks stop where they are.
SOLVED, MOST_LABELS = 1e-11, 5_000
#: Rounds of policy iteration at most. Labels that cost next to nothing need more: what is missing is certified anyway.
MOST_ROUNDS = 200


class Rewards(NamedTuple):
    """Utilities (decisions, truths) of finished tasks, and which of them the tasks at each belief have."""

    utilities: tuple[Floats, ...]
    of: Ints


class SingleTask(NamedTuple):
    """The grid, the chain of the types of workers on it, and where tasks begin."""

    grid: SimplexGrid
    channel: Floats
    chain: Chain
    ceiling: Floats
    mass: Floats

    @property
    def states(self) -> int:
        """S."""
        return len(self.mass)

    def solve(self, cost: Floats, V: Floats, plan: Ints) -> None:
        """Values and plan at these costs, in place, from the values given."""
        solve_values(self.chain, np.maximum(cost, LEAST_COST), V, plan, SOLVED, MOST_ROUNDS)

    def follow(self, plan: Ints) -> tuple[float, Floats]:
        """What tasks that follow the plan are worth in the end, and the labels by type they take."""
        used = np.zeros(len(self.channel))
        return push(self.chain, plan, self.mass, 1e-13, MOST_LABELS, used), used

    def at_once(self) -> float:
        """What the tasks are worth without a label."""
        return float((self.mass * self.chain.stop).sum())

    def certify(self, cost: Floats, V: Floats) -> tuple[Floats, float]:
        """V raised until it is a supersolution in spite of rounding, and by how much that raises the tasks' value."""
        cost = np.maximum(cost, LEAST_COST)
        scale = max(1.0, float(np.abs(V).max()), float(np.abs(self.ceiling).max()), float(cost.max(initial=0.0)))
        worst = excess(self.chain, cost, V) + (12.0 * self.chain.to.shape[2] + 128.0) * EPS * scale
        a = worst / float(cost.min(initial=1.0))
        raised = np.maximum(V, self.chain.stop)
        raised = (raised + a * np.maximum(self.ceiling, raised)) / (1.0 + a) + 4.0 * EPS * scale
        return raised, float((self.mass * (raised - V)).sum())


def make_single_task(
    beliefs: Floats, members: Floats, channel: Floats, rewards: Rewards, points: int | None, known: SingleTask | None
) -> SingleTask:
    """The chain for tasks at these beliefs; that of ``known`` again if it is the same."""
    share = np.ascontiguousarray(members / members.sum())
    if known is not None and points is None and _same(known.channel, channel):
        grid, chain, ceiling = known.grid, known.chain, known.ceiling
    else:
        grid = _grid(beliefs, channel, points, len(rewards.utilities))
        chain, ceiling = _chain(grid, channel, rewards.utilities)
    G = len(grid.points)
    mass = np.zeros(len(chain.stop))
    for b in range(len(rewards.utilities)):
        here = rewards.of == b
        place(grid, np.ascontiguousarray(beliefs[here]), share[here], mass[b * G : (b + 1) * G])
    return SingleTask(grid, channel, chain, ceiling, mass)


def _grid(beliefs: Floats, channel: Floats, points: int | None, blocks: int) -> SimplexGrid:
    M, C = channel.shape[0], beliefs.shape[1]
    wanted = POINTS.get(C, POINTS[max(POINTS)]) if points is None else points
    entries = max(M, 1) * blocks * (C * C + (C if C > 2 else 0))
    wanted = min(wanted, max(LARGEST_CHAIN // entries, 50))
    return make_grid(C, wanted, reachable_odds(beliefs, channel, 2 * knots_of(C, wanted) // 3))


def _chain(grid: SimplexGrid, channel: Floats, utilities: tuple[Floats, ...]) -> tuple[Chain, Floats]:
    M, C = channel.shape[0], grid.points.shape[1]
    G, B, E = len(grid.points), len(utilities), C * C + (C if C > 2 else 0)
    to, weight = np.zeros((M, G, E), dtype=np.int64), np.zeros((M, G, E))
    fill_chain(grid, channel, to, weight)
    if B > 1:
        to = np.concatenate([to + b * G for b in range(B)], axis=1)
        weight = np.concatenate([weight] * B, axis=1)
    stop = np.concatenate([(grid.points[:, None, :] * u).sum(axis=2).max(axis=1) for u in utilities])
    ceiling = np.concatenate([(grid.points * u.max(axis=0)).sum(axis=1) for u in utilities])
    return Chain(to, weight, np.ascontiguousarray(stop)), ceiling


def _same(a: Floats, b: Floats) -> bool:
    return a.shape == b.shape and bool((a == b).all())
