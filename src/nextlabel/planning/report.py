"""A plan as rows, sentences, a figure and a page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from nextlabel.planning.plan import Plan
from nextlabel.reporting.html import HtmlPage
from nextlabel.reporting.style import BLUE, GREY, INK, RED, drawing, finish
from nextlabel.version import __version__

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Row = dict[str, Any]
#: The price is told as what so many labels buy.
MORE = 100


def curve_rows(plan: Plan) -> list[Row]:
    """One row a budget."""
    K = plan.problem.tasks
    return [
        {
            "budget": int(U),
            "labels_per_task": float(U) / K,
            "index": float(plan.index[k]),
            "half_width": float(plan.half_width[k]),
            "bound": float(plan.bound[k]),
            "price": float(plan.price[k]),
            f"next_{MORE}_labels": plan.next_labels(int(U), MORE),
            "labels_used": float(plan.labels_used[k]),
        }
        for k, U in enumerate(plan.budgets)
    ]


def overlap_rows(plan: Plan) -> list[Row]:
    """Fixed overlap, and the index's budget for the same value."""
    rows = []
    for m, value in zip(plan.overlaps, plan.overlap, strict=True):
        labels = m * plan.problem.tasks
        like = plan.budget_like(m)
        saved = None if like is None or like > labels else 100.0 * (1.0 - like / labels)
        rows.append(
            {"overlap": m, "labels": labels, "value": float(value), "index_budget": like, "saved_percent": saved}
        )
    return rows


def sentences(plan: Plan) -> list[str]:
    """The answers in words."""
    out = []
    if plan.target is not None:
        if plan.needed_by_any is None:
            out.append(f"No policy reaches {plan.target:g}, however many labels it buys{_in_time(plan)}.")
        elif plan.needed is None:
            out.append(f"The index policy does not reach {plan.target:g} with up to {plan.budgets[-1]:,} labels.")
            out.append(f"No policy needs fewer than {plan.needed_by_any:,}.")
        else:
            low, high = plan.needed_low, plan.needed_high
            spread = f" (95% interval {low:,} to {high:,})" if low is not None and high is not None else ""
            what = _what(plan)
            out.append(f"{what[:1].upper()}{what[1:]} takes {plan.needed:,} labels with the index policy{spread}.")
            out.append(f"No policy, however clever, gets there with fewer than {plan.needed_by_any:,}.")
    if plan.problem.finite:
        value, most = plan.index[-1], plan.bound[-1]
        reached = f"{value:.4f} of the tasks are right" if _accuracy(plan) else f"a task is worth {value:.4f}"
        out.append(
            f"By the deadline {plan.labels_used[-1]:,.0f} labels are in or out, and {reached} in expectation; no "
            f"policy has more than {most:.4f}."
        )
    for row in overlap_rows(plan):
        if row["saved_percent"] is not None and row["saved_percent"] > 0 and row["overlap"] > 1:
            out.append(
                f"As good as {row['overlap']} labels for every task ({row['value']:.4f}) with "
                f"{row['saved_percent']:.0f}% fewer labels: {row['index_budget']:,} instead of {row['labels']:,}."
            )
    if plan.money is not None:
        m = plan.money
        stop = "stop at about" if m.best_budget < plan.budgets[-1] else "do not stop before"
        out.append(
            f"At {m.label_cost:g} a label and {m.value:g} a {_unit(plan)}: {stop} "
            f"{m.best_budget:,} labels, which nets {m.best_net:,.2f}; the policy that turns workers away when no "
            f"task is worth it buys "
            f"{m.stopping_labels:,.0f} and nets {m.stopping_net:,.2f} ± {m.stopping_half_width:,.2f}. No policy with "
            f"up to {plan.budgets[-1]:,} labels nets more than {m.most_net:,.2f}."
        )
    return out


def shown(number: float | None) -> str:
    """Two decimals, nothing where there is no number."""
    return "" if number is None else f"{number:.2f}"


def _what(plan: Plan) -> str:
    """The target in words."""
    return f"{plan.target:g} of the tasks right" if _accuracy(plan) else f"a value of {plan.target:g} a task"


def _unit(plan: Plan) -> str:
    """What earns money."""
    return "right task" if _accuracy(plan) else "unit of value"


def _gain(plan: Plan) -> str:
    """What labels buy."""
    return "tasks" if _accuracy(plan) else "value"


def _in_time(plan: Plan) -> str:
    return " in that time" if plan.problem.finite else ""


def assumptions(plan: Plan) -> list[str]:
    """What the numbers rest on."""
    problem = plan.problem
    priors = list(dict.fromkeys(c.prior.describe() for c in problem.classes))
    out = [
        f"{problem.tasks:,} tasks; prior {priors[0]}"
        + (f" and {len(priors) - 1:,} more" if len(priors) > 1 else "")
        + ".",
        "Workers of one task answer independently given the task, and each answer costs one label.",
        "The index policy decides who labels what; labels that come late count when they come"
        + (", if before the deadline." if problem.finite else "."),
        f"Simulated {plan.replications:,} times from seed {plan.seed}; intervals are 95%. The upper bound is proved, "
        "not simulated.",
    ]
    if problem.finite:
        out.append("The index is that of a campaign without a deadline, so a policy that knows it may do better.")
    return out


