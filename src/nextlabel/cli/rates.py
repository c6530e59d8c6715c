"""``nextlabel rates``: how often workers arrive and how fast they answer, from the times of recorded labels."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from nextlabel.cli import options as opt
from nextlabel.cli.database import label_source
from nextlabel.cli.output import check_outputs, print_json, say_read, working, write_folder


def rates(
    context: typer.Context,
    labels: opt.Labels,
    unit: Annotated[Literal["s", "min", "hour", "day"], typer.Option(help="The unit of time of the rates.")] = "hour",
    assigned_column: opt.AssignedColumn = "assigned_at",
    submitted_column: opt.SubmittedColumn = "submitted_at",
    task_column: opt.TaskColumn = "task",
    worker_column: opt.WorkerColumn = "worker",
    label_column: opt.LabelColumn = "label",
    positive: opt.Positive = None,
    db: opt.Db = opt.DB,
    seed: opt.Seed = 0,
    out: opt.Out = None,
    as_json: opt.Json = False,
) -> None:
    """Estimate the arrival and completion rates, and how well the exponential assumption fits."""
    check_outputs(out)
    with working(f"Reading {labels}"):
        from nextlabel.files.labels import read_labels
        from nextlabel.learn.rates import estimate_rates

        source = label_source(context, labels, db)
        table = read_labels(
            source, task=task_column, worker=worker_column, label=label_column, positive=positive,
            assigned_at=assigned_column, submitted_at=submitted_column,
        )  # fmt: skip
    read = say_read(table.report)
    with working("Estimating rates"):
        found = estimate_rates(table, unit=unit, seed=seed)
    if out is not None:
        from nextlabel.reporting.figures import rates_figure

        write_folder(out, {"rates.png": rates_figure(found)})
    if as_json:
        print_json({**found.as_dict(), "read": read})
        return
    for sentence in found.sentences():
        typer.echo(sentence)
    flags = f"--arrival-rate {found.arrival_rate:.4g}"
    if found.completion_rate is not None:
        flags += f" --completion-rate {found.completion_rate:.4g}"
    typer.echo(f"For plan, bound and simulate, time in {unit}: {flags}")
