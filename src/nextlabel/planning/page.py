"""The page of a plan."""

from __future__ import annotations

from collections.abc import Sequence

from nextlabel.planning.figure import draw_prices, draw_values, one_panel
from nextlabel.planning.result import Plan
from nextlabel.planning.sentences import assumptions, sentences, target_in_words
from nextlabel.planning.supply import supply_table
from nextlabel.planning.tables import overlap_table, whole_curve
from nextlabel.reporting.html import embedded, render_page


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
