"""The figure of a backtest: accuracy against labels per task."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nextlabel.backtesting.result import Backtest
from nextlabel.reporting.style import GREY, INK, RED, drawing, finish, in_order, look

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def backtest_figure(found: Backtest) -> Figure:
    """Accuracy against labels per task, one panel for each read-out."""
    with drawing() as plt:
        count = len(found.readouts)
        figure, panels = plt.subplots(
            1, count, figsize=(2.0 + 4.6 * count, 4.6), sharey=True, squeeze=False, layout="constrained"
        )
        for axes, readout in zip(panels[0], found.readouts, strict=True):
            _panel(axes, found, readout)
        handles, labels = panels[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside right center")
        panels[0][0].set_ylabel("accuracy" if found.truth == "gold" else "agreement with all labels together")
        return finish(figure)


def _panel(axes: Any, found: Backtest, readout: str) -> None:
    for name in in_order(found.policies):
        mine = [one for one in found.points if one.policy == name and one.readout == readout]
        x = np.array([one.labels_per_task for one in mine])
        y = np.array([one.accuracy.mean for one in mine])
        h = np.array([one.accuracy.half_width for one in mine])
        style = look(name)
        axes.fill_between(x, y - h, y + h, color=style["color"], alpha=0.15, linewidth=0, zorder=2)
        shown = [k for k, one in enumerate(mine) if one.asked]
        axes.plot(x, y, **style, markevery=shown)
    fixed = [one for one in found.overlaps if one.readout == readout]
    axes.errorbar(
        [one.labels_per_task for one in fixed],
        [one.accuracy.mean for one in fixed],
        [one.accuracy.half_width for one in fixed],
        fmt="s", color=RED, markerfacecolor="white", markersize=8, zorder=6, label="odd overlap",
    )  # fmt: skip
    for one in fixed:
        axes.annotate(
            str(one.budget), (one.labels_per_task, one.accuracy.mean), textcoords="offset points", xytext=(6, -12),
            color=RED,
        )  # fmt: skip
    axes.axhline(found.ceilings[readout], color=INK, linewidth=1.0, linestyle=":", label="ceiling: all labels")
    axes.set_xlabel("labels per task")
    axes.set_title(f"read out by {readout}")
    axes.tick_params(colors=INK)
    axes.spines["left"].set_color(GREY)
