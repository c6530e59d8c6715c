"""Replications of a policy that solves again as the campaign runs: some arrivals, a look at the states, new tables."""

from __future__ import annotations

import copy

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.kernels.choice import Tables
from nextlabel.kernels.gap import Gap
from nextlabel.kernels.rollout import Run, World, advance, begin, new_run, outcome
from nextlabel.policies.base import ScoreTables, Setting
from nextlabel.policies.resolve import Resolve, Solved
from nextlabel.policies.rollout_arrays import join_scores

NOTHING = np.zeros((0, 0), dtype=np.int64)


def run_adaptive_chunk(
    setting: Setting, policy: Resolve, solved: Solved, world: World, gap: Gap, seed: int, first: int, count: int
) -> tuple[Floats, Ints]:
    """Replications first .. first + count - 1."""
    out = np.zeros((count, 5))
    every, U = policy.interval(setting), world.budget
    for rep in range(count):
        mine = copy.copy(solved)
        run: Run | None = None
        ell = 0
        while True:
            scores = policy.update(setting, mine, _occupied(setting, run), U - ell)
            tables = _late_tables(setting, policy, scores, ell)
            if run is None:
                run = new_run(world, setting.flight, tables.planned.shape[1])
                begin(world, run, seed, first + rep)
            run.given[:] = 0.0
            over = advance(world, tables, gap, NOTHING, run, seed, first + rep, min(ell + every, U))
            ell = int(run.counters[1])
            if over or ell >= U:
                break
        if not over:
            advance(world, tables, gap, NOTHING, run, seed, first + rep, U + 1)
        outcome(world, run, out[rep])
    return out, NOTHING


def _late_tables(setting: Setting, policy: Resolve, scores: list[ScoreTables], ell: int) -> Tables:
    """Tables whose plan starts at arrival ``ell``."""
    tables = join_scores(setting, policy, scores)
    planned = np.zeros((setting.problem.budget, tables.planned.shape[1]))
    planned[ell:] = tables.planned
    return tables._replace(planned=planned)


def _occupied(setting: Setting, run: Run | None) -> list[Floats]:
    """[c][w, node] number of tasks in each state; all fresh before the start."""
    sizes = [view.nodes for view in setting.views]
    if run is None:
        fresh = [np.zeros((setting.flight + 1, n)) for n in sizes]
        for table, entry in zip(fresh, setting.problem.classes, strict=True):
            table[0, 0] = entry.count
        return fresh
    table = run.members.reshape((setting.flight + 1, sum(sizes))).astype(np.float64)
    return list(np.split(table, np.cumsum(sizes)[:-1], axis=1))
