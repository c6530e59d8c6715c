"""Total gap against the number of tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nextlabel.experiments.figures.lines import draw_line, pick, values_of
from nextlabel.reporting.style import drawing, finish, in_order, legend_beside, look
from nextlabel.reporting.tables import Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(rows: list[Row]) -> Figure:
    """Total gap against K, one panel for each ratio of labels to tasks."""
    with drawing() as plt:
        ratios = values_of(rows, "ratio")
        lines = -(-len(ratios) // 2)
        figure, panels = plt.subplots(
            lines, 2, figsize=(10.5, 0.4 + 3.6 * lines), layout="constrained", sharex=True, sharey=True, squeeze=False
        )
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
        return finish(figure)
