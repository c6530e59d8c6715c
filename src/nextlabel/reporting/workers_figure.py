"""The figure of a learnt crowd: the skill of each worker, and what they get wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nextlabel.crowd.flags import AGAINST, AT_CHANCE, COPYING, SAME
from nextlabel.crowd.learnt import LearntCrowd, LearntWorker
from nextlabel.reporting.style import BLUE, GREY, INK, ORANGE, PINK, RED, drawing, finish

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Colour and marker of a worker by the first flag that applies; without one, blue dots.
LOOKS = {COPYING: (PINK, "D"), AGAINST: (ORANGE, "v"), AT_CHANCE: (RED, "X"), SAME: (INK, "s")}
PLAIN = (BLUE, "o")
#: Workers with an interval of their own on the left: those with the most labels.
MOST_BARS = 60


def workers_figure(found: LearntCrowd) -> Figure:
    """Accuracy of each worker with its interval on the left; what they say to either truth on the right."""
    with drawing() as plt:
        figure, (left, right) = plt.subplots(1, 2, figsize=(11.0, 4.8), layout="constrained", width_ratios=(1.25, 1))
        _accuracies(left, found)
        _answers(right, found)
        looks = dict(_look(one) for one in found.workers)
        handles = [plt.Line2D([], [], color=c, marker=m, linestyle="", alpha=0.8) for c, m in looks.values()]
        figure.legend(handles, list(looks), loc="outside lower center", ncols=len(looks))
        return finish(figure)


def _look(one: LearntWorker) -> tuple[str, tuple[str, str]]:
    flag = next((flag for flag in LOOKS if flag in one.flags), "")
    return flag or "nothing stands out", LOOKS.get(flag, PLAIN)


def _accuracies(axes: Axes, found: LearntCrowd) -> None:
    some = sorted(found.workers[:MOST_BARS], key=lambda one: -one.accuracy.mean)
    for place, one in enumerate(some):
        colour, marker = _look(one)[1]
        axes.plot([place, place], [one.accuracy.low, one.accuracy.high], color=colour, linewidth=1.2, alpha=0.6)
        axes.plot(place, one.accuracy.mean, marker=marker, color=colour, linestyle="")
    everyone = len(some) == len(found.workers)
    which = "all workers" if everyone else f"the {len(some)} workers with the most labels"
    axes.set(xlabel=f"{which}, the best first", ylabel="accuracy", ylim=(0, 1.02))
    axes.set_xticks([])
    axes.set_title("How often a label is right, with 95% intervals")


def _answers(axes: Axes, found: LearntCrowd) -> None:
    """Sensitivity against specificity; for more than two answers, bits against labels."""
    most = max(one.labels for one in found.workers)
    for one in sorted(found.workers, key=lambda one: bool(one.flags)):
        colour, marker = _look(one)[1]
        if one.sensitivity is not None and one.specificity is not None:
            x, y = one.specificity.mean, one.sensitivity.mean
        else:
            x, y = float(one.labels), one.bits
        size = 12 + 130 * one.labels / most
        axes.scatter(x, y, s=size, color=colour, marker=marker, alpha=0.6, linewidths=0, zorder=3)
    if len(found.answers) == 2:
        no, yes = found.answers
        axes.plot([0, 1], [1, 0], color=GREY, linestyle=":", linewidth=1.2)
        axes.annotate("answers that say nothing", (0.6, 0.37), rotation=-45, ha="center", va="center", color=GREY)
        axes.set_aspect("equal")
        axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
        axes.set(xlabel=f"says {no} when the truth is {no}", ylabel=f"says {yes} when the truth is {yes}")
        axes.set_title("What they get right; large: many labels")
    else:
        axes.set_xscale("log")
        axes.set(xlabel="labels given", ylabel="bits per label", ylim=(-0.02, float(np.log2(len(found.answers)))))
        axes.set_title("What a label says about the truth")
