"""A backtest as rows, a figure and a page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from nextlabel.backtest.run import Backtest, Point
from nextlabel.backtest.savings import Saving
from nextlabel.backtest.sentences import assumptions, headline, percent_saved, sentences, strongest
from nextlabel.reporting.html import HtmlPage
from nextlabel.reporting.style import GREY, INK, RED, drawing, finish, in_order, look
from nextlabel.version import __version__

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Row = dict[str, Any]


def point_rows(found: Backtest, *, asked: bool = False) -> list[Row]:
    """One row a policy, read-out and budget, then the overlaps, then the ceiling."""
    some = [one for one in found.points if one.asked or not asked]
    rows = [_row(one) for one in (*some, *found.overlaps)]
    total = int(found.stage.recorded.counts.sum())
    for readout, accuracy in found.ceilings.items():
        rows.append(
            {
                **dict.fromkeys(rows[0]),
                "policy": "all labels",
                "readout": readout,
                "budget": total,
                "labels_per_task": total / found.tasks,
                "labels_used": float(total),
                "accuracy": accuracy,
                "asked": True,
            }
        )
    return rows


def _row(one: Point) -> Row:
    against = one.minus_index
    return {
        "policy": one.policy,
        "readout": one.readout,
        "budget": round(one.labels_used) if one.policy.startswith("overlap ") else one.budget,
        "labels_per_task": one.labels_per_task,
        "labels_used": one.labels_used,
        "accuracy": one.accuracy.mean,
        "half_width": one.accuracy.half_width,
        "minus_index": None if against is None else against.mean,
        "minus_index_half_width": None if against is None else against.half_width,
        "model_expects": one.believed,
        "asked": one.asked,
    }


def saving_rows(found: Backtest) -> list[Row]:
    """One row a policy, read-out, overlap and read-out of the overlap."""
    return [{name: getattr(one, name) for name in one.__slots__} for one in found.savings]


def accuracy_table(found: Backtest, readout: str) -> tuple[list[str], list[list[str]]]:
    """Policies down, asked budgets across; overlaps and the ceiling below."""
    points = [one for one in found.points if one.asked and one.readout == readout]
    budgets = sorted({one.budget for one in points})
    header = ["policy", *(f"{U / found.tasks:.3g} a task" for U in budgets)]
    at = {(one.policy, one.budget): one for one in points}
    rows = []
    for name in found.policies:
        cells = [at.get((name, U)) for U in budgets]
        rows.append([name, *("" if one is None else with_interval(one) for one in cells)])
    return header, rows


def overlap_line(found: Backtest, readout: str) -> str:
    """Fixed overlaps and the ceiling in one line."""
    parts = [f"{one.budget}: {with_interval(one)}" for one in found.overlaps if one.readout == readout]
    total = found.stage.recorded.counts.mean()
    end = f"all {total:.3g} labels a task: {found.ceilings[readout]:.4f} (the ceiling)"
    return f"The same number of labels for every task by {readout}: {'; '.join(parts)}; {end}."


def with_interval(one: Point) -> str:
    """Mean and half-width, short enough for four budgets in 80 columns."""
    return f"{one.accuracy.mean:.4f} ±" + f"{one.accuracy.half_width:.4f}".lstrip("0")


def saving_table(found: Backtest, readout: str) -> tuple[list[str], list[list[str]]]:
    """Labels saved against the stronger read-out of each overlap."""
    mine = strongest(found, readout)
    ks = sorted({one.overlap for one in mine})
    accuracy = {one.overlap: one for one in mine}
    header = ["policy", *(f"overlap {k} ({accuracy[k].overlap_accuracy:.4f})" for k in ks)]
    at = {(one.policy, one.overlap): one for one in mine}
    rows = [[name, *(_saved_cell(at.get((name, k))) for k in ks)] for name in found.policies]
    return header, rows


def _saved_cell(one: Saving | None) -> str:
    if one is None:
        return ""
    if one.saved is None:
        return "not reached"
    more = "≥ " if one.at_first else ""
    low = "?" if one.low is None else percent_saved(one.low)
    high = "?" if one.high is None else percent_saved(one.high)
    return f"{more}{percent_saved(one.saved)} ({low} to {high})"


def backtest_figure(found: Backtest) -> Figure:
    """Accuracy against labels a task, one panel a read-out."""
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
    axes.set_xlabel("labels a task")
    axes.set_title(f"read out by {readout}")
    axes.tick_params(colors=INK)
    axes.spines["left"].set_color(GREY)


def backtest_page(found: Backtest, command: str, read: Sequence[str]) -> str:
    """The page to show around; ``read`` says what was in the files."""
    page = HtmlPage(
        "Backtest of recorded labels", f"{found.tasks:,} tasks replayed under {len(found.policies)} policies."
    )
    boxes = [
        (percent_saved(one.saved), f"fewer labels than overlap {one.overlap} at its accuracy, {one.policy}")
        for one in headline(found)
        if one.saved is not None and one.saved > 0
    ]
    first = found.readouts[0]
    boxes.append((f"{found.ceilings[first]:.1%}", f"with all labels, by {first}: the ceiling"))
    page.answers(boxes)
    page.bullets(sentences(found))
    page.figure(
        backtest_figure(found),
        "Accuracy against labels a task with 95% intervals; squares: the same odd number of labels for every task.",
    )
    for readout in found.readouts:
        page.heading(f"Accuracy, read out by {readout}")
        page.table(*accuracy_table(found, readout))
        page.paragraph(overlap_line(found, readout))
        if strongest(found, readout):
            page.heading(f"Labels saved against fixed overlap, read out by {readout}")
            page.table(*saving_table(found, readout))
    page.heading("What this rests on")
    page.bullets(assumptions(found))
    page.heading("What was read")
    page.bullets(read)
    page.heading("How it was made")
    page.code(command)
    return page.render(f"nextlabel {__version__}")
