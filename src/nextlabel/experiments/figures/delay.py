"""Many labels in flight: gap against load."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nextlabel.experiments.figures.lines import draw_line, pick, values_of
from nextlabel.reporting.style import drawing, finish, in_order, legend_beside, look
from nextlabel.reporting.tables import Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(rows: list[Row]) -> Figure:
    """Gap to the per-arrival bound against the labels in flight per task."""
    with drawing() as plt:
        sizes = values_of(rows, "tasks")
        width = 4.0 + 3.6 * len(sizes)
        figure, panels = plt.subplots(
            1, len(sizes), figsize=(width, 5.2), layout="constrained", squeeze=False, sharey=True
        )
        for axes, K in zip(panels[0], sizes, strict=True):
            some = pick(rows, tasks=K)
            for name in in_order(values_of(some, "policy")):
                one = pick(some, policy=name)
                draw_line(axes, one, "in_flight_per_task", "gap_per_arrival_percent", "gap_half_width", **look(name))
            loads = values_of(some, "in_flight_per_task")
            axes.set(xscale="log", yscale="log", xlabel="labels in flight per task, r/(μK)")
            axes.set_xticks(loads, [f"{load:g}\nr/μ = {K * load:g}" for load in loads])
            axes.set_xticks([], minor=True)
            axes.set_title(f"K = {K:,}, U = {some[0]['budget']:,}")
        panels[0, 0].set_ylabel("gap to the per-arrival bound, %")
        legend_beside(figure, panels[0])
        return finish(figure)
