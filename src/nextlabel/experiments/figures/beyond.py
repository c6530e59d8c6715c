"""Past the paper's model: knowing a mixture, three answers, money."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nextlabel.experiments.figures.lines import draw_line, pick, values_of
from nextlabel.reporting.style import BLUE, INK, RED, drawing, finish, in_order, legend_beside, look
from nextlabel.reporting.tables import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw(rows: list[Row]) -> Figure:
    """Three panels."""
    with drawing() as plt:
        figure, panels = plt.subplots(1, 3, figsize=(14.0, 4.4), layout="constrained")
        _mixture(panels[0], pick(rows, panel="mixture"))
        _values_and_bound(panels[1], pick(rows, panel="answers"))
        panels[1].set(xlabel="labels per task", ylabel="tasks right, per task")
        panels[1].set_xticks(values_of(pick(rows, panel="answers"), "x"))
        panels[1].set_title("Three answers, Dirichlet(1, 1, 1)")
        _values_and_bound(panels[2], pick(rows, panel="money"))
        panels[2].set(xscale="log", xlabel="cost of a label (a correct task is worth 1)", ylabel="net value per task")
        panels[2].set_title("Money: who can stop, and who cannot")
        costs = values_of(pick(rows, panel="money"), "x")
        panels[2].set_xticks(costs, [f"{c:g}" for c in costs])
        panels[2].set_xticks([], minor=True)
        legend_beside(figure, panels[1:])
        return finish(figure)


def _mixture(axes: Axes, rows: list[Row]) -> None:
    for kind, colour, marker in zip(values_of(rows, "kind"), (BLUE, RED), ("o", "s"), strict=True):
        some = [row for row in pick(rows, kind=kind) if row["policy"] not in ("index", "uniform")]
        gain = [{**row, "gain": -row["minus_index"]} for row in some]
        draw_line(axes, gain, "x", "gain", "minus_index_half_width", color=colour, marker=marker, label=kind)
    axes.axhline(0.0, color=INK, linewidth=0.8)
    axes.set(xlabel="labels per task", ylabel="more tasks right, per task")
    axes.set_xticks(values_of(rows, "x"))
    axes.set_title("What the mixture prior adds to one Beta")
    axes.legend(title="tasks are")


def _values_and_bound(axes: Axes, rows: list[Row]) -> None:
    for name in in_order(values_of(rows, "policy")):
        draw_line(axes, pick(rows, policy=name), "x", "mean", "half_width", **look(name))
    line = pick(rows, policy="index")
    axes.plot([row["x"] for row in line], [row["bound"] for row in line], color=INK, linewidth=1, label="upper bound")
