"""``nextlabel rates``: how often workers arrive and how fast they answer, from the times of recorded labels."""

from __future__ import annotations

from typing import Literal

import typer

from nextlabel.cli import options as opt
from nextlabel.cli.database import TimedLabelFlags
from nextlabel.cli.output import report_reading, working
from nextlabel.reporting.report import Report


@opt.verb(out=True)
def rates(
    context: typer.Context,
    columns: TimedLabelFlags,
    labels: str = opt.LABELS,
    unit: Literal["s", "min", "hour", "day"] = opt.flag(None, "The unit of time of the rates.", "hour"),
    seed: int = opt.SEED,
) -> Report:
    """Estimate the arrival and completion rates, and how well the exponential assumption fits."""
    with working(f"Reading {labels}"):
        from nextlabel.model.rates import estimate_rates

        table = columns.read(labels, context)
    read = report_reading(table.report)
    with working("Estimating rates"):
        found = estimate_rates(table, unit=unit, seed=seed)
    from nextlabel.reporting.figures import rates_figure

    flags = f"--arrival-rate {found.arrival_rate:.4g}"
    if found.completion_rate is not None:
        flags += f" --completion-rate {found.completion_rate:.4g}"
    lines = [*found.sentences(), f"For plan, bound and simulate, time in {unit}: {flags}"]
    fields = {**found.as_dict(), "read": read}
    return Report("Rates", [], [], closing=lines, fields=fields, files=lambda: {"rates.png": rates_figure(found)})
