"""Replications of a policy that solves again as the campaign runs: some arrivals, a look at the states, new tables."""

from __future__ import annotations

import copy

import numpy as np

from nextlabel.arrays import Floats, Ints
from nextlabel.kernels.gap import GapTables
from nextlabel.kernels.policy import PolicyArrays
from nextlabel.kernels.rollout import CampaignRun, ProblemArrays, advance, new_run, start_run, write_outcome
from nextlabel.policies.base import ScoreTables, Setting
from nextlabel.policies.resolve import Resolve, Solved
from nextlabel.policies.rollout_arrays import join_scores

NOTHING = np.zeros((0, 0), dtype=np.int64)


def run_adaptive_chunk(
    setting: Setting,
    policy: Resolve,
    solved: Solved,
    arrays: ProblemArrays,
    gap: GapTables,
    seed: int,
    first: int,
    count: int,
) -> tuple[Floats, Ints]:
    """Replications first .. first + count - 1."""
    out = np.zeros((count, 5))
    every, U = policy.interval(setting), arrays.budget
    for rep in range(count):
        mine = copy.copy(solved)
        scores = policy.update(setting, mine, _occupied(setting, None), U, arrays.timing.horizon)
        tables = _late_tables(setting, policy, scores, 0)
        run = new_run(arrays, tables, 0)
        start_run(arrays, run, seed, first + rep)
        ell = 0
        while True:
            run.given[:] = 0.0
            over = advance(arrays, tables, gap, NOTHING, run, seed, first + rep, min(ell + every, U))
            ell = int(run.counters[1])
            left = arrays.timing.horizon - float(run.clock[0])
            if over or ell >= U or left <= 0.0:
                break
            scores = policy.update(setting, mine, _occupied(setting, run), U - ell, left)
            tables = _late_tables(setting, policy, scores, ell)
        if not over:
            advance(arrays, tables, gap, NOTHING, run, seed, first + rep, U + 1)
        write_outcome(arrays, run, out[rep])
    return out, NOTHING


def _late_tables(setting: Setting, policy: Resolve, scores: list[ScoreTables], ell: int) -> PolicyArrays:
    """Tables whose plan starts at arrival ``ell``."""
    tables = join_scores(setting, policy, scores)
    planned = np.zeros((setting.problem.budget, tables.planned.shape[1]))
    planned[ell:] = tables.planned
    return tables._replace(planned=planned)


def _occupied(setting: Setting, run: CampaignRun | None) -> list[Floats]:
    """[c][w, node] number of tasks in each state; all fresh before the start."""
    sizes = [view.nodes for view in setting.views]
    if run is None:
        fresh = [np.zeros((setting.flight + 1, n)) for n in sizes]
        for table, entry in zip(fresh, setting.problem.classes, strict=True):
            table[0, 0] = entry.count
        return fresh
    table = run.members.reshape((setting.flight + 1, sum(sizes))).astype(np.float64)
    return list(np.split(table, np.cumsum(sizes)[:-1], axis=1))
