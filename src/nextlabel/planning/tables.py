"""A plan as rows and tables."""

from __future__ import annotations

from collections.abc import Sequence

from nextlabel.planning.result import Plan
from nextlabel.reporting.artifacts import Row, text_table

#: The price is told as what so many labels buy.
MORE = 100
#: Rows of the curve that are printed.
PRINTED = 12

Table = tuple[Sequence[str], Sequence[Sequence[str]]]


def curve_rows(plan: Plan) -> list[Row]:
    """One row per budget."""
    K = plan.problem.tasks
    return [
        {
            "budget": int(U),
            "labels_per_task": float(U) / K,
            plan.policy: float(plan.index[k]),
            "half_width": float(plan.half_width[k]),
            "simulated": float(plan.simulated[k]),
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


def printed_curve(plan: Plan) -> Table:
    """The curve at about a dozen budgets."""
    rows = curve_rows(plan)
    stride = max(1, -(-len(rows) // PRINTED))
    header = ["labels", "per task", f"{plan.policy} policy", "bound", f"next {MORE} labels buy"]
    return header, [
        [
            f"{row['budget']:,}", f"{row['labels_per_task']:.2f}", f"{row[plan.policy]:.4f} ±{row['half_width']:.4f}",
            f"{row['bound']:.4f}", _decimals(row[f"next_{MORE}_labels"]),
        ]
        for k, row in enumerate(rows)
        if k % stride == 0 or k == len(rows) - 1
    ]  # fmt: skip


def whole_curve(plan: Plan) -> Table:
    """The curve at every budget."""
    header = ["labels", "per task", f"{plan.policy} policy", "±", "bound", f"next {MORE} labels buy"]
    return header, [
        [
            f"{row['budget']:,}", f"{row['labels_per_task']:.2f}", f"{row[plan.policy]:.4f}",
            f"{row['half_width']:.4f}", f"{row['bound']:.4f}", _decimals(row[f"next_{MORE}_labels"]),
        ]
        for row in curve_rows(plan)
    ]  # fmt: skip


def overlap_table(plan: Plan) -> Table:
    """Fixed overlaps, and what the index policy needs for the same value."""
    return ["labels per task", "labels", "value", f"{plan.policy} policy needs", "saved"], [
        [
            str(row["overlap"]), f"{row['labels']:,}", f"{row['value']:.4f}",
            "" if row["index_budget"] is None else f"{row['index_budget']:,}",
            "" if row["saved_percent"] is None else f"{row['saved_percent']:.0f}%",
        ]
        for row in overlap_rows(plan)
    ]  # fmt: skip


def plan_text(plan: Plan) -> str:
    """The plan in plain text: the curve, and the answers in words."""
    from nextlabel.planning.sentences import sentences

    title = f"Plan for {plan.problem.tasks:,} tasks, up to {plan.budgets[-1]:,} labels"
    return text_table(title, *printed_curve(plan), *sentences(plan))


def _decimals(number: float | None) -> str:
    """Two decimals, nothing where there is no number."""
    return "" if number is None else f"{number:.2f}"
