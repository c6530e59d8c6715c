"""The paper's first experiment: value per task, and the gap to the bound."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nextlabel.experiments.figures.lines import draw_line, pick, values_of
from nextlabel.reporting.style import BLUE, GREY, INK, RED, drawing, finish, in_order, legend_beside, look
from nextlabel.reporting.tables import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw(rows: list[Row]) -> Figure:
    """Value per task against K under both stop rules, and the gap to the bound."""
    with drawing() as plt:
        figure, panels = plt.subplots(1, 3, figsize=(13.5, 4.8), layout="constrained")
        figure.get_layout_engine().set(w_pad=0.12)
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
        return finish(figure)


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
