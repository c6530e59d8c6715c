"""The figures of a plan, what a budget buys and what the next labels buy; and its page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from nextlabel.planning.report import (
    MORE,
    assumptions,
    overlap_table,
    sentences,
    supply_table,
    target_in_words,
    whole_curve,
)
from nextlabel.planning.result import Plan
from nextlabel.reporting.html import embedded, render_page
from nextlabel.reporting.style import BLUE, GREY, INK, RED, drawing, finish

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def plan_figure(plan: Plan) -> Figure:
    """Value against budget, and what the next labels buy."""
    with drawing() as plt:
        figure, (left, right) = plt.subplots(1, 2, figsize=(11.0, 4.4), layout="constrained")
        draw_values(left, plan)
        draw_prices(right, plan)
        return finish(figure)


def one_panel(plan: Plan, draw: Callable[[Axes, Plan], None]) -> Figure:
    """One of the two panels on its own, wide enough to be read on a phone."""
    with drawing() as plt:
        figure, axes = plt.subplots(figsize=(5.4, 4.2), layout="constrained")
        draw(axes, plan)
        return finish(figure)


def draw_values(axes: Axes, plan: Plan) -> None:
    """Value of the index policy, of fixed overlaps, and the bound, against the budget."""
    K = plan.problem.tasks
    low, high = plan.index - plan.half_width, np.minimum(plan.index + plan.half_width, plan.bound)
    axes.plot(plan.budgets, plan.bound, color=INK, linewidth=1, label=f"bound, if {plan.model}")
    axes.fill_between(plan.budgets, low, high, color=BLUE, alpha=0.25, linewidth=0)
    axes.plot(plan.budgets, plan.index, color=BLUE, label=f"{plan.policy} policy")
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
    axes.set(xlabel="labels", ylabel="share of tasks right" if plan.problem.is_accuracy else "value per task")
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:,.0f}")
    axes.legend(loc="lower right")
    axes.set_title("What a budget buys")


def draw_prices(axes: Axes, plan: Plan) -> None:
    """What the next labels buy, by the index policy and by the bound's price."""
    gain = "tasks" if plan.problem.is_accuracy else "value"
    buys = np.diff(plan.index) * plan.problem.tasks / np.diff(plan.budgets) * MORE
    axes.step(plan.budgets, plan.price * MORE, where="post", color=INK, linewidth=1, label="price of the bound")
    axes.stairs(buys, plan.budgets, color=BLUE, label=f"{plan.policy} policy, simulated")
    if plan.money is not None:
        worth = plan.money.label_cost / plan.money.value * MORE
        axes.axhline(worth, color=RED, linewidth=0.9, linestyle="--", label=f"what they cost, in {gain}")
    does = "get right" if plan.problem.is_accuracy else "add"
    axes.set(xlabel="labels bought before", ylabel=f"{gain} that the next {MORE} labels {does}", ylim=(0, None))
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:,.0f}")
    axes.legend()
    axes.set_title("What the next labels buy")


def plan_page(plan: Plan, command: str, learnt: Sequence[str] = (), warnings: Sequence[str] = ()) -> str:
    """The page to show around; ``learnt`` says where the prior is from, ``warnings`` come first."""
    return render_page(
        "plan",
        title="Labelling plan",
        lead=f"{plan.problem.tasks:,} tasks. What each budget buys, and where to stop.",
        command=command,
        warnings=warnings,
        boxes=_boxes(plan),
        sentences=sentences(plan),
        value_figure=embedded(one_panel(plan, draw_values)),
        price_figure=embedded(one_panel(plan, draw_prices)),
        curve=whole_curve(plan),
        overlaps=overlap_table(plan) if len(plan.overlap) else None,
        supply=supply_table(plan),
        assumptions=[*learnt, *assumptions(plan)],
    )


def _boxes(plan: Plan) -> list[tuple[str, str]]:
    """Numbers to look at first, each with what it is."""
    boxes = []
    if plan.needed is not None:
        boxes.append((f"{plan.needed:,}", f"labels for {target_in_words(plan)}, {plan.policy} policy"))
    if plan.needed_by_any is not None:
        boxes.append((f"{plan.needed_by_any:,}", f"labels that any policy needs for it, at least, if {plan.model}"))
    if plan.money is not None:
        stop = "labels, then stop: the next are not worth their cost"
        inside = plan.money.best_budget < plan.budgets[-1]
        boxes.append((f"{plan.money.best_budget:,}", stop if inside else "labels, at least, are worth their cost"))
    if plan.problem.finite:
        last = plan.index[-1]
        boxes.append(
            (
                f"{last:.1%}" if plan.problem.is_accuracy else f"{last:.4f}",
                f"reached in time by the {plan.policy} policy",
            )
        )
    return boxes
