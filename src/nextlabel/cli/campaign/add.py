"""``nextlabel campaign add``: tasks, known answers and a model's predictions come into a campaign from files."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from nextlabel.cli.database import (
    TASKS_FILE,
    GoldColumn,
    Id,
    IdColumn,
    ScoreColumn,
    import_bar,
    number_of,
    opened_tasks,
    say_columns,
    service_at,
)
from nextlabel.cli.options import DB, Db, Json, LabelColumn, refuse_idle, text
from nextlabel.cli.output import answer, say_read, working
from nextlabel.errors import InputError
from nextlabel.prose import counted


def add(
    context: typer.Context,
    id: Id,
    tasks: Annotated[str | None, TASKS_FILE] = None,
    gold: Annotated[
        str | None, text("--gold", "FILE", "Known answers, task and label: their tasks become control questions.")
    ] = None,
    predictions: Annotated[
        str | None, text("--predictions", "FILE", "What a model predicts: task and label, or task and probabilities.")
    ] = None,
    model: Annotated[
        str | None, text("--model", "NAME", "With --predictions: its labels are those of worker model:NAME.")
    ] = None,
    cost: Annotated[str, text("--cost", "C", "Labels of the budget that one prediction costs. Default: 0.")] = "0",
    id_column: IdColumn = None,
    label_column: LabelColumn = "label",
    score_column: ScoreColumn = None,
    gold_column: GoldColumn = None,
    db: Db = DB,
    as_json: Json = False,
) -> None:
    """Add tasks, known answers or a model's predictions, all of a file or none of it.

    Control questions are given among the others and never shown as such. Their labels tell how good each worker is, and
    are not paid from the budget unless the campaign was created with --gold-in-budget; an answer is corrected by giving
    it again. A model is learnt like any worker, so that people go where it is not enough.
    """
    if sum(given is not None for given in (tasks, gold, predictions)) != 1:
        raise InputError("nothing says what to add.", "Give a file of TASKS, --gold FILE or --predictions FILE.")
    if tasks is None:
        refuse_idle(context, ["score_column", "gold_column"], "a file of TASKS")
    if gold is None:
        refuse_idle(context, ["label_column"], "--gold")
    if predictions is None:
        refuse_idle(context, ["model", "cost"], "--predictions")
    if tasks is not None:
        _add_tasks(id, tasks, id_column, score_column, gold_column, db, as_json)
    elif gold is not None:
        _add_gold(id, gold, id_column or "task", label_column, db, as_json)
    elif model is None:
        raise InputError("the model has no name.", "Give --model NAME.")
    else:
        _add_predictions(id, str(predictions), model, number_of("--cost", cost), id_column, db, as_json)


def _add_tasks(
    id: str, path: str, id_column: str | None, score_column: str | None, gold_column: str | None, db: str, as_json: bool
) -> None:
    with (
        opened_tasks(path, id_column, score_column, gold_column) as more,
        service_at(db) as service,
        working("Adding tasks") as progress,
    ):
        added = service.add_tasks(id, more, progress=import_bar(more, progress))
        config = service.store.row(id).config
    read = [*say_read(more.report), *say_columns(config, more, score_column)]
    answer(
        as_json,
        {**asdict(added), "read": read},
        f"{counted(added.added, 'task')} added, {added.known:,} known before, {added.tasks:,} in all.",
    )


def _add_gold(id: str, path: str, task_column: str, label_column: str, db: str, as_json: bool) -> None:
    from nextlabel.files.labels import read_answers

    answers = read_answers(path, task_column, label_column)
    if not answers:
        raise InputError(f"{path} has no answers.", "Give at least one task with its label.")
    with service_at(db) as service:
        changed = service.set_gold(id, answers)
        row = service.store.row(id)
        controls = row.controls - len(row.rules.adjudicated)
    answer(
        as_json,
        {"changed": changed, "controls": controls},
        f"{counted(changed, 'answer')} new or corrected; {id} has {counted(controls, 'control question')}.",
    )


def _add_predictions(
    id: str, path: str, model: str, cost: float, task_column: str | None, db: str, as_json: bool
) -> None:
    with (
        opened_tasks(path, None, None) as rows,
        service_at(db) as service,
        working("Adding predictions") as progress,
    ):
        added = service.add_predictions(id, model, rows.rows(), cost, task_column, progress)
    read = say_read(rows.report)
    charged = f" They cost {counted(added.charged, 'label')} of the budget." if added.charged else ""
    sentence = (
        f"{counted(added.added, 'prediction')} of model {added.model} added, {added.known:,} known before.{charged}"
    )
    answer(as_json, {**asdict(added), "read": read}, sentence)
