"""The paper's second experiment [HF16] and what it left open: recorded labels of RTE, and TEMP as a second set.

50 random tasks are held out and give the prior (method of moments) and the learnt threshold; policies are tried on the
others. The paper gives neither the budget nor the order of labels: budgets from 1.2 to 8 labels per task, labels in
random order (fresh in every replication), in the order of the file, and reversed. Accuracy is against gold and the
decision is 1{I > 1/2}, ties count half. No bound is shown: the model's bound is none for one data set.

Labels saved: uniform's accuracy as a function of its labels, made monotone (running maximum) and linear between
budgets, says how many labels uniform needs for the same accuracy; saved = 1 - U / U_uniform.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from nextlabel.arrays import Floats
from nextlabel.backtesting.pilot import PilotFit, hold_out
from nextlabel.errors import one_of, refuse
from nextlabel.model.estimate import Estimate
from nextlabel.model.problem import Problem
from nextlabel.model.tables import prior_table
from nextlabel.model.tasks import whole
from nextlabel.policies.base import Policy
from nextlabel.policies.registry import make_policy
from nextlabel.reporting.artifacts import Row
from nextlabel.reporting.style import INK, drawing, in_order, look
from nextlabel.simulation.engine import Engine
from nextlabel.simulation.replay import ORDERS, TIES, CrowdRecord, ReplaySetup, credits, decisions_of, replay_policy
from nextlabel.solve.progress import Progress, part
from studies.study import (
    SETS,
    ExperimentOutcome,
    StudyOptions,
    draw_line,
    find_set,
    index_for,
    legend_beside,
    names,
    pick,
    shared,
    values_of,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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
    pool: CrowdRecord
    learnt: PilotFit
    tasks: int
    kind: str
    order: str

    @property
    def threshold(self) -> float:
        """1/2 or the learnt one."""
        return 0.5 if self.kind == "half" else self.learnt.best_cut


@dataclass(frozen=True, slots=True)
class Replayed:
    """One policy on recorded labels with one budget."""

    name: str
    budget: int
    accuracy: Estimate
    accuracies: Floats
    labels_used: float
    most_labels: int


def replay(
    setup: ReplaySetup,
    policies: Sequence[Policy | str],
    *,
    budget: int | Sequence[int],
    tasks: int | None = None,
    ties: str = "half",
    replications: int = 1000,
    engine: Engine | None = None,
    progress: Progress | None = None,
) -> list[Replayed]:
    """Every policy with every budget, on ``tasks`` tasks drawn anew in each replication (all of them if not given).

    One entry for each policy and budget: all budgets of the first policy as they were given, then those of the next.
    """
    recorded, seed = setup.recorded, setup.seed
    K = len(recorded.gold) if tasks is None else whole("number of tasks", tasks, 1, "Give at least one task.")
    wanted = budget if isinstance(budget, Sequence) else [budget]
    budgets = [whole("budget", b, 0, "Give the number of labels to buy, e.g. --budget 1200.") for b in wanted]
    one_of("order", setup.order, ORDERS)
    one_of("ties", ties, TIES)
    refuse(
        (len(recorded.gold) < K, f"{K} tasks are asked for, but {len(recorded.gold)} are recorded.", "Ask for fewer."),
        (not budgets, "no budget is given.", "Give at least one number of labels."),
    )
    whole("seed", seed, 0, "Give a whole number from 0, e.g. --seed 0.")
    count = whole("replications", replications, 1, "Give at least one replication, e.g. --replications 1000.")
    worth = credits(decisions_of(setup.prior, setup.threshold, setup.depth), ties)[None]
    out = []
    for k, given in enumerate(policies):
        policy, mine = make_policy(given), part(progress, k, len(policies))
        found = replay_policy(setup, policy, sorted(set(budgets)), count, worth, tasks=K, engine=engine, progress=mine)
        for b in budgets:
            at = found.budgets.tolist().index(b)
            right, used, most = found.worth[:, at, 0], float(found.used[:, at].mean()), int(found.most[:, at].max())
            out.append(Replayed(policy.name, b, Estimate.of(right), right, used, most))
    return out


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
            most = len(cell.pool.gold)
            largest = Problem.identical(most, round(RATIOS[-1] * most), cell.learnt.prior, cell.threshold)
            index[key] = index_for(largest, cap=int(cell.pool.counts.max()))
        rows += _rows(cell, index[key], replications, config, part(progress, k, len(cells)))
    return ExperimentOutcome(
        rows, {"replications": replications, "sets": {n: _about(s, learnt[n]) for n, s in sets.items()}}
    )


def _cells(name: str, recorded: CrowdRecord, learnt: PilotFit, quick: bool) -> list[Cell]:
    pool = recorded.subset(learnt.rest)
    most = len(pool.gold)
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


def _about(recorded: CrowdRecord, learnt: PilotFit) -> Row:
    held = np.setdiff1d(np.arange(len(recorded.gold)), learnt.rest)
    return {
        "held_out": [recorded.tasks[i] for i in held],
        "prior": prior_table(learnt.prior),
        "threshold": learnt.best_cut,
        "tasks": len(learnt.rest),
    }


def draw(rows: list[Row]) -> Figure:
    """Accuracy against gold by labels per task: RTE by the number of tasks, TEMP, the order of labels, labels saved."""
    with drawing(4, 3, figsize=(14, 15.5)) as (figure, panels):
        sizes = sorted(values_of(pick(rows, set="rte"), "tasks"))
        others = max(row["tasks"] for row in pick(rows, set="temp"))
        for line, kind in enumerate(("half", "learnt")):
            for axes, tasks in zip(panels[line, 3 - len(sizes) :], sizes, strict=True):
                _accuracy(axes, pick(rows, set="rte", tasks=tasks, threshold_kind=kind, order="random"), "RTE")
            for axes in panels[line, : 3 - len(sizes)]:
                axes.set_visible(False)
            _accuracy(panels[2, line], pick(rows, set="temp", threshold_kind=kind, order="random"), "TEMP")
            _saved(panels[3, line], pick(rows, set="rte", tasks=sizes[-1], threshold_kind=kind, order="random"), "RTE")
        _orders(panels[2, 2], pick(rows, set="temp", tasks=others, threshold_kind="half"), "TEMP")
        _orders(panels[3, 2], pick(rows, set="rte", tasks=sizes[-1], threshold_kind="half"), "RTE")
        legend_beside(figure, panels.flat)
    return figure


def _threshold(row: Row) -> str:
    return "threshold ½" if row["threshold_kind"] == "half" else f"learnt threshold {row['threshold']:.2g}"


def _accuracy(axes: Axes, rows: Sequence[Row], title: str) -> None:
    """Every policy; rules far below ``uniform`` may leave the panel."""
    some = [row for row in rows if row["ratio"] < 10]
    for policy in in_order(values_of(some, "policy")):
        draw_line(axes, pick(some, policy=policy), "ratio", "accuracy", "half_width", **look(policy))
    axes.set_ylim(bottom=0.99 * min(row["accuracy"] for row in pick(some, policy="uniform")))
    axes.set(xlabel="labels per task U/K", ylabel="accuracy against gold")
    axes.set_title(f"{title}, {rows[0]['tasks']} tasks, {_threshold(rows[0])}")


def _orders(axes: Axes, rows: Sequence[Row], title: str) -> None:
    from matplotlib.lines import Line2D

    lines: dict[str, Any] = {"random": "-", "file": "--", "reversed": ":"}
    for policy in ("index", "uniform"):
        for order in values_of(rows, "order"):
            some = [row for row in pick(rows, policy=policy, order=order) if row["ratio"] < 10]
            style = {**look(policy), "linestyle": lines[order], "label": "_"}
            draw_line(axes, some, "ratio", "accuracy", "half_width", **style)
    axes.legend(handles=[Line2D([], [], color=INK, linestyle=line, label=order) for order, line in lines.items()])
    axes.set(xlabel="labels per task U/K", ylabel="accuracy against gold")
    axes.set_title(f"{title}, ½: order of labels (index, uniform)")


def _saved(axes: Axes, rows: Sequence[Row], title: str) -> None:
    for policy in in_order(values_of(rows, "policy")):
        some = [row for row in pick(rows, policy=policy) if row["labels_saved_percent"] is not None]
        if some and policy in ("index", "okg", "okg-pending", "thompson", "ucb1-tuned", "uncertainty", "overlap"):
            axes.plot(
                [row["ratio"] for row in some], [row["labels_saved_percent"] for row in some],
                **{**look(policy), "label": "_"},
            )  # fmt: skip
    axes.axhline(0, color=INK, linewidth=1)
    axes.set(xlabel="labels per task U/K", ylabel="labels saved at equal accuracy, %")
    axes.set_title(f"{title}, threshold {rows[0]['threshold']:.2g}: labels saved against uniform")
