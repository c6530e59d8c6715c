"""Workers who differ: gap to the bound in simulated crowds, and accuracy on recorded ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nextlabel.experiments.figures.lines import draw_line, pick, values_of
from nextlabel.reporting.style import drawing, finish, in_order, legend_beside, look
from nextlabel.reporting.tables import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Part of the study: its column, the label of the axis, the title after "gap by".
PARTS = {
    "tasks": ("tasks", "number of tasks K", "number of tasks"),
    "spread": ("spread", "accuracies .75, and .75 plus and minus this", "spread of skill"),
    "in-flight": ("in_flight_per_task", "labels in flight per task", "labels in flight"),
}


def draw(rows: list[Row]) -> Figure:
    """Simulated: a row for known and one for learnt channels. Recorded: a column for each set."""
    with drawing() as plt:
        figure, panels = plt.subplots(4, 3, figsize=(14, 15.5), layout="constrained")
        for line, channels in enumerate(("known", "learnt")):
            for axes, name in zip(panels[line], PARTS, strict=True):
                _gaps(axes, pick(rows, part=name, channels=channels), name, channels)
        for line, turn_away in ((2, False), (3, True)):
            for axes, name in zip(panels[line], ("rte", "temp", "mre"), strict=True):
                replay, words = ("timed", "its own times") if name == "mre" else ("worker-first", "worker first")
                if name != "mre" and not turn_away:
                    replay, words = "task-first", "task first"
                some = pick(rows, set=name, replay=replay, turn_away=turn_away)
                _accuracy(axes, some, f"{name.upper()}, {words}{', turning away' if turn_away else ''}")
        legend_beside(figure, panels.flat)
        return finish(figure)


def _gaps(axes: Axes, rows: Sequence[Row], name: str, channels: str) -> None:
    x, words, title = PARTS[name]
    for policy in in_order(values_of(rows, "policy")):
        draw_line(axes, pick(rows, policy=policy), x, "gap_percent", "gap_half_width", **look(policy))
    axes.set(xlabel=words, ylabel="gap to the bound, %", yscale="symlog" if name == "spread" else "log")
    if name == "tasks":
        axes.set_xscale("log")
        axes.set_xticks(values_of(rows, x), [f"{K:,}" for K in values_of(rows, x)])
        axes.set_xticks([], minor=True)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.yaxis.set_minor_formatter(lambda value, _: f"{value:g}" if f"{value:e}"[0] in "25" else "")
    axes.set_title(f"Channels {channels}: gap by {title}")


def _accuracy(axes: Axes, rows: Sequence[Row], title: str) -> None:
    """The worker-aware read-out of every policy, and fixed overlap by majority as people do it today."""
    for policy in in_order(values_of(rows, "policy")):
        draw_line(
            axes, pick(rows, policy=policy, readout="workers"), "labels_per_task", "accuracy", "half_width",
            **look(policy),
        )  # fmt: skip
    style = {**look("overlap"), "label": "uniform, majority"}
    draw_line(
        axes, pick(rows, policy="uniform", readout="majority"), "labels_per_task", "accuracy", "half_width", **style
    )
    axes.set(xlabel="labels per task used", ylabel="accuracy against gold")
    axes.set_title(title)
