"""Policies that learn workers, replayed with the identities of those who gave each label."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from joblib import Parallel, delayed

from nextlabel.arrays import Ints
from nextlabel.backtesting.collected import collected_labels, everything
from nextlabel.backtesting.curves import Curve
from nextlabel.backtesting.options import BacktestOptions
from nextlabel.backtesting.played import PlayedRule, judged
from nextlabel.backtesting.replays import BacktestSetup
from nextlabel.errors import InputError
from nextlabel.files.labels import LabelTable
from nextlabel.prose import counted
from nextlabel.simulation.crowd_record import CrowdRecord
from nextlabel.simulation.crowd_replay import BLIND_TO_BUDGET, CrowdReplayed, replay_crowd
from nextlabel.simulation.engine import Engine
from nextlabel.simulation.replay import Recorded
from nextlabel.solve.progress import Progress


def play_crowd_policies(
    setting: BacktestSetup,
    names: Sequence[str],
    budgets: Sequence[int],
    options: BacktestOptions,
    replications: int,
    table: LabelTable | None,
    engine: Engine | None,
    progress: Progress | None,
) -> list[PlayedRule]:
    """One rule for each policy, read out by workers and by majority."""
    if not names:
        return []
    record = crowd_record(setting.recorded, table)
    count = 1 if options.replay == "timed" else replications  # real times leave nothing to chance
    work = [(name, some) for name in names for some in _campaigns(name, budgets, options)]

    def play(name: str, some: Sequence[int]) -> list[CrowdReplayed]:
        return replay_crowd(
            record, [name], some, replay=options.replay, turn_away=options.turn_away, replications=count,
            seed=setting.seed,
        )  # fmt: skip

    found: list[CrowdReplayed] = []
    calls = (delayed(play)(name, some) for name, some in work)
    parallel = Parallel(n_jobs=(engine or Engine()).jobs, backend="threading", return_as="generator")
    for k, one in enumerate(parallel(calls)):
        found += one
        if progress is not None:
            progress((k + 1) / len(work))
    rows = judged(setting.recorded)
    return [_rule(name, [one for one in found if one.policy == name], rows) for name in names]


def _campaigns(name: str, budgets: Sequence[int], options: BacktestOptions) -> list[list[int]]:
    """Budgets that one campaign serves: all, if the policy does the same whatever the budget is, or else one each."""
    if name in BLIND_TO_BUDGET and options.replay == "task-first":
        return [list(budgets)]
    return [[U] for U in budgets]


def crowd_record(pool: Recorded, table: LabelTable | None) -> CrowdRecord:
    """The replayed tasks' labels in the order of the file, with their times if the table has them."""
    if table is not None and table.tasks == pool.tasks:
        return CrowdRecord.from_table(table, pool.gold)
    return CrowdRecord(collected_labels(pool, *everything(pool)), pool.gold, pool.tasks)


def check_times(table: LabelTable | None) -> None:
    """Refuse to replay times that are not known."""
    for what, flag, times in (
        ("begun", "--assigned-column", None if table is None else table.assigned_at),
        ("handed in", "--submitted-column", None if table is None else table.submitted_at),
    ):
        if times is None or not np.isfinite(times).all():
            lacking = 0 if times is None else int(np.count_nonzero(~np.isfinite(times)))
            missing = counted(lacking, "label lacks", "labels lack") if lacking else "no label has"
            raise InputError(
                f"--replay timed needs to know when every label was {what}, and {missing} that time.",
                f"Name the column with {flag}, or use --replay worker-first.",
            )


def _rule(name: str, found: Sequence[CrowdReplayed], rows: Ints) -> PlayedRule:
    ordered = sorted(found, key=lambda one: one.budget)
    curves = {
        readout: Curve(
            np.stack([one.accuracies(readout) for one in ordered], axis=1),
            np.stack([one.right[readout][:, rows].mean(axis=0) for one in ordered], axis=1),
        )
        for readout in ordered[0].right
    }
    return PlayedRule(
        name,
        np.array([one.budget for one in ordered], dtype=np.int64),
        np.array([one.labels_used.mean() for one in ordered], dtype=np.float64),
        curves,
        {"workers": np.array([one.expected.mean() for one in ordered], dtype=np.float64)},
    )
