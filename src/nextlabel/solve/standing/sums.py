"""Sums of no-delay values over tasks wherever they stand, a chunk of classes at a time.

========= ======= ==================================================================================
symbol    code    meaning
========= ======= ==================================================================================
S(lam)    at[0]   sum over tasks of the no-delay values at cost c + lam, from the tasks' own beliefs
L(lam)    at[1]   sum over tasks of the labels bought at that price, -dS/dlam
e(lam)    at[2]   what the end of the lattices may have added to S
D         depth   last level of a class's lattice: its deepest task and at least ``margin`` labels more
========= ======= ==================================================================================

Classes whose deepest tasks are alike share a chunk, hence a depth. Chunks run on all cores; their lattices are kept
from call to call where they fit.
Guarantee: S is never below the true sum, S - e never above it. Cost: that of ``kernels.standing``, and the lattices.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from nextlabel.arrays import Floats
from nextlabel.beliefs.lattice import stack_lattices
from nextlabel.beliefs.simplex import MOST_NODES, deepest, nodes_of, simplex
from nextlabel.kernels.inputs import Lattices
from nextlabel.kernels.standing import move_one_label, standing_sums
from nextlabel.problem.problem import TaskClass
from nextlabel.problem.state import Groups
from nextlabel.solve.progress import Progress, on_all_cores

#: Classes of a chunk.
CHUNK = 32
#: Numbers that lattices may take up to be kept between calls, and that a sweep may hold at once.
KEPT, HELD = 50_000_000, 2_000_000
#: Depths that lattices have, so that their shapes are shared; then multiples of the last, with more answers of STEP.
STEP = 4
SHARED_DEPTHS = (2, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)
#: Levels below the deepest task that are looked at even where that makes a large lattice: two answers, and more.
LEAST, LEAST_OF_MANY = 64, 4


class Chunk(NamedTuple):
    """Some classes and their groups; ``reach``: labels that the furthest task has, ``depth`` of the lattices."""

    classes: Sequence[TaskClass]
    groups: Groups
    reach: int
    depth: int


class PlacedTasks(NamedTuple):
    """Lattices of a chunk, and how many tasks of each class are at each node."""

    lattices: Lattices
    weight: Floats


class StandingSums:
    """Evaluates S, L and e at any prices; ``sure``: averaged over the labels in flight; ``more`` is added to S."""

    def __init__(
        self,
        classes: Sequence[TaskClass],
        groups: Groups,
        margin: int,
        *,
        label_cost: float = 0.0,
        sure: bool = False,
        more: float = 0.0,
    ) -> None:
        self.tasks = groups.tasks
        self.label_cost, self.sure, self.more = label_cost, sure, more
        self._pending = groups.in_flight if sure else 0
        self._chunks = split_by_depth(classes, groups, margin, sure)
        answers = classes[0].answers
        self.nodes = sum(len(c.classes) * nodes_of(answers, c.depth) for c in self._chunks)
        #: Whether any lattice could be deeper.
        self.open = any(c.depth < deepest_useful(answers, c.reach) for c in self._chunks)
        self._kept: dict[int, PlacedTasks] = {}
        self._keep = self.nodes * (3 + answers) <= KEPT
        facts = np.array(list(on_all_cores(self._facts, range(len(self._chunks)))))
        #: Sums over the tasks of R and of the ceiling now; from ``top`` on nobody buys a label.
        self.now, self.ceiling = float(facts[:, 0].sum()), float(facts[:, 1].sum())
        self.top = max(float(facts[:, 2].max()) - label_cost, 0.0)

    def at(self, prices: Floats, progress: Progress | None = None) -> Floats:
        """(3, P) S, L and e at ``prices``, which fall."""
        parts = on_all_cores(lambda k: self._sums(k, prices + self.label_cost), range(len(self._chunks)), progress)
        total = np.sum(list(parts), axis=0)
        total[0] -= self.label_cost * self._pending  # their S starts after them, and they have still to be paid
        total[0] += self.more
        return np.asarray(total, dtype=np.float64)

    def _sums(self, k: int, prices: Floats) -> Floats:
        placed = self._kept.get(k)
        if placed is None:
            placed = lattices_with_tasks(self._chunks[k], self._chunks[k].depth, self.sure)
            if self._keep:
                self._kept[k] = placed
        out = np.zeros((3, len(prices)))
        width = int(np.diff(placed.lattices.first).max())
        block = max(4, HELD // (6 * width))
        for start in range(0, len(prices), block):
            some = slice(start, start + block)
            part = np.zeros((3, len(prices[some])))
            standing_sums(*placed, prices[some], part)
            out[:, some] = part
        return out

    def _facts(self, k: int) -> tuple[float, float, float]:
        """Sums of R and of the ceiling, and the most that the truth would add to a task that may get a label."""
        chunk = self._chunks[k]
        on, weight = lattices_with_tasks(chunk, chunk.reach, False)
        gap = (on.ceiling - on.reward)[weight > 0]
        most = float((on.ceiling - on.reward).max()) if self.sure and chunk.groups.w.any() else float(gap.max())
        return float((weight * on.reward).sum()), float((weight * on.ceiling).sum()), most


def split_by_depth(classes: Sequence[TaskClass], groups: Groups, margin: int, sure: bool) -> list[Chunk]:
    """The classes that have tasks, by the labels that the furthest of them has, in chunks."""
    answers = classes[0].answers
    labels = groups.levels(answers) + (groups.w if sure else 0)
    furthest = np.full(len(classes), -1, dtype=np.int64)
    np.maximum.at(furthest, groups.entry, labels)
    used = np.flatnonzero(furthest >= 0)
    used = used[np.argsort(furthest[used], kind="stable")]
    place = np.zeros(len(classes), dtype=np.int64)
    place[used] = np.arange(len(used))
    order = np.argsort(place[groups.entry], kind="stable")
    entry = place[groups.entry][order]
    chunks = []
    for start in range(0, len(used), CHUNK):
        here = used[start : start + CHUNK]
        lo, hi = np.searchsorted(entry, [start, start + CHUNK])
        rows = order[lo:hi]
        some = Groups(entry[lo:hi] - start, groups.node[rows], groups.w[rows], groups.members[rows])
        reach = int(furthest[here[-1]])
        depth = max(reach, min(shared_depth(answers, reach + margin), deepest_useful(answers, reach)))
        chunks.append(Chunk([classes[c] for c in here], some, reach, depth))
    return chunks


def shared_depth(answers: int, depth: int) -> int:
    """The next depth that lattices have."""
    step = SHARED_DEPTHS[-1] if answers == 2 else STEP
    return next((r for r in SHARED_DEPTHS if r >= depth and answers == 2), -(-depth // step) * step)


def deepest_useful(answers: int, reach: int) -> int:
    """The deepest lattice worth its time below a task with ``reach`` labels."""
    if answers == 2:
        return max(deepest(2), reach + LEAST)
    return max(deepest(answers), min(reach + LEAST_OF_MANY, deepest(answers, 8 * MOST_NODES)))


def lattices_with_tasks(chunk: Chunk, depth: int, sure: bool) -> PlacedTasks:
    """Lattices of that depth with the tasks at their nodes, or where the labels in flight may take them."""
    classes, groups = chunk.classes, chunk.groups
    first, child, _ = simplex(classes[0].answers, depth)
    if len(classes) == 1:  # a stack of one would be lumped
        one = classes[0].lattice(depth)
        reward, ceiling, prob = one.reward[None], one.ceiling[None], one.prob[None]
    else:
        stack = stack_lattices(
            [c.prior for c in classes], [c.threshold for c in classes], [c.reward for c in classes], depth
        )
        reward, ceiling, prob = stack.reward, stack.ceiling, stack.prob
    lattices = Lattices(first, child, reward, ceiling, prob)
    weight = np.zeros(reward.shape)
    for w in range(int(groups.w.max()) if sure else 0, -1, -1):
        here = groups.w == w if sure else slice(None)
        np.add.at(weight, (groups.entry[here], groups.node[here]), groups.members[here])
        if w > 0:
            move_one_label(lattices, weight)
    return PlacedTasks(lattices, weight)
