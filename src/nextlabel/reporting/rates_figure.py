"""The figure of recorded times: how many gaps and durations are longer than x, and the exponential's straight line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nextlabel.arrays import Floats
from nextlabel.learn.rates import NAMES, ExponentialFit, Rates, shown_p
from nextlabel.reporting.style import BLUE, GREY, RED, drawing, finish

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Points of a curve.
MOST_POINTS = 1000


def rates_figure(rates: Rates) -> Figure:
    """Gaps between arrivals on the left, durations on the right where they are known."""
    name = NAMES[rates.unit]
    with drawing() as plt:
        panels = 1 if rates.durations is None else 2
        figure, axes = plt.subplots(1, panels, figsize=(5.25 * panels, 4.2), layout="constrained", squeeze=False)
        _panel(axes[0, 0], rates.active or rates.arrivals, "gaps")
        if rates.active is not None:
            at, above = survival(rates.arrivals)
            axes[0, 0].step(at, above, where="post", color=GREY, label="with pauses", zorder=2)
            share = f"{rates.pauses.count:,} pauses hold {rates.pauses.share:.0%} of the time"
            axes[0, 0].set_xlim(0, 1.5 * rates.active.values[-1])
            axes[0, 0].legend(title=share, alignment="left")
        axes[0, 0].set(xlabel=f"gap between arrivals, {name}s", ylabel="share of gaps that are longer")
        what = "Arrivals" if rates.active is None else "Arrivals between pauses"
        axes[0, 0].set_title(_title(what, rates.active or rates.arrivals, name))
        if rates.durations is not None:
            _panel(axes[0, 1], rates.durations, "durations")
            axes[0, 1].set(
                xlabel=f"time from assignment to label, {name}s", ylabel="share of durations that are longer"
            )
            axes[0, 1].set_title(_title("Completions", rates.durations, name))
        return finish(figure)


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
    axes.set_yscale("log")
    axes.set_ylim(0.5 / len(fit), 1.5)
    axes.set_xlim(left=0)
    axes.legend()


def _title(what: str, fit: ExponentialFit, name: str) -> str:
    return f"{what}: {fit.rate:.3g} per {name}, cv {fit.cv:.2f}, p {shown_p(fit.p_value)}"
