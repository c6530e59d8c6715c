"""The paper's second experiment: accuracy on recorded labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from nextlabel.experiments.figures.lines import draw_line, pick, values_of
from nextlabel.reporting.style import INK, drawing, finish, in_order, legend_beside, look
from nextlabel.reporting.tables import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw(rows: list[Row]) -> Figure:
    """Accuracy against gold by labels per task: RTE by the number of tasks, TEMP, the order of labels, labels saved."""
    with drawing() as plt:
        figure, panels = plt.subplots(4, 3, figsize=(14, 15.5), layout="constrained")
        sizes = sorted(values_of(pick(rows, set="rte"), "tasks"))
        others = max(row["tasks"] for row in pick(rows, set="temp"))
        for line, kind in enumerate(("half", "learnt")):
            for axes, tasks in zip(panels[line, 3 - len(sizes) :], sizes, strict=True):
                _accuracy(axes, pick(rows, set="rte", tasks=tasks, threshold_kind=kind, order="random"), "RTE")
            for axes in panels[line, : 3 - len(sizes)]:
                axes.set_visible(False)
            _accuracy(panels[2, line], pick(rows, set="temp", threshold_kind=kind, order="random"), "TEMP")
            _saved(panels[3, line], pick(rows, set="rte", tasks=sizes[-1], threshold_kind=kind, order="random"), "RTE")
        _orders(panels[2, 2], pick(rows, set="temp", tasks=others, threshold_kind="half"), "TEMP")
        _orders(panels[3, 2], pick(rows, set="rte", tasks=sizes[-1], threshold_kind="half"), "RTE")
        legend_beside(figure, panels.flat)
        return finish(figure)


def _threshold(row: Row) -> str:
    return "threshold ½" if row["threshold_kind"] == "half" else f"learnt threshold {row['threshold']:.2g}"


def _accuracy(axes: Axes, rows: Sequence[Row], title: str) -> None:
    """Every policy; rules far below ``uniform`` may leave the panel."""
    some = [row for row in rows if row["ratio"] < 10]
    for policy in in_order(values_of(some, "policy")):
        draw_line(axes, pick(some, policy=policy), "ratio", "accuracy", "half_width", **look(policy))
    axes.set_ylim(bottom=0.99 * min(row["accuracy"] for row in pick(some, policy="uniform")))
    axes.set(xlabel="labels per task U/K", ylabel="accuracy against gold")
    axes.set_title(f"{title}, {rows[0]['tasks']} tasks, {_threshold(rows[0])}")


def _orders(axes: Axes, rows: Sequence[Row], title: str) -> None:
    from matplotlib.lines import Line2D

    lines: dict[str, Any] = {"random": "-", "file": "--", "reversed": ":"}
    for policy in ("index", "uniform"):
        for order in values_of(rows, "order"):
            some = [row for row in pick(rows, policy=policy, order=order) if row["ratio"] < 10]
            style = {**look(policy), "linestyle": lines[order], "label": "_"}
            draw_line(axes, some, "ratio", "accuracy", "half_width", **style)
    axes.legend(handles=[Line2D([], [], color=INK, linestyle=line, label=order) for order, line in lines.items()])
    axes.set(xlabel="labels per task U/K", ylabel="accuracy against gold")
    axes.set_title(f"{title}, ½: order of labels (index, uniform)")


def _saved(axes: Axes, rows: Sequence[Row], title: str) -> None:
    for policy in in_order(values_of(rows, "policy")):
        some = [row for row in pick(rows, policy=policy) if row["labels_saved_percent"] is not None]
        if some and policy in ("index", "okg", "okg-pending", "thompson", "ucb1-tuned", "uncertainty", "overlap"):
            axes.plot(
                [row["ratio"] for row in some], [row["labels_saved_percent"] for row in some],
                **{**look(policy), "label": "_"},
            )  # fmt: skip
    axes.axhline(0, color=INK, linewidth=1)
    axes.set(xlabel="labels per task U/K", ylabel="labels saved at equal accuracy, %")
    axes.set_title(f"{title}, threshold {rows[0]['threshold']:.2g}: labels saved against uniform")
