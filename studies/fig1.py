"""The paper's first experiment [HF16]: K tasks, 1.2 K labels, Beta(1, 1), r = 0.1, mu = 0.4, with both stop rules.

``discard`` stops at the last arrival, as published; ``wait`` lets the labels in flight come in.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nextlabel.model.problem import Problem
from nextlabel.policies.base import Policy
from nextlabel.reporting.artifacts import Row
from nextlabel.reporting.style import BLUE, GREY, INK, RED, drawing, in_order, look
from nextlabel.simulation.study import simulate
from nextlabel.solve.bound import upper_bound
from nextlabel.solve.exact import exact_value
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
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TASKS = (10, 100, 1000)
RATIO = 1.2

#: The optimum is computed up to this many tasks.
EXACT_TASKS = 10
REPLICATIONS, QUICK = 5000, 100

#: Read off the paper's figure: (policy, K) -> mean, half-width of its 95% interval where it can be read.
PAPER: dict[tuple[str, int], tuple[float, float | None]] = {
    ("index", 10): (0.74704, 0.0005),
    ("index", 100): (0.75838, 0.0001),
    ("index", 1000): (0.75928, 0.00004),
    ("okg", 10): (0.74301, 0.0006),
    ("okg", 100): (0.75807, None),
    ("okg", 1000): (0.75914, None),
}


def problem(tasks: int) -> Problem:
    """The paper's setting."""
    return Problem.identical(tasks, round(RATIO * tasks))


def run(config: StudyOptions, progress: Progress) -> ExperimentOutcome:
    """All policies at every K under both stop rules."""
    replications = config.count(REPLICATIONS, QUICK)
    policies = shared(names(planned=not config.quick), index_for(problem(TASKS[-1])))
    rows: list[Row] = []
    for k, tasks in enumerate(TASKS):
        for s, stop in enumerate(("wait", "discard")):
            piece = part(progress, 2 * k + s, 2 * len(TASKS))
            rows += _rows(tasks, stop, policies, replications, config, piece)
    return ExperimentOutcome(rows, {"replications": replications})


def _rows(
    tasks: int, stop: str, policies: list[Policy], replications: int, config: StudyOptions, progress: Progress | None
) -> list[Row]:
    setting = problem(tasks)
    bound = upper_bound(setting)
    study = simulate(
        setting, policies, replications=replications, seed=config.seed, engine=config.engine, pending=stop,
        bound=bound, progress=progress,
    )  # fmt: skip
    head: Row = {"stop": stop, "tasks": tasks, "budget": setting.budget}
    out = []
    for result in study.results:
        ahead = study.difference(result.name, "index")
        paper, paper_half = PAPER.get((result.name, tasks), (None, None)) if stop == "discard" else (None, None)
        out.append(
            {
                **head,
                "policy": result.name,
                "mean": result.per_task.mean,
                "half_width": result.per_task.half_width,
                "minus_index": ahead.mean,
                "minus_index_half_width": ahead.half_width,
                "bound": bound.per_task,
                "gap_percent": result.gap_percent.mean if result.gap_percent else None,
                "gap_half_width": result.gap_percent.half_width if result.gap_percent else None,
                "labels_used": result.labels_used,
                "most_labels": result.most_labels,
                "replications": replications,
                "paper": paper,
                "paper_half_width": paper_half,
            }
        )
    if tasks <= EXACT_TASKS:
        best = exact_value(setting, pending=stop)
        blank: Row = dict.fromkeys(out[0])
        gap = 100.0 * (1.0 - best.value / bound.value) if stop == "wait" else None
        known = {"policy": "optimum", "mean": best.per_task, "bound": bound.per_task, "gap_percent": gap}
        out.append({**blank, **head, **known})
    return out


def draw(rows: list[Row]) -> Figure:
    """Value per task against K under both stop rules, and the gap to the bound."""
    with drawing(1, 3, figsize=(13.5, 4.8)) as (figure, panels):
        figure.set_layout_engine("constrained", w_pad=0.12)
        sizes = values_of(rows, "tasks")
        bound = rows[0]["bound"]
        for axes, stop in zip(panels[:2], ("discard", "wait"), strict=True):
            some = pick(rows, stop=stop)
            shown = [n for n in in_order(values_of(some, "policy")) if n != "optimum" and _near(pick(some, policy=n))]
            for k, name in enumerate(shown):
                shift = 1.06 ** (k - len(shown) / 2)
                draw_line(axes, pick(some, policy=name), "tasks", "mean", "half_width", shift, **look(name))
            for row in pick(some, policy="optimum"):
                axes.plot(row["tasks"], row["mean"], markersize=13, **look("optimum"))
            axes.axhline(bound, color=INK, linewidth=1)
            axes.text(sizes[0] * 0.8, bound + 0.0003, "upper bound", weight="bold")
            axes.set(xscale="log", xlabel="tasks K", ylabel="tasks right, per task", ylim=(0.7375, 0.7615))
            axes.set_xticks(sizes, [f"{K:,}" for K in sizes])
        _paper_points(panels[0], rows)
        panels[0].set_title("Stop at the last arrival (as published)")
        panels[1].set_title("Labels in flight are awaited")
        _gaps(panels[2], pick(rows, stop="wait"))
        panels[2].set_xticks(sizes, [f"{K:,}" for K in sizes])
        legend_beside(figure, panels)
    return figure


def _near(rows: Sequence[Row]) -> bool:
    return bool(max(row["mean"] for row in rows) > 0.7375)


def _paper_points(axes: Axes, rows: Sequence[Row]) -> None:
    for name, colour, side in (("index", BLUE, 1.32), ("okg", RED, 1.32)):
        some = [row for row in rows if row["policy"] == name and row["paper"] is not None]
        axes.errorbar(
            [row["tasks"] * side for row in some], [row["paper"] for row in some],
            yerr=[row["paper_half_width"] or 0.0 for row in some], color=colour, linestyle="none", marker="o",
            markerfacecolor="white", markersize=7, capsize=2, zorder=6,
        )  # fmt: skip
    first = next(row for row in rows if row["policy"] == "okg" and row["paper"] is not None)
    axes.annotate(
        "hollow: as plotted\nin the paper", (1.4 * first["tasks"], first["paper"]),
        xytext=(2.2 * first["tasks"], first["paper"] - 0.002),
        arrowprops={"arrowstyle": "-", "color": GREY}, va="center",
    )  # fmt: skip


def _gaps(axes: Axes, rows: Sequence[Row]) -> None:
    for name in in_order(values_of(rows, "policy")):
        draw_line(axes, pick(rows, policy=name), "tasks", "gap_percent", "gap_half_width", **look(name))
    axes.set(xscale="log", yscale="log", xlabel="tasks K", ylabel="gap to the bound, %")
    axes.set_title("Gap to the bound (awaited)")
