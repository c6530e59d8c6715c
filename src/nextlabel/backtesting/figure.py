"""The figures of a backtest, accuracy against labels per task and labels saved with their intervals; and its page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from nextlabel.backtesting.report import (
    SHOWN,
    USUAL,
    accuracy_table,
    against,
    assumptions,
    headline,
    opponents,
    overlap_line,
    percent_saved,
    saving_table,
    sentences,
)
from nextlabel.backtesting.result import Backtest
from nextlabel.reporting.html import embedded, render_page
from nextlabel.reporting.style import GREY, INK, drawing, finish, in_order, look

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: A curve may begin below the panel: nothing is known about workers with fewer labels per task.
FIRST_SHOWN = 1.5
#: Labels saved, in percent, at the left end of the panel: an interval without a lower end begins there.
LEAST_SHOWN = -100.0


def backtest_figure(found: Backtest) -> Figure:
    """Accuracy for each read-out, side by side, and what is saved by the first of them."""
    with drawing() as plt:
        many = len(found.readouts) + bool(_savings(found))
        figure, panels = plt.subplots(1, many, figsize=(4.6 * many, 4.6), squeeze=False, layout="constrained")
        for axes, readout in zip(panels[0], found.readouts, strict=False):
            draw_accuracy(axes, found, readout)
        low, high = _limits(found)
        for axes in panels[0][: len(found.readouts)]:
            axes.set_ylim(low, high)
        if _savings(found):
            draw_savings(panels[0][-1], found)
        return finish(figure)


def accuracy_figure(found: Backtest, readout: str) -> Figure:
    """One read-out on its own, wide enough to be read on a phone."""
    with drawing() as plt:
        figure, axes = plt.subplots(figsize=(5.4, 4.4), layout="constrained")
        draw_accuracy(axes, found, readout)
        axes.set_ylim(*_limits(found))
        return finish(figure)


def savings_figure(found: Backtest) -> Figure | None:
    """What is saved, on its own; None if nothing is known about it."""
    if not _savings(found):
        return None
    with drawing() as plt:
        figure, axes = plt.subplots(figsize=(5.4, 4.4), layout="constrained")
        draw_savings(axes, found)
        return finish(figure)


def draw_accuracy(axes: Any, found: Backtest, readout: str) -> None:
    """Accuracy of every policy by one read-out, fixed overlaps by it and by majority, and the ceiling."""
    for name in in_order(found.policies):
        mine = [one for one in found.points if one.policy == name and one.readout == readout]
        if not mine:
            continue
        x = np.array([one.labels_per_task for one in mine])
        y = np.array([one.accuracy.mean for one in mine])
        h = np.array([one.accuracy.half_width for one in mine])
        style = look(name)
        axes.fill_between(x, y - h, y + h, color=style["color"], alpha=0.12, linewidth=0, zorder=2)
        axes.plot(x, y, **style, markevery=[k for k, one in enumerate(mine) if one.asked])
    _overlaps(axes, found, readout, INK, "white" if readout == USUAL else INK)
    if readout != USUAL and USUAL in found.readouts:
        _overlaps(axes, found, USUAL, INK, "white")
    axes.axhline(found.ceilings[readout], color=INK, linewidth=1.0, linestyle=":", label="all labels")
    axes.set_xlabel("labels per task")
    axes.set_ylabel("accuracy" if found.truth == "gold" else "agreement with all labels together")
    axes.set_title(f"read out by {readout}")
    axes.tick_params(colors=INK)
    axes.spines["left"].set_color(GREY)
    axes.legend(loc="lower right", fontsize=8)


def _overlaps(axes: Any, found: Backtest, readout: str, colour: str, face: str) -> None:
    fixed = [one for one in found.overlaps if one.readout == readout]
    axes.errorbar(
        [one.labels_per_task for one in fixed],
        [one.accuracy.mean for one in fixed],
        [one.accuracy.half_width for one in fixed],
        fmt="s", color=colour, markerfacecolor=face, markersize=7, linewidth=0.8, zorder=6,
        label=f"fixed overlap, {readout}",
    )  # fmt: skip
    for one in fixed:
        axes.annotate(
            str(one.budget), (one.labels_per_task, one.accuracy.mean), textcoords="offset points", xytext=(6, -12),
            color=colour,
        )  # fmt: skip


def draw_savings(axes: Any, found: Backtest) -> None:
    """Labels saved by the first read-out against overlaps, by majority and by the same read-out."""
    readout = _savings(found)
    rows = [
        (k, other, [one for one in against(found, readout, other) if one.overlap == k])
        for k in SHOWN
        for other in opponents(found, readout)
    ]
    rows = [row for row in rows if row[2]]
    names = in_order({one.policy for _, _, some in rows for one in some})
    named: set[str] = set()
    for r, (_, _, some) in enumerate(rows):
        for one in some:
            if one.saved is None:
                continue
            style = look(one.policy)
            shift = 0.5 * (names.index(one.policy) / (len(names) - 1) - 0.5) if len(names) > 1 else 0.0
            high = one.saved if one.high is None else one.high
            if one.low is None:  # some resampled sets do not get there at all: the interval has no lower end
                ends = (LEAST_SHOWN, 100 * high)
                axes.plot(LEAST_SHOWN, r + shift, "<", color=style["color"], markersize=5, clip_on=False)
            else:
                ends = (100 * one.low, 100 * high)
            axes.plot(ends, [r + shift] * 2, color=style["color"], linewidth=1.5)
            label = None if one.policy in named else one.policy
            named.add(one.policy)
            axes.plot(100 * one.saved, r + shift, style["marker"], color=style["color"], label=label)
    axes.axvline(0.0, color=GREY, linewidth=0.8)
    axes.set_yticks(range(len(rows)), [f"{k} labels,\nby {other}" for k, other, _ in rows])
    axes.invert_yaxis()
    axes.set_xlim(left=max(LEAST_SHOWN, axes.get_xlim()[0]), right=100.0)
    axes.set_xlabel("labels saved, %")
    axes.set_title(f"saved at equal accuracy, read out by {readout}")
    if named:
        axes.legend(loc="best", fontsize=8)
    else:
        axes.text(0.5, 0.5, "no policy reaches these accuracies", transform=axes.transAxes, ha="center", color=INK)


def _savings(found: Backtest) -> str:
    """The first read-out that has savings against an overlap that is shown; nothing if none has."""
    for readout in found.readouts:
        if any(one.overlap in SHOWN for other in opponents(found, readout) for one in against(found, readout, other)):
            return readout
    return ""


def _limits(found: Backtest) -> tuple[float, float]:
    """The same range of accuracies for all panels."""
    values = [one.accuracy.mean for one in found.points if one.labels_per_task >= FIRST_SHOWN]
    values += [one.accuracy.mean for one in found.overlaps if one.readout == USUAL or one.budget > 1]
    values += list(found.ceilings.values())
    room = 0.06 * (max(values) - min(values) + 0.01)
    return min(values) - room, max(values) + room


def backtest_page(found: Backtest, command: str, read: Sequence[str]) -> str:
    """The page to show around; ``read`` says what was in the files."""
    first = found.readouts[0]
    boxes = [
        (
            percent_saved(one.saved),
            f"fewer labels than {one.overlap} for every task by {one.overlap_readout}, at equal accuracy: {one.policy}",
        )
        for one in headline(found)
        if one.saved is not None and one.saved > 0
    ]
    saved = savings_figure(found)
    return render_page(
        "backtest",
        title="Backtest of recorded labels",
        lead=f"{found.tasks:,} tasks replayed under {len(found.policies)} policies.",
        command=command,
        boxes=[*boxes, (f"{found.ceilings[first]:.1%}", f"right with all labels, read out by {first}")],
        sentences=sentences(found),
        accuracy_figures=[embedded(accuracy_figure(found, name)) for name in found.readouts],
        savings_figure=None if saved is None else embedded(saved),
        readouts=[
            {
                "name": name,
                "accuracy": accuracy_table(found, name),
                "overlaps": overlap_line(found, name),
                "savings": [(other, *saving_table(found, name, other)) for other in opponents(found, name)],
            }
            for name in found.readouts
        ],
        assumptions=assumptions(found),
        read=read,
    )
