"""``nextlabel rates``: how often workers come and how fast they are, from the times of recorded labels."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from nextlabel.cli.flag_values import parse_whole
from nextlabel.cli.output import JsonFlag, check_outputs, print_json, say, say_read, working


def rates(
    labels: Annotated[str, typer.Argument(metavar="LABELS", help="CSV, Parquet or Label Studio JSON with times.")],
    unit: Annotated[Literal["s", "min", "hour", "day"], typer.Option(help="The unit of time of the rates.")] = "hour",
    assigned_column: Annotated[str, typer.Option(metavar="NAME", help="When a task was given.")] = "assigned_at",
    submitted_column: Annotated[str, typer.Option(metavar="NAME", help="When its label came in.")] = "submitted_at",
    task_column: Annotated[str, typer.Option(metavar="NAME", help="The column of the tasks.")] = "task",
    worker_column: Annotated[str, typer.Option(metavar="NAME", help="The column of the workers.")] = "worker",
    label_column: Annotated[str, typer.Option(metavar="NAME", help="The column of the labels.")] = "label",
    positive: Annotated[
        str | None, typer.Option(metavar="LABEL", help="The label that counts as 1.", show_default=False)
    ] = None,
    seed: Annotated[str, typer.Option(metavar="S", help="The same seed gives the same digits.")] = "0",
    out: Annotated[str | None, typer.Option(metavar="DIR", help="Write rates.png there.", show_default=False)] = None,
    as_json: JsonFlag = False,
) -> None:
    """Estimate arrival and completion rate, and say how well the exponential assumption fits."""
    start = parse_whole("--seed", seed, 0, "Give a whole number from 0, e.g. --seed 0.")
    check_outputs(out)
    with working(f"Reading {labels}"):
        from nextlabel.files.labels import read_labels
        from nextlabel.learn.rates import estimate_rates

        table = read_labels(
            labels, task=task_column, worker=worker_column, label=label_column, positive=positive,
            assigned_at=assigned_column, submitted_at=submitted_column,
        )  # fmt: skip
    read = say_read(table.report)
    with working("Estimating rates"):
        found = estimate_rates(table, unit=unit, seed=start)
    if out is not None:
        from nextlabel.reporting.artifacts import write_files
        from nextlabel.reporting.rates_figure import rates_figure

        write_files(Path(out), {"rates.png": rates_figure(found)})
        say(f"Wrote rates.png to {out}.")
    if as_json:
        print_json({**found.as_dict(), "read": read})
        return
    for sentence in found.sentences():
        typer.echo(sentence)
    flags = f"--arrival-rate {found.arrival_rate:.4g}"
    if found.completion_rate is not None:
        flags += f" --completion-rate {found.completion_rate:.4g}"
    typer.echo(f"For plan, bound and simulate, time in {unit}: {flags}")
