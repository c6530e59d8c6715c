"""Total gap to the bound as the campaign grows: whose stays constant, whose grows with K.

Beta(1, 1), r = 0.1, mu = 0.4; U / K = 1.2, 2, 7/3, 5. Gaps by the Lagrangian martingale: few replications are enough.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nextlabel.model.estimate import Estimate
from nextlabel.model.problem import Problem
from nextlabel.reporting.artifacts import Row
from nextlabel.reporting.style import drawing, in_order, look
from nextlabel.simulation.study import simulate
from nextlabel.solve.progress import Progress, part
from studies.study import (
    ExperimentOutcome,
    StudyOptions,
    draw_line,
    index_for,
    legend_beside,
    names,
    pick,
    shared,
    values_of,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RATIOS: tuple[tuple[str, float], ...] = (("1.2", 1.2), ("2", 2.0), ("7/3", 7 / 3), ("5", 5.0))
TASKS, QUICK_TASKS = (30, 60, 120, 240, 480, 960, 1920), (30, 120, 480)
QUICK_RATIOS = RATIOS[:2]
REPLICATIONS, QUICK = 400, 20

#: Labels of one task that the index models in full; the no-delay index takes over past it.
CAP = 12


def run(config: StudyOptions, progress: Progress) -> ExperimentOutcome:
    """All table policies at every K and ratio."""
    replications = config.count(REPLICATIONS, QUICK)
    sizes = QUICK_TASKS if config.quick else TASKS
    ratios = QUICK_RATIOS if config.quick else RATIOS
    rows: list[Row] = []
    for q, (name, ratio) in enumerate(ratios):
        largest = Problem.identical(sizes[-1], round(ratio * sizes[-1]))
        policies = shared(names(planned=False, drawn=not config.quick), index_for(largest, CAP))
        for k, K in enumerate(sizes):
            setting = Problem.identical(K, round(ratio * K))
            study = simulate(
                setting, policies, replications=replications, seed=config.seed, engine=config.engine,
                progress=part(progress, q * len(sizes) + k, len(sizes) * len(ratios)),
            )  # fmt: skip
            for result in study.results:
                total = Estimate.of(result.gaps)
                rows.append(
                    {
                        "ratio": name,
                        "tasks": K,
                        "budget": setting.budget,
                        "policy": result.name,
                        "total_gap": total.mean,
                        "half_width": total.half_width,
                        "gap_percent": 100.0 * total.mean / study.bound.value,
                        "variance_ratio": result.variance_ratio,
                        "bound_per_task": study.bound.per_task,
                        "replications": replications,
                    }
                )
    return ExperimentOutcome(rows, {"replications": replications})


def draw(rows: list[Row]) -> Figure:
    """Total gap against K, one panel for each ratio of labels to tasks."""
    ratios = values_of(rows, "ratio")
    lines = -(-len(ratios) // 2)
    with drawing(lines, 2, figsize=(10.5, 0.4 + 3.6 * lines), sharex=True, sharey=True, squeeze=False) as (
        figure,
        panels,
    ):
        for axes, ratio in zip(panels.flat, ratios, strict=True):
            some = pick(rows, ratio=ratio)
            for name in in_order(values_of(some, "policy")):
                draw_line(axes, pick(some, policy=name), "tasks", "total_gap", "half_width", **look(name))
            sizes = values_of(some, "tasks")
            axes.set(xscale="log", yscale="log")
            axes.set_xticks(sizes, [str(K) for K in sizes])
            axes.set_xticks([], minor=True)
            axes.set_title(f"U/K = {ratio}")
        for axes in panels[-1]:
            axes.set_xlabel("tasks K")
        for axes in panels[:, 0]:
            axes.set_ylabel("total gap to the bound, tasks")
        legend_beside(figure, panels.flat)
    return figure
