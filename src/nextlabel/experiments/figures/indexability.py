"""Not indexable: how many states, how many decisions, at what cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nextlabel.reporting.style import drawing, finish
from nextlabel.reporting.tables import Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PANELS = (
    ("reopening_percent", "states that reopen, %"),
    ("changed_percent", "decisions that differ, %"),
    ("cost", "value lost by the least price, % of the optimum"),
)


def draw(rows: list[Row]) -> Figure:
    """Three panels over the same problems."""
    with drawing() as plt:
        figure, panels = plt.subplots(1, 3, figsize=(11, 1.4 + 0.3 * len(rows)), sharey=True, layout="constrained")
        names = [f"K={r['tasks']}, U={r['budget']}, r/μ={r['arrival_rate'] / 0.4:g}" for r in rows]
        y = [-k for k in range(len(rows))]
        for axes, (key, label) in zip(panels, PANELS, strict=True):
            if key == "cost":
                x = [row["least_loses_percent"] - row["greatest_loses_percent"] for row in rows]
            else:
                x = [row[key] for row in rows]
            axes.barh(y, x, height=0.6)
            axes.axvline(0.0, color="#5b6672", linewidth=0.8)
            axes.set_xlabel(label)
            axes.grid(axis="y", visible=False)
        panels[0].set_yticks(y, names)
        figure.suptitle("Problems that are not indexable: the greatest price against the least")
        return finish(figure)
