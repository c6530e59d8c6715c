"""Draw budget.png and horizon.png: ``python docs/figures/make_figures.py`` (needs the extra 'figures').

The other figures of the documents are made by commands: see docs/results.md.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import nextlabel as nl

HERE = Path(__file__).resolve().parent
INK, BLUE, ORANGE, GREY = "#1f2933", "#1f5fa8", "#d9822b", "#9aa5b1"

plt.rcParams.update(
    {
        "font.size": 10,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.edgecolor": GREY,
        "axes.labelcolor": INK,
        "axes.titlelocation": "left",
        "axes.titlesize": 11,
        "axes.titleweight": "bold",
        "xtick.color": INK,
        "ytick.color": INK,
        "text.color": INK,
        "axes.grid": True,
        "grid.color": "#e4e7eb",
        "grid.linewidth": 0.8,
        "axes.axisbelow": True,
        "lines.linewidth": 2.0,
    }
)


def budget() -> None:
    """What a budget buys at most, and what the next label is worth."""
    K = 1000
    ratio = np.unique(np.concatenate([np.arange(0.1, 3.0, 0.1), np.arange(3.0, 10.1, 0.25)]))
    kinds = (((1, 1), "nothing known: Beta(1, 1)", BLUE), ((4, 2), "mostly yes: Beta(4, 2)", ORANGE))
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.4, 3.3), layout="constrained")
    for prior, name, colour in kinds:
        found = [nl.upper_bound(nl.Problem.identical(K, round(K * x), prior)) for x in ratio]
        nothing = nl.upper_bound(nl.Problem.identical(K, 0, prior)).per_task
        left.plot([0, *ratio], [nothing, *(b.per_task for b in found)], color=colour)
        right.step(ratio, [b.price for b in found], color=colour, where="mid", label=name)
    left.set(xlabel="labels bought per task", ylabel="tasks right, per task", xlim=(0, 10), ylim=(0.49, 1.0))
    left.set_title("What a budget buys at most")
    left.text(0.35, 0.905, "Beta(4, 2)", color=ORANGE, weight="bold")
    left.text(1.5, 0.715, "Beta(1, 1)", color=BLUE, weight="bold")
    right.set(xlabel="labels bought per task", yscale="log", xlim=(0, 10), ylabel="price of a label")
    right.set_title("What one more label is worth")
    right.legend(frameon=False)
    save(figure, "budget.png")


def horizon() -> None:
    """A finite horizon: charging only workers who arrive, or all of them, beside the optimum."""
    times = np.concatenate([np.arange(2.5, 30, 2.5), np.arange(30, 241, 10)])
    problems = [nl.Problem.identical(tasks=10, budget=12, horizon=float(T)) for T in times]
    paper = [nl.upper_bound(p, charge="all").per_task for p in problems]
    ours = [nl.upper_bound(p).per_task for p in problems]
    exact = [nl.exact_value(p).per_task for p in problems]
    figure, axes = plt.subplots(figsize=(6.6, 3.5), layout="constrained")
    axes.fill_between(times, ours, paper, color=ORANGE, alpha=0.12, linewidth=0)
    axes.plot(times, paper, color=ORANGE)
    axes.plot(times, ours, color=BLUE)
    axes.plot(times, exact, color=INK, linestyle=(0, (4, 2)), linewidth=1.6)
    axes.text(44, 0.768, "all 12 workers charged (the paper's form)", color=ORANGE, weight="bold")
    axes.text(93, 0.672, "only workers who arrive are charged", color=BLUE, weight="bold")
    axes.text(93, 0.640, "exact optimum (dashed)", color=INK, weight="bold")
    axes.set(xlabel="horizon T", ylabel="tasks right, per task", xlim=(0, 240), ylim=(0.49, 0.79))
    axes.set_title("Upper bounds for a finite horizon: 10 tasks, 12 labels, r = 0.1")
    save(figure, "horizon.png")


def save(figure: plt.Figure, name: str) -> None:
    """Write one PNG, small enough to be kept in the repository."""
    figure.savefig(HERE / name, dpi=130, metadata={"Software": None})
    plt.close(figure)


if __name__ == "__main__":
    budget()
    horizon()
