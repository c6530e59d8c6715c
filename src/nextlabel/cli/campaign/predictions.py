"""``nextlabel campaign predictions``: what a model predicts, as labels of one more worker."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from nextlabel.cli.campaign.common import Id, number_of, opened_tasks, service_at
from nextlabel.cli.options import DB, Db, Json, text
from nextlabel.cli.output import print_json, say, say_read, working
from nextlabel.prose import counted

_FILE = typer.Argument(
    metavar="PREDICTIONS",
    help="A file with the columns task and label, or task and probabilities: CSV, TSV, JSON lines, JSON or Parquet.",
)


def predictions(
    id: Id,
    file: Annotated[str, _FILE],
    model: Annotated[str, text("--model", "NAME", "The model's name: its labels are those of worker model:NAME.")],
    cost: Annotated[str, text("--cost", "C", "Labels of the budget that one prediction costs. Default: 0.")] = "0",
    task_column: Annotated[str | None, text("--task-column", "NAME", "The column with the tasks.")] = None,
    db: Db = DB,
    as_json: Json = False,
) -> None:
    """Add what a model predicts: learnt like any worker, so that people go where it is not enough."""
    with (
        opened_tasks(file, None, None) as rows,
        service_at(db) as service,
        working("Adding predictions") as progress,
    ):
        added = service.add_predictions(id, model, rows.rows(), number_of("--cost", cost), task_column, progress)
    read = say_read(rows.report)
    if as_json:
        print_json({**asdict(added), "read": read})
        return
    charged = f" They cost {counted(added.charged, 'label')} of the budget." if added.charged else ""
    say(f"{counted(added.added, 'prediction')} of model {added.model} added, {added.known:,} known before.{charged}")
