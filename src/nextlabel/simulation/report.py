"""What a study leaves in a folder: a table, a figure and a manifest."""

from __future__ import annotations

import math
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nextlabel.problem.problem import Problem
from nextlabel.problem.tables import prior_table, reward_table, worker_table
from nextlabel.reporting.artifacts import Row, manifest, write_files
from nextlabel.reporting.style import BLUE, RED, drawing, finish
from nextlabel.simulation.study import Study
from nextlabel.simulation.summary import difference_rows, policy_rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TABLE, FIGURE, MANIFEST = "policies.csv", "policies.png", "manifest.json"


def write_report(study: Study, folder: Path, *, command: str, started: datetime, seconds: float, **more: Any) -> None:
    """Table, figure and manifest into ``folder``, all three or none."""
    about = {
        "replications": study.replications,
        "pending": study.pending,
        **more,
        "policies": [result.name for result in study.results],
        "problem": _problem(study.problem),
        "bound_per_task": study.bound.per_task,
        "files": [TABLE, FIGURE, MANIFEST],
    }
    fields = manifest(command=command, seed=study.seed, started=started, seconds=seconds, **about)
    write_files(folder, {TABLE: _table(study), FIGURE: draw(study), MANIFEST: fields})


def _problem(problem: Problem) -> Row:
    rate = problem.arrival_rate
    return {
        "classes": [
            {
                "count": c.count,
                "prior": prior_table(c.prior),
                "threshold": c.threshold,
                "reward": reward_table(c.reward),
            }
            for c in problem.classes
        ],
        "budget": problem.budget,
        "arrival_rate": rate if isinstance(rate, float) else rate.pieces,
        "arrival_period": None if isinstance(rate, float) or math.isinf(rate.period) else rate.period,
        "completion_rate": problem.completion_rate,
        "horizon": problem.horizon if problem.finite else None,
        "label_cost": problem.label_cost,
        **({"workers": [worker_table(worker) for worker in problem.workers]} if problem.workers else {}),
    }


def _table(study: Study) -> list[Row]:
    rows = policy_rows(study)
    differences = {row["name"]: row for row in difference_rows(study)}
    for row in rows:
        other = differences.get(row["name"])
        row["bound_per_task"] = study.bound.per_task
        row["difference_to_first"] = 0.0 if other is None else other["mean_per_task"]
        row["difference_half_width"] = 0.0 if other is None else other["half_width"]
    return rows


def draw(study: Study) -> Figure:
    """Means with their 95% intervals, one line for each policy, and the bound."""
    names = [result.name for result in study.results]
    means = [result.per_task.mean for result in study.results]
    widths = [0.0 if math.isnan(r.per_task.half_width) else r.per_task.half_width for r in study.results]
    places = list(range(len(names)))
    with drawing() as plt:
        figure, axes = plt.subplots(figsize=(7.0, 1.4 + 0.34 * len(names)), layout="constrained")
        axes.errorbar(means, places, xerr=widths, fmt="o", capsize=3, color=BLUE, label="mean, 95% interval")
        axes.axvline(study.bound.per_task, color=RED, linestyle="--", label=f"bound {study.bound.per_task:.6f}")
        axes.set_yticks(places, names)
        axes.invert_yaxis()
        axes.set_xlabel("value per task")
        tasks, budget = study.problem.tasks, study.problem.budget
        axes.set_title(f"{tasks:,} tasks, {budget:,} labels, {study.replications:,} replications, {study.pending}")
        axes.legend(loc="best")
        return finish(figure)
