"""Small problems: what each policy loses against the optimum."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nextlabel.experiments.figures.lines import pick, values_of
from nextlabel.reporting.style import drawing, finish, in_order, legend_beside, look
from nextlabel.reporting.tables import Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(rows: list[Row]) -> Figure:
    """Loss of every policy against the optimum of each small problem."""
    with drawing() as plt:
        problems = list(dict.fromkeys((row["tasks"], row["budget"], row["arrival_rate"]) for row in rows))
        policies = in_order(values_of(rows, "policy"))
        figure, axes = plt.subplots(figsize=(10, 1.6 + 0.42 * len(problems)), layout="constrained")
        for k, name in enumerate(policies):
            some = pick(rows, policy=name)
            y = [
                -problems.index((r["tasks"], r["budget"], r["arrival_rate"])) + 0.38 - 0.76 * k / len(policies)
                for r in some
            ]
            loss = [max(row["loss_percent"], 0.0) for row in some]
            error = [100.0 * (row["half_width"] or 0.0) / row["optimum"] for row in some]
            style = {**look(name), "linestyle": "none"}
            axes.errorbar(loss, y, xerr=error, elinewidth=1, **style)
        for k in range(len(problems) - 1):
            axes.axhline(-k - 0.5, color="#c3cad2", linewidth=0.8)
        axes.set_yticks([-k for k in range(len(problems))], [f"K={K}, U={U}, r/μ={r / 0.4:g}" for K, U, r in problems])
        axes.set_xscale("symlog", linthresh=0.01, linscale=0.4)
        axes.set_xlim(left=-0.0005)
        axes.grid(axis="y", visible=False)
        axes.set_xlabel("loss against the exact optimum, % (linear below 0.01)")
        axes.set_title("Small problems: what each policy loses")
        legend_beside(figure, [axes])
        return finish(figure)
