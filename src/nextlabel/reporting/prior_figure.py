"""The figure of learnt priors: how many tasks have which share of ones, and the densities behind it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import betaln as log_beta
from scipy.special import xlog1py, xlogy

from nextlabel.arrays import Floats
from nextlabel.learn.counts import LabelCounts
from nextlabel.learn.fit import Cells, cells_of
from nextlabel.learn.mixture import as_mixture
from nextlabel.learn.priors import LearntPrior
from nextlabel.reporting.style import BLUE, BROWN, GREY, RED, drawing, finish

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LOOKS = {"moments": (BROWN, "d", ":"), "ml": (BLUE, "o", "-"), "mixture": (RED, "s", "--")}
#: Tasks with as many labels each as this or fewer have a bar for each number of ones; else there are bars of a tenth.
MOST_BARS, TENTHS = 20, 10
#: Points of a density, and the quantile of them that fits into the panel: densities may have no highest point.
GRID, SHOWN = 2001, 0.995


def prior_figure(counts: LabelCounts, learnt: Sequence[LearntPrior]) -> Figure:
    """Observed and predicted shares of tasks on the left, densities on the right."""
    with drawing() as plt:
        figure, (left, right) = plt.subplots(1, 2, figsize=(10.5, 4.2), layout="constrained")
        _bars(left, counts, learnt)
        _densities(right, learnt)
        handles, labels = left.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
        return finish(figure)


def binned(cells: Cells) -> tuple[Floats, Floats, Floats]:
    """Shares of ones, and the observed and expected shares of the tasks that have them."""
    most = int(cells.labels.max())
    bars = most if cells.labels.min() == most <= MOST_BARS else TENTHS
    place = np.floor(bars * cells.ones / cells.labels + 0.5).astype(np.int64)
    total = cells.observed.sum()
    observed = np.bincount(place, cells.observed, bars + 1) / total
    return np.arange(bars + 1) / bars, observed, np.bincount(place, cells.expected, bars + 1) / total


def _bars(axes: Axes, counts: LabelCounts, learnt: Sequence[LearntPrior]) -> None:
    for k, one in enumerate(learnt):
        at, observed, expected = binned(cells_of(counts, one.prior))
        if k == 0:
            axes.bar(at, observed, width=0.8 / (len(at) - 1), color=GREY, alpha=0.55, label="observed")
        axes.plot(at, expected, **_look(one))
    tasks, labels = len(counts), int(counts.totals.sum())
    axes.set(xlabel="share of ones among a task's labels", ylabel="share of tasks")
    axes.set_title(f"{tasks:,} tasks, {labels:,} labels")


def _densities(axes: Axes, learnt: Sequence[LearntPrior]) -> None:
    theta = (np.arange(GRID) + 0.5) / GRID
    top = 0.0
    for one in learnt:
        density = _density(one, theta)
        axes.plot(theta, density, **{**_look(one), "marker": ""})
        top = max(top, float(np.quantile(density, SHOWN)))
    axes.set(xlim=(0, 1), ylim=(0, 1.1 * top), xlabel="θ, the chance that a worker answers 1", ylabel="density")
    axes.set_title("Learnt priors")


def _density(one: LearntPrior, theta: Floats) -> Floats:
    mixture = as_mixture(one.prior)
    total = np.zeros_like(theta)
    for v, c in zip(mixture.weights, mixture.components, strict=True):
        total += v * np.exp(xlogy(c.alpha - 1, theta) + xlog1py(c.beta - 1, -theta) - log_beta(c.alpha, c.beta))
    return total


def _look(one: LearntPrior) -> dict[str, Any]:
    colour, marker, line = LOOKS[one.method]
    fit = "" if one.p_value is None else f" (p = {one.p_value:.3f})"
    return {"color": colour, "marker": marker, "linestyle": line, "label": f"{one.method}{fit}", "zorder": 3}
