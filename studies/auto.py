"""Where the default rule for equal workers loses, and how its total gap grows.

Cells: priors x tasks x labels per task x labels in flight x deadlines, in an order drawn once, against the index and
``lagrangian`` (and ``resolve`` at 50 tasks). A cell in which ``auto`` is behind the best other rule by more than the
paired 95% interval is run again from another seed; the column ``p`` of the second run is one-sided, for Holm's rule.
Growth: Beta(2, 1), U = 2.4 K, four loads, K = 50 to 3,200, to the bound with a price per arrival.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from math import inf, sqrt
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import norm

from nextlabel.beliefs.beta import Beta
from nextlabel.beliefs.dirichlet import Dirichlet
from nextlabel.beliefs.prior import Prior
from nextlabel.problem.problem import Problem
from nextlabel.problem.tasks import TaskClass
from nextlabel.reporting.artifacts import Row
from nextlabel.reporting.style import drawing, finish, look
from nextlabel.simulation.study import simulate
from nextlabel.solve.bound import upper_bound
from nextlabel.solve.progress import Progress, part
from studies.study import ExperimentOutcome, StudyOptions, draw_line, pick, values_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PRIORS: dict[str, Prior] = {
    "Beta(1, 1)": Beta(1, 1), "Beta(2, 1)": Beta(2, 1), "Beta(4, 2)": Beta(4, 2), "Beta(.5, .5)": Beta(0.5, 0.5),
    "Dirichlet(1, 1, 1)": Dirichlet((1.0, 1.0, 1.0)),
}  # fmt: skip
TASKS, RATIOS, LOADS, DEADLINES = (50, 200, 1000), (1.5, 2.4, 5.0), (0.3, 2.0, 8.0, 60.0), (inf, 0.8, 1.3)
REPLICATIONS, RESOLVES, QUICK_CELLS = 300, 30, 8
GROWTH, QUICK_GROWTH, LEVEL = (50, 100, 200, 400, 800, 1600, 3200), (50, 100, 200), 0.05
Cell = tuple[str, int, float, float, float]


def problem(name: str, tasks: int, ratio: float, rho: float, deadline: float) -> Problem:
    """One cell; the deadline is in units of U / r."""
    budget = round(ratio * tasks)
    horizon = inf if deadline == inf else deadline * budget / rho
    return Problem((TaskClass(tasks, PRIORS[name]),), budget, rho, 1.0, horizon)


def cells(seed: int) -> list[Cell]:
    """All of them, in the order in which they are run."""
    every = list(product(PRIORS, TASKS, RATIOS, LOADS, DEADLINES))
    return [every[k] for k in np.random.default_rng(seed).permutation(len(every))]


def run(config: StudyOptions, progress: Progress) -> ExperimentOutcome:
    """Cells first (8 of them, without deadline and ``lagrangian``, if quick), those behind again, then growth."""
    count, chosen = config.count(REPLICATIONS, REPLICATIONS), cells(config.seed)
    if config.tasks is not None:
        chosen = [cell for cell in chosen if cell[1] == config.tasks]
    if config.quick:
        chosen = [cell for cell in chosen if cell[4] == inf][:QUICK_CELLS]
    rows: list[Row] = []
    for k, cell in enumerate(chosen):
        first = measure("cells", cell, count, config, part(progress, k, 2 * len(chosen)))
        rows += first
        if first[0]["behind"] > first[0]["behind_half"]:
            rows += measure("again", cell, count, replace(config, seed=config.seed + 1000), None)
    sizes = QUICK_GROWTH if config.quick else GROWTH
    for k, (K, rho) in enumerate(product(sizes, LOADS)):
        shown = part(progress, len(sizes) * len(LOADS) + k, 2 * len(sizes) * len(LOADS))
        rows += measure("growth", ("Beta(2, 1)", K, 2.4, rho, inf), count, config, shown)
    again = sorted(row["p"] for row in pick(rows, part="again", policy="auto"))
    lost = next((k for k, p in enumerate(again) if p > LEVEL / (len(again) - k)), len(again))
    return ExperimentOutcome(rows, {"cells": len(chosen), "run_again": len(again), "behind_after_holm": lost})


def measure(kind: str, cell: Cell, count: int, config: StudyOptions, progress: Progress | None) -> list[Row]:
    """Every rule on one cell; ``behind``: what ``auto`` loses to the best other, in percent of the bound."""
    setting = problem(*cell)
    groups = [(["auto", "index"] if kind == "growth" or config.quick else ["auto", "index", "lagrangian"], count)]
    if setting.tasks == TASKS[0] and kind != "growth" and not config.quick:
        groups.append((["auto", "resolve"], RESOLVES))
    bound = upper_bound(setting, "per-arrival" if kind == "growth" else "scalar")
    rows: list[Row] = []
    for rules, replications in groups:
        study = simulate(
            setting, rules, replications=replications, seed=config.seed, engine=config.engine, bound=bound,
            progress=progress,
        )  # fmt: skip
        auto, *others = study.results
        best = min(others, key=lambda one: float(one.gaps.mean()))
        loss = 100.0 / bound.value * (auto.gaps - best.gaps)
        error = float(loss.std(ddof=1)) / sqrt(replications)
        for one in study.results if rules[1] != "resolve" else study.results[1:]:
            assert one.gap is not None
            rows.append(
                {
                    "part": kind, "prior": cell[0], "tasks": cell[1], "ratio": cell[2], "rho": cell[3],
                    "deadline": cell[4], "policy": one.name, "total_gap": cell[1] * one.gap.mean,
                    "half_width": cell[1] * one.gap.half_width, "gap_percent": 100.0 * one.gap.mean / bound.per_task,
                    "behind": float(loss.mean()), "behind_half": 1.96 * error,
                    "p": float(norm.sf(loss.mean() / error)) if error > 0 else 1.0,
                    "replications": replications, "seed": config.seed,
                }
            )  # fmt: skip
    return rows


def growth_rate(rows: Sequence[Row]) -> float:
    """The exponent b of the fit total gap = a K^b, by least squares of the logarithms."""
    sizes = np.log([float(row["tasks"]) for row in rows])
    totals = np.log([max(float(row["total_gap"]), 1e-9) for row in rows])
    return float(np.polyfit(sizes, totals, 1)[0])


def draw(rows: list[Row]) -> Figure:
    """Total gap against K, one panel for each load, with the fitted growth."""
    grown = pick(rows, part="growth")
    with drawing() as plt:
        loads = values_of(grown, "rho")
        figure, panels = plt.subplots(
            1, len(loads), figsize=(11, 3.4), layout="constrained", sharey=True, squeeze=False
        )
        for axes, rho in zip(panels.flat, loads, strict=True):
            for name in ("auto", "index"):
                some = pick(grown, rho=rho, policy=name)
                draw_line(axes, some, "tasks", "total_gap", "half_width", **look(name))
                axes.lines[-1].set_label(f"{name}, K^{growth_rate(some):.2f}")
            axes.set(xscale="log", yscale="log", title=f"r/μ = {rho:g}", xlabel="tasks K")
            axes.legend(loc="best")
        panels[0, 0].set_ylabel("total gap to the bound, tasks")
        return finish(figure)