def plan_figure(plan: Plan) -> Figure:
    """Value against budget, and what the next labels buy."""
    with drawing() as plt:
        figure, (left, right) = plt.subplots(1, 2, figsize=(11.0, 4.4), layout="constrained")
        _draw_values(left, plan)
        _draw_prices(right, plan)
        return finish(figure)


def one_panel(plan: Plan, draw: Callable[[Axes, Plan], None]) -> Figure:
    """One of the two panels on its own, wide enough to be read on a phone."""
    with drawing() as plt:
        figure, axes = plt.subplots(figsize=(5.4, 4.2), layout="constrained")
        draw(axes, plan)
        return finish(figure)


def _draw_values(axes: Axes, plan: Plan) -> None:
    K = plan.problem.tasks
    low, high = plan.index - plan.half_width, plan.index + plan.half_width
    axes.plot(plan.budgets, plan.bound, color=INK, linewidth=1, label="no policy has more")
    axes.fill_between(plan.budgets, low, high, color=BLUE, alpha=0.25, linewidth=0)
    axes.plot(plan.budgets, plan.index, color=BLUE, label="index policy")
    shown = [(m, v) for m, v in zip(plan.overlaps, plan.overlap, strict=True) if m * K <= plan.budgets[-1]]
    axes.plot([m * K for m, _ in shown], [v for _, v in shown], "s", color=RED, label="the same number for every task")
    for m, v in shown:
        axes.annotate(f"{m}", (m * K, v), textcoords="offset points", xytext=(5, -11), color=RED)
    if plan.target is not None:
        axes.axhline(plan.target, color=GREY, linewidth=0.8, linestyle="--")
    if plan.target is not None and plan.needed is not None:
        at = (plan.needed, plan.target)
        axes.plot(*at, "o", color=BLUE, markersize=8)
        axes.annotate(f"{plan.needed:,}", at, textcoords="offset points", xytext=(6, -14), color=BLUE)
    axes.set(xlabel="labels", ylabel="share of tasks right" if _accuracy(plan) else "value per task")
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:,.0f}")
    axes.legend(loc="lower right")
    axes.set_title("What a budget buys")


def _draw_prices(axes: Axes, plan: Plan) -> None:
    buys = np.diff(plan.index) * plan.problem.tasks / np.diff(plan.budgets) * MORE
    axes.step(plan.budgets, plan.price * MORE, where="post", color=INK, linewidth=1, label="price of the bound")
    axes.stairs(buys, plan.budgets, color=BLUE, label="index policy, simulated")
    if plan.money is not None:
        worth = plan.money.label_cost / plan.money.value * MORE
        axes.axhline(worth, color=RED, linewidth=0.9, linestyle="--", label=f"what they cost, in {_gain(plan)}")
    does = "get right" if _accuracy(plan) else "add"
    axes.set(xlabel="labels bought before", ylabel=f"{_gain(plan)} that the next {MORE} labels {does}", ylim=(0, None))
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:,.0f}")
    axes.legend()
    axes.set_title("What the next labels buy")


def _accuracy(plan: Plan) -> bool:
    return plan.problem.is_accuracy


def plan_page(plan: Plan, command: str, learnt: Sequence[str] = ()) -> str:
    """The page for the manager; ``learnt`` says where the prior is from."""
    page = HtmlPage("Labelling plan", f"{plan.problem.tasks:,} tasks. What each budget buys, and where to stop.")
    boxes = []
    if plan.needed is not None:
        boxes.append((f"{plan.needed:,}", f"labels for {_what(plan)}"))
    if plan.needed_by_any is not None:
        boxes.append((f"{plan.needed_by_any:,}", "labels that any policy needs for it, at least"))
    if plan.money is not None:
        inside = plan.money.best_budget < plan.budgets[-1]
        words = (
            "labels, then stop: the next are not worth their cost"
            if inside
            else "labels, at least, are worth their cost"
        )
        boxes.append((f"{plan.money.best_budget:,}", words))
    if plan.problem.finite:
        boxes.append((f"{plan.index[-1]:.1%}" if _accuracy(plan) else f"{plan.index[-1]:.4f}", "reachable in time"))
    if boxes:
        page.answers(boxes)
    page.bullets(sentences(plan))
    page.figures(
        (one_panel(plan, _draw_values), "Value of each budget: the index policy with its 95% interval, and the bound."),
        (one_panel(plan, _draw_prices), "What the next labels buy along the curve."),
    )
    page.heading("The curve")
    page.table(
        ["labels", "per task", "index policy", "±", "no policy above", f"next {MORE} labels buy"],
        [
            [
                f"{row['budget']:,}", f"{row['labels_per_task']:.2f}", f"{row['index']:.4f}",
                f"{row['half_width']:.4f}", f"{row['bound']:.4f}", shown(row[f"next_{MORE}_labels"]),
            ]
            for row in curve_rows(plan)
        ],
    )  # fmt: skip
    page.heading("Against the same number of labels for every task")
    page.table(
        ["labels a task", "labels", "value", "index policy needs", "saved"],
        [
            [
                str(row["overlap"]), f"{row['labels']:,}", f"{row['value']:.4f}",
                "" if row["index_budget"] is None else f"{row['index_budget']:,}",
                "" if row["saved_percent"] is None else f"{row['saved_percent']:.0f}%",
            ]
            for row in overlap_rows(plan)
        ],
    )  # fmt: skip
    page.heading("What this rests on")
    page.bullets([*learnt, *assumptions(plan)])
    page.heading("How it was made")
    page.code(command)
    return page.render(f"nextlabel {__version__}")
