"""The figures of the studies, drawn from their rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from nextlabel.experiments.study import Row
from nextlabel.reporting.style import BLUE, GREY, INK, RED, drawing, in_order, legend_beside, look

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def pick(rows: Sequence[Row], **wanted: Any) -> list[Row]:
    return [row for row in rows if all(row[key] == value for key, value in wanted.items())]


def values_of(rows: Sequence[Row], key: str) -> list[Any]:
    """Distinct values in the order of their first row."""
    return list(dict.fromkeys(row[key] for row in rows))


def draw_line(axes: Axes, rows: Sequence[Row], x: str, y: str, half: str, shift: float = 1.0, **more: Any) -> None:
    """A policy's curve with its 95% intervals."""
    axes.errorbar(
        [row[x] * shift for row in rows], [row[y] for row in rows], yerr=[row[half] or 0.0 for row in rows],
        capsize=2, elinewidth=1, **more,
    )  # fmt: skip


def fig1(rows: list[Row]) -> Figure:
    """Value per task against K under both stop rules, and the gap to the bound."""
    with drawing() as plt:
        figure, panels = plt.subplots(1, 3, figsize=(13.5, 4.8), layout="constrained")
        figure.get_layout_engine().set(w_pad=0.12)
        sizes = values_of(rows, "tasks")
        bound = rows[0]["bound"]
        for axes, stop in zip(panels[:2], ("discard", "wait"), strict=True):
            some = pick(rows, stop=stop)
            shown = [n for n in in_order(values_of(some, "policy")) if n != "optimum" and _near(pick(some, policy=n))]
            for k, name in enumerate(shown):
                shift = 1.06 ** (k - len(shown) / 2)
                draw_line(axes, pick(some, policy=name), "tasks", "mean", "half_width", shift, **look(name))
            for row in pick(some, policy="optimum"):
                axes.plot(row["tasks"], row["mean"], markersize=13, **look("optimum"))
            axes.axhline(bound, color=INK, linewidth=1)
            axes.text(sizes[0] * 0.8, bound + 0.0003, "upper bound", weight="bold")
            axes.set(xscale="log", xlabel="tasks K", ylabel="tasks right, per task", ylim=(0.7375, 0.7615))
            axes.set_xticks(sizes, [f"{K:,}" for K in sizes])
        _paper_points(panels[0], rows)
        panels[0].set_title("Stop at the last arrival (as published)")
        panels[1].set_title("Labels in flight are awaited")
        _gaps(panels[2], pick(rows, stop="wait"))
        panels[2].set_xticks(sizes, [f"{K:,}" for K in sizes])
        legend_beside(figure, panels)
        return finish(figure)


def _near(rows: Sequence[Row]) -> bool:
    return bool(max(row["mean"] for row in rows) > 0.7375)


def _paper_points(axes: Axes, rows: Sequence[Row]) -> None:
    for name, colour, side in (("index", BLUE, 1.32), ("okg", RED, 1.32)):
        some = [row for row in rows if row["policy"] == name and row["paper"] is not None]
        axes.errorbar(
            [row["tasks"] * side for row in some], [row["paper"] for row in some],
            yerr=[row["paper_half_width"] or 0.0 for row in some], color=colour, linestyle="none", marker="o",
            markerfacecolor="white", markersize=7, capsize=2, zorder=6,
        )  # fmt: skip
    first = next(row for row in rows if row["policy"] == "okg" and row["paper"] is not None)
    axes.annotate(
        "hollow: as plotted\nin the paper", (1.4 * first["tasks"], first["paper"]),
        xytext=(2.2 * first["tasks"], first["paper"] - 0.002),
        arrowprops={"arrowstyle": "-", "color": GREY}, va="center",
    )  # fmt: skip


def _gaps(axes: Axes, rows: Sequence[Row]) -> None:
    for name in in_order(values_of(rows, "policy")):
        draw_line(axes, pick(rows, policy=name), "tasks", "gap_percent", "gap_half_width", **look(name))
    axes.set(xscale="log", yscale="log", xlabel="tasks K", ylabel="gap to the bound, %")
    axes.set_title("Gap to the bound (awaited)")


def fig2(rows: list[Row]) -> Figure:
    """Accuracy against gold by labels a task: RTE by the number of tasks, TEMP, the order of labels, labels saved."""
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
    axes.set(xlabel="labels a task U/K", ylabel="accuracy against gold")
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
    axes.set(xlabel="labels a task U/K", ylabel="accuracy against gold")
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
    axes.set(xlabel="labels a task U/K", ylabel="labels saved at equal accuracy, %")
    axes.set_title(f"{title}, threshold {rows[0]['threshold']:.2g}: labels saved against uniform")


def delay(rows: list[Row]) -> Figure:
    """Gap to the per-arrival bound against the labels in flight a task."""
    with drawing() as plt:
        sizes = values_of(rows, "tasks")
        width = 4.0 + 3.6 * len(sizes)
        figure, panels = plt.subplots(
            1, len(sizes), figsize=(width, 5.2), layout="constrained", squeeze=False, sharey=True
        )
        for axes, K in zip(panels[0], sizes, strict=True):
            some = pick(rows, tasks=K)
            for name in in_order(values_of(some, "policy")):
                one = pick(some, policy=name)
                draw_line(axes, one, "in_flight_per_task", "gap_per_arrival_percent", "gap_half_width", **look(name))
            loads = values_of(some, "in_flight_per_task")
            axes.set(xscale="log", yscale="log", xlabel="labels in flight per task, r/(μK)")
            axes.set_xticks(loads, [f"{load:g}\nr/μ = {K * load:g}" for load in loads])
            axes.set_xticks([], minor=True)
            axes.set_title(f"K = {K:,}, U = {some[0]['budget']:,}")
        panels[0, 0].set_ylabel("gap to the per-arrival bound, %")
        legend_beside(figure, panels[0])
        return finish(figure)


def exact(rows: list[Row]) -> Figure:
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


def growth(rows: list[Row]) -> Figure:
    """Total gap against K, one panel a ratio of labels to tasks."""
    with drawing() as plt:
        ratios = values_of(rows, "ratio")
        lines = -(-len(ratios) // 2)
        figure, panels = plt.subplots(
            lines, 2, figsize=(10.5, 0.4 + 3.6 * lines), layout="constrained", sharex=True, sharey=True, squeeze=False
        )
        for axes, ratio in zip(panels.flat, ratios, strict=True):
            some = pick(rows, ratio=ratio)
            for name in in_order(values_of(some, "policy")):
                draw_line(axes, pick(some, policy=name), "tasks", "total_gap", "half_width", **look(name))
            sizes = values_of(some, "tasks")
            axes.set(xscale="log", yscale="log")
            axes.set_xticks(sizes, [str(K) for K in sizes])
            axes.set_xticks([], minor=True)
            axes.set_title(f"U/K = {ratio}")
        for axes in panels[-1]:
            axes.set_xlabel("tasks K")
        for axes in panels[:, 0]:
            axes.set_ylabel("total gap to the bound, tasks")
        legend_beside(figure, panels.flat)
        return finish(figure)


def finish(figure: Any) -> Figure:
    """Detach the figure from pyplot, so that it is freed with its last user; lay it out in this style first."""
    import matplotlib.pyplot as plt

    figure.canvas.draw()
    plt.close(figure)
    out: Figure = figure
    return out


__all__ = ["delay", "exact", "fig1", "fig2", "growth"]
