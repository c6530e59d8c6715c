"""The paper's second experiment [HF16] and what it left open: recorded labels of RTE, and TEMP as a second set.

50 random tasks are held out and give the prior (method of moments) and the learnt threshold; policies are tried on the
others. The paper gives neither the budget nor the order of labels: budgets from 1.2 to 8 labels per task, labels in
random order (fresh in every replication), in the order of the file, and reversed. Accuracy is against gold and the
decision is 1{I > 1/2}, ties count half. No bound is shown: the model's bound is none for one data set.

Labels saved: uniform's accuracy as a function of its labels, made monotone (running maximum) and linear between
budgets, says how many labels uniform needs for the same accuracy; saved = 1 - U / U_uniform.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nextlabel.backtesting.pilot import PilotFit, hold_out
from nextlabel.experiments.datasets import SETS, find_set
from nextlabel.experiments.roster import index_for, names, shared
from nextlabel.experiments.study import ExperimentOutcome, StudyOptions
from nextlabel.policies.base import Policy
from nextlabel.problem.problem import Problem
from nextlabel.problem.tables import prior_table
from nextlabel.reporting.tables import Row
from nextlabel.simulation.replay import Recorded, ReplaySetup, replay
from nextlabel.solve.progress import Progress, part

HELD_OUT = 50
RATIOS, QUICK_RATIOS = (1.2, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0), (1.2, 3.0, 5.0)
SMALL = (10, 100)
#: All policies meet random order; these meet the other two as well.
ORDER_POLICIES = ("index", "okg", "thompson", "ucb1-tuned", "uniform")
REPLICATIONS, QUICK = 5000, 8
#: All labels of every task are used at this ratio: the end of uniform's curve.
END = 10.0


@dataclass(frozen=True)
class Cell:
    """One set, number of tasks, threshold and order."""

    name: str
    pool: Recorded
    learnt: PilotFit
    tasks: int
    kind: str
    order: str

    @property
    def threshold(self) -> float:
        """1/2 or the learnt one."""
        return 0.5 if self.kind == "half" else self.learnt.best_cut


def run(config: StudyOptions, progress: Progress) -> ExperimentOutcome:
    """Every cell at every budget."""
    replications = config.count(REPLICATIONS, QUICK)
    sets = {name: find_set(config.data, name) for name in SETS}
    learnt = {name: hold_out(sets[name], HELD_OUT, None, None, "moments", config.seed) for name in SETS}
    cells = [cell for name in SETS for cell in _cells(name, sets[name], learnt[name], config.quick)]
    index: dict[tuple[str, str], Policy] = {}
    rows: list[Row] = []
    for k, cell in enumerate(cells):
        key = (cell.name, cell.kind)
        if key not in index:
            most = len(cell.pool)
            largest = Problem.identical(most, round(RATIOS[-1] * most), cell.learnt.prior, cell.threshold)
            index[key] = index_for(largest, cap=int(cell.pool.counts.max()))
        rows += _rows(cell, index[key], replications, config, part(progress, k, len(cells)))
    return ExperimentOutcome(
        rows, {"replications": replications, "sets": {n: _about(s, learnt[n]) for n, s in sets.items()}}
    )


def _cells(name: str, recorded: Recorded, learnt: PilotFit, quick: bool) -> list[Cell]:
    pool = recorded.subset(learnt.rest)
    most = len(pool)
    orders = ("random",) if quick else ("random", "file", "reversed")
    out = [Cell(name, pool, learnt, most, kind, order) for order in orders for kind in ("half", "learnt")]
    if name == SETS[0]:
        out += [Cell(name, pool, learnt, K, kind, "random") for K in SMALL if most > K for kind in ("half", "learnt")]
    return out


def _rows(cell: Cell, index: Policy, replications: int, config: StudyOptions, progress: Progress | None) -> list[Row]:
    everyone = [n for n in names(planned=False) if cell.order == "random" or n in ORDER_POLICIES]
    ratios = QUICK_RATIOS if config.quick else RATIOS
    plan: list[tuple[list[Policy], tuple[float, ...]]] = [
        (shared(everyone, index), ratios),
        (shared(["uniform"]), (END,)),
    ]
    out: list[Row] = []
    for k, (policies, some) in enumerate(plan):
        budgets = {round(ratio * cell.tasks): ratio for ratio in some}
        setup = ReplaySetup(cell.pool, cell.learnt.prior, cell.threshold, order=cell.order, seed=config.seed)
        found = replay(
            setup,
            policies,
            tasks=cell.tasks,
            budget=list(budgets),
            replications=replications,
            engine=config.engine,
            progress=part(progress, k, len(plan)),
        )
        out += [
            {
                "set": cell.name,
                "tasks": cell.tasks,
                "ratio": budgets[one.budget],
                "budget": one.budget,
                "threshold_kind": cell.kind,
                "threshold": cell.threshold,
                "order": cell.order,
                "policy": one.name,
                "accuracy": one.accuracy.mean,
                "half_width": one.accuracy.half_width,
                "labels_used": one.labels_used,
                "labels_saved_percent": None,
                "replications": replications,
            }
            for one in found
        ]
    _fill_saved(out)
    return out


def _fill_saved(rows: list[Row]) -> None:
    """Labels saved against uniform at equal accuracy, in percent of what uniform needs; None past uniform's best."""
    curve = sorted((row["budget"], row["accuracy"]) for row in rows if row["policy"] == "uniform")
    budgets = np.array([budget for budget, _ in curve], dtype=np.float64)
    reached = np.maximum.accumulate([accuracy for _, accuracy in curve])
    rising = np.concatenate([[True], np.diff(reached) > 0])
    for row in rows:
        if row["policy"] != "uniform" and reached[0] <= row["accuracy"] <= reached[-1]:
            needed = float(np.interp(row["accuracy"], reached[rising], budgets[rising]))
            row["labels_saved_percent"] = 100.0 * (1.0 - row["budget"] / needed)


def _about(recorded: Recorded, learnt: PilotFit) -> Row:
    held = np.setdiff1d(np.arange(len(recorded)), learnt.rest)
    return {
        "held_out": [recorded.tasks[i] for i in held],
        "prior": prior_table(learnt.prior),
        "threshold": learnt.best_cut,
        "tasks": len(learnt.rest),
    }
