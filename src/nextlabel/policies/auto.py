"""The default policy for workers who are alike: what a label adds at the price that clears, whatever the load.

    score = E[ V(i, w+1, n-1) - V(i, w, n-1) ]  over the price of labels to come, as uncertain as it is now.

The relaxed problem is solved once for a *path* of prices, one for each arrival. Which multiple of that path clears, so
that the tasks as they stand would buy just the labels that are left, is found again at every arrival from tables of
values at several levels (``kernels.levels``). At the level itself nearly all states that want a label tie, as waiting costs nothing;
but what tasks will still want is random, so the level is too, and a state that is worth a label only while labels are
cheap falls behind one that is worth it at any price. With few labels in flight this orders tasks as the index does;
with many, advantages differ because waiting does cost something, and prices decide as they do in ``lagrangian`` and
``resolve``. What is still tied goes to the largest no-delay index. With a deadline, and with more kinds of tasks than
tables can hold, it is the index policy.
"""

from __future__ import annotations

import numpy as np

from nextlabel.kernels.levels import LevelTables
from nextlabel.policies.base import Policy, ScoreTables, Setting
from nextlabel.policies.index import Index
from nextlabel.policies.lagrangian import no_delay_scores
from nextlabel.problem.units import in_units
from nextlabel.solve.core_states import all_columns
from nextlabel.solve.levels import PriceLevels, price_levels
from nextlabel.kernels.inputs import make_grid


class Auto(Policy):
    """The largest advantage at the price that clears."""

    name = "auto"
    in_flight = "all of it"
    random_ties = False
    tied = 1e-7
    priced = True
    by_table = False
    planned_ahead = True

    def scores(self, setting: Setting) -> list[ScoreTables]:
        """Values at several levels of the prices; the no-delay index for ties."""
        if setting.problem.finite:
            return Index().scores(setting)
        problem, unit = in_units(setting.problem)
        found = price_levels(problem)
        static = no_delay_scores(problem, setting, found.cut)
        tables = level_tables(setting, found, unit)
        return [ScoreTables(static=unit * one, levels=tables if c == 0 else None) for c, one in enumerate(static)]


def level_tables(setting: Setting, found: PriceLevels, unit: float) -> LevelTables:
    """The values of all classes side by side, and where each state of a task stands among them."""
    shape = (found.first, found.node_of, found.cut.cap, found.cut.flight, setting.flight, setting.own)
    states = found.value.shape[2]
    known = all_columns(*shape)
    grid = make_grid(found.first, found.cut.cap, found.cut.flight)
    up = np.full(states, -1, dtype=np.int64)
    for w in range(found.cut.flight):
        inner = int(found.first[found.cut.cap - w])
        up[grid.off[w] : grid.off[w] + inner] = grid.off[w + 1] + np.arange(inner)
    many = len(setting.views)
    value = np.concatenate(list(found.value), axis=1)
    return LevelTables(
        at=found.at.astype(np.float64),
        level=found.level,
        value=np.ascontiguousarray(unit * value),
        charge=unit * found.charge,
        column=np.concatenate([np.where(known >= 0, known + c * states, -1) for c in range(many)], axis=1).ravel(),
        up=np.concatenate([np.where(up >= 0, up + c * states, -1) for c in range(many)]),
        cost=setting.problem.label_cost,
    )
