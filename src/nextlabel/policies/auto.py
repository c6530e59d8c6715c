"""The default policy for workers who are alike: what a label adds at the price that clears, whatever the load.

    score = E[ V(i, w+1, n-1) - V(i, w, n-1) ]  over the price of the labels to come, which is not certain.

The relaxed problem is solved once for a *path* of prices, one for each arrival. Which multiple of that path clears, so
that the tasks as they stand would buy just the labels that are left, is found anew at every arrival, from values that
are tabulated at several levels (``kernels.levels``). At one level nearly all states that want a label tie where waiting
is free. But what tasks will still want is random, and so is the level: a state that is worth a label only while labels
are cheap falls behind one that is worth it at any price. With few labels in flight tasks are then ordered as by the
index; with many, waiting is not free, advantages differ, and prices decide as in ``lagrangian`` and ``resolve``. What
is still tied goes to the largest no-delay index, then to the lowest state.
With a deadline the labels left are those that workers will come for, and what is in flight then is lost. With more
kinds of tasks than tables can hold it is the index policy.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nextlabel.arrays import Ints
from nextlabel.kernels.inputs import make_grid
from nextlabel.kernels.levels import LevelTables
from nextlabel.policies.base import Policy, ScoreTables, Setting
from nextlabel.policies.lagrangian import endless, no_delay_scores
from nextlabel.problem.problem import Problem, in_units
from nextlabel.solve.levels import PriceLevels, price_levels
from nextlabel.solve.progress import Progress
from nextlabel.solve.truncation import state_columns


class Auto(Policy):
    """The largest advantage at the price that clears."""

    name = "auto"
    in_flight = "all of it"
    random_ties = False
    tied = 1e-7
    priced = True
    by_table = False
    planned_ahead = True
    follows_load = True

    def __init__(self, progress: Progress | None = None) -> None:
        self.progress = progress

    def scores(self, setting: Setting) -> list[ScoreTables]:
        """Values at several levels of the prices, of all classes in the first; the no-delay index for ties."""
        problem, unit = in_units(setting.problem)
        merged, kind = merge_classes(problem)
        priced = price_levels(merged, self.progress)
        static = no_delay_scores(endless(merged), setting, priced.cut)
        tables = level_tables(setting, priced, kind, unit)
        return [ScoreTables(unit * static[k], levels=tables if c == 0 else None) for c, k in enumerate(kind)]


def merge_classes(problem: Problem) -> tuple[Problem, Ints]:
    """The problem with classes that are alike made one, and the number of each class there."""
    number = {replace(c, count=1): 0 for c in problem.classes}
    number = {c: k for k, c in enumerate(number)}
    kind = np.array([number[replace(c, count=1)] for c in problem.classes], dtype=np.int64)
    counts = np.bincount(kind, [c.count for c in problem.classes])
    classes = tuple(replace(c, count=int(counts[k])) for c, k in number.items())
    return replace(problem, classes=classes), kind


def level_tables(setting: Setting, priced: PriceLevels, kind: Ints, unit: float) -> LevelTables:
    """The values of all classes side by side, and where each state of a task stands among them."""
    cap, flight = priced.cut.cap, priced.cut.flight
    kinds, _, states, _ = priced.value.shape
    grid = make_grid(priced.first, cap, flight)
    known = state_columns(grid, priced.node_of, setting.flight, setting.own, edge=True)
    up = np.full(states, -1, dtype=np.int64)
    for w in range(flight):
        inner = int(priced.first[cap - w])
        up[grid.off[w] : grid.off[w] + inner] = grid.off[w + 1] + np.arange(inner)
    return LevelTables(
        at=priced.at,
        level=priced.level,
        value=np.ascontiguousarray(unit * np.concatenate(list(priced.value), axis=1)),
        charge=unit * priced.charge,
        column=np.concatenate([np.where(known >= 0, known + k * states, -1) for k in kind], axis=1).ravel(),
        up=np.concatenate([np.where(up >= 0, up + k * states, -1) for k in range(kinds)]),
        cost=setting.problem.label_cost,
    )
