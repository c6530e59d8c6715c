"""The figure of ``beyond``: knowing a mixture, three answers, money."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nextlabel.experiments.figures import _done, _line, _pick, _values
from nextlabel.experiments.study import Row
from nextlabel.experiments.style import BLUE, INK, RED, drawing, in_order, legend_beside, look

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def beyond(rows: list[Row]) -> Figure:
    """Three panels."""
    with drawing() as plt:
        figure, panels = plt.subplots(1, 3, figsize=(14.0, 4.4), layout="constrained")
        _mixture(panels[0], _pick(rows, panel="mixture"))
        _values_and_bound(panels[1], _pick(rows, panel="answers"))
        panels[1].set(xlabel="labels per task", ylabel="tasks right, per task")
        panels[1].set_xticks(_values(_pick(rows, panel="answers"), "x"))
        panels[1].set_title("Three answers, Dirichlet(1, 1, 1)")
        _values_and_bound(panels[2], _pick(rows, panel="money"))
        panels[2].set(xscale="log", xlabel="cost of a label (a correct task is worth 1)", ylabel="net value per task")
        panels[2].set_title("Money: who can stop, and who cannot")
        costs = _values(_pick(rows, panel="money"), "x")
        panels[2].set_xticks(costs, [f"{c:g}" for c in costs])
        panels[2].set_xticks([], minor=True)
        legend_beside(figure, panels[1:])
        return _done(figure)


def _mixture(axes: Axes, rows: list[Row]) -> None:
    for kind, colour, marker in zip(_values(rows, "kind"), (BLUE, RED), ("o", "s"), strict=True):
        some = [row for row in _pick(rows, kind=kind) if row["policy"] not in ("index", "uniform")]
        gain = [{**row, "gain": -row["minus_index"]} for row in some]
        _line(axes, gain, "x", "gain", "minus_index_half_width", color=colour, marker=marker, label=kind)
    axes.axhline(0.0, color=INK, linewidth=0.8)
    axes.set(xlabel="labels per task", ylabel="more tasks right, per task")
    axes.set_xticks(_values(rows, "x"))
    axes.set_title("What the mixture prior adds to one Beta")
    axes.legend(title="tasks are")


def _values_and_bound(axes: Axes, rows: list[Row]) -> None:
    for name in in_order(_values(rows, "policy")):
        _line(axes, _pick(rows, policy=name), "x", "mean", "half_width", **look(name))
    line = _pick(rows, policy="index")
    axes.plot([row["x"] for row in line], [row["bound"] for row in line], color=INK, linewidth=1, label="upper bound")
