"""What the supply of each type of workers is worth in a plan, as rows and in words."""

from __future__ import annotations

import numpy as np

from nextlabel.planning.result import Plan
from nextlabel.planning.tables import MORE
from nextlabel.problem.tables import answers_text
from nextlabel.reporting.artifacts import Row

#: A supply whose price is below this is not short.
NOT_SHORT = 1e-7


def supply_rows(plan: Plan) -> list[Row]:
    """One row for each type of workers, at the curve's last budget."""
    if plan.supply_prices is None:
        return []
    horizon = plan.problem.horizon
    return [
        {
            "type": m + 1,
            "workers": worker.count,
            "answers": answers_text(worker),
            "supply": None if np.isinf(worker.labels(horizon)) else worker.labels(horizon),
            "supply_price": float(plan.supply_prices[-1, m]),
        }
        for m, worker in enumerate(plan.problem.workers)
    ]


def supply_sentences(plan: Plan) -> list[str]:
    """Which supply is short at the curve's last budget, and what more of it would add to the bound."""
    rows = supply_rows(plan)
    if not rows:
        return []
    gain = "tasks right" if plan.problem.is_accuracy else "in value"
    short = [row for row in rows if row["supply_price"] > NOT_SHORT]
    if not short:
        return [f"With {plan.budgets[-1]:,} labels no type of workers is in short supply."]
    parts = [f"type {row['type']} ({row['answers']}) up to {MORE * row['supply_price']:.2f} {gain}" for row in short]
    return [
        f"With {plan.budgets[-1]:,} labels in all, {MORE} more in the supply of a type would add: {'; '.join(parts)}"
        + ("." if len(short) == len(rows) else "; the others nothing.")
    ]


def supply_table(plan: Plan) -> tuple[list[str], list[list[str]]] | None:
    """The rows as a table of words; None where nothing is said about workers."""
    rows = supply_rows(plan)
    if not rows:
        return None
    return ["type", "workers", "answers", "supply", f"{MORE} more are worth"], [
        [
            str(row["type"]), f"{row['workers']:,}", row["answers"],
            "as many as wanted" if row["supply"] is None else f"{row['supply']:,.0f}",
            f"{MORE * row['supply_price']:.2f}",
        ]
        for row in rows
    ]  # fmt: skip
