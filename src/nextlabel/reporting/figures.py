"""The figures of what was learnt from recorded labels: priors and rates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import betaln as log_beta
from scipy.special import xlog1py, xlogy

from nextlabel.arrays import Floats
from nextlabel.model.mixture import as_mixture
from nextlabel.model.prior_learning import Cells, LearntPrior, cells_of
from nextlabel.model.prior_weights import LabelCounts
from nextlabel.model.rates import UNITS, ExponentialFit, Rates, shown_p
from nextlabel.reporting.style import BLUE, BROWN, GREY, RED, drawing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LOOKS = {"moments": (BROWN, "d", ":"), "ml": (BLUE, "o", "-"), "mixture": (RED, "s", "--")}

#: Tasks with as many labels each as this or fewer have a bar for each number of ones; else there are bars of a tenth.
MOST_BARS, TENTHS = 20, 10

#: Points of a density, and the quantile of them that fits into the panel: densities may have no highest point.
GRID, SHOWN = 2001, 0.995

#: Points of a curve.
MOST_POINTS = 1000


def prior_figure(counts: LabelCounts, learnt: Sequence[LearntPrior]) -> Figure:
    """Observed and predicted shares of tasks on the left, densities on the right."""
    with drawing(1, 2, figsize=(10.5, 4.2)) as (figure, (left, right)):
        _bars(left, counts, learnt)
        _densities(right, learnt)
        handles, labels = left.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    return figure


def binned(cells: Cells) -> tuple[Floats, Floats, Floats]:
    """Shares of ones, and the observed and expected shares of the tasks that have them."""
    most = int(cells.labels.max())
    bars = most if cells.labels.min() == most <= MOST_BARS else TENTHS
    place = np.floor(bars * cells.ones / cells.labels + 0.5).astype(np.int64)
    total = len(cells)
    observed = np.bincount(place, cells.tasks, bars + 1) / total
    return np.arange(bars + 1) / bars, observed, np.bincount(place, cells.expected, bars + 1) / total


def _bars(axes: Axes, counts: LabelCounts, learnt: Sequence[LearntPrior]) -> None:
    for k, one in enumerate(learnt):
        at, observed, expected = binned(cells_of(counts, one.prior))
        if k == 0:
            axes.bar(at, observed, width=0.8 / (len(at) - 1), color=GREY, alpha=0.55, label="observed")
        axes.plot(at, expected, **_look(one))
    tasks, labels = len(counts), int(counts.totals.sum())
    title = f"{tasks:,} tasks, {labels:,} labels"
    axes.set(xlabel="share of ones among a task's labels", ylabel="share of tasks", title=title)


def _densities(axes: Axes, learnt: Sequence[LearntPrior]) -> None:
    theta = (np.arange(GRID) + 0.5) / GRID
    top = 0.0
    for one in learnt:
        mixture = as_mixture(one.prior)
        kinds = zip(mixture.weights, mixture.alpha, strict=True)
        parts = [v * np.exp(xlogy(a - 1, theta) + xlog1py(b - 1, -theta) - log_beta(a, b)) for v, (b, a) in kinds]
        density = np.sum(parts, axis=0)
        axes.plot(theta, density, **{**_look(one), "marker": ""})
        top = max(top, float(np.quantile(density, SHOWN)))
    what = "θ, the chance that a worker answers 1"
    axes.set(xlim=(0, 1), ylim=(0, 1.1 * top), xlabel=what, ylabel="density", title="Learnt priors")


def _look(one: LearntPrior) -> dict[str, Any]:
    colour, marker, line = LOOKS[one.method]
    fit = "" if one.p_value is None else f" (p = {one.p_value:.3f})"
    return {"color": colour, "marker": marker, "linestyle": line, "label": f"{one.method}{fit}", "zorder": 3}


def rates_figure(rates: Rates) -> Figure:
    """Gaps between arrivals on the left, durations on the right where they are known."""
    name = UNITS[rates.unit][1]
    panels = 1 if rates.durations is None else 2
    with drawing(1, panels, figsize=(5.25 * panels, 4.2), squeeze=False) as (figure, axes):
        first, second = axes[0, 0], axes[0, -1]
        _panel(first, rates.active or rates.arrivals, "gaps")
        if rates.active is not None:
            at, above = survival(rates.arrivals)
            first.step(at, above, where="post", color=GREY, label="with pauses", zorder=2)
            share = f"{rates.pauses.count:,} pauses hold {rates.pauses.share:.0%} of the time"
            first.set_xlim(0, 1.5 * rates.active.values[-1])
            first.legend(title=share, alignment="left")
        what = "Arrivals" if rates.active is None else "Arrivals between pauses"
        title = _title(what, rates.active or rates.arrivals, name)
        first.set(xlabel=f"gap between arrivals, {name}s", ylabel="share of gaps that are longer", title=title)
        if rates.durations is not None:
            _panel(second, rates.durations, "durations")
            title, longer = _title("Completions", rates.durations, name), "share of durations that are longer"
            second.set(xlabel=f"time from assignment to label, {name}s", ylabel=longer, title=title)
    return figure


def survival(fit: ExponentialFit) -> tuple[Floats, Floats]:
    """Times and the share of times that are longer, at MOST_POINTS of them at most, the longest left out: log 0."""
    n = len(fit)
    # evenly in the logarithm of the share, so that the tail has its points
    rank = np.unique(n - np.rint(np.geomspace(1, n, min(n, MOST_POINTS))).astype(np.int64))
    x = fit.values[rank]
    above = n - np.searchsorted(fit.values, x, side="right")
    kept = above > 0
    return np.append(0.0, x[kept]), np.append(1.0, above[kept] / n)


def _panel(axes: Axes, fit: ExponentialFit, what: str) -> None:
    at, above = survival(fit)
    axes.step(at, above, where="post", color=BLUE, label=f"{len(fit):,} {what}", zorder=3)
    line = np.array([0.0, float(at[-1])])
    axes.plot(line, np.exp(-fit.rate * line), color=RED, linestyle="--", label="fitted exponential", zorder=4)
    axes.set(yscale="log", ylim=(0.5 / len(fit), 1.5), xlim=(0, None))
    axes.legend()


def _title(what: str, fit: ExponentialFit, name: str) -> str:
    return f"{what}: {fit.rate:.3g} per {name}, cv {fit.cv:.2f}, p {shown_p(fit.p_value)}"
