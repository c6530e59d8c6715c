"""``nextlabel campaign gold``: tasks whose answer is known become control questions."""

from __future__ import annotations

from typing import Annotated

import typer

from nextlabel.cli.campaign.common import Id, service_at
from nextlabel.cli.options import DB, Db, Json, LabelColumn, text
from nextlabel.cli.output import print_json, say
from nextlabel.errors import InputError
from nextlabel.prose import counted


def gold(
    id: Id,
    answers: Annotated[
        str, typer.Argument(metavar="FILE", help="Known answers: columns task and label (CSV, TSV, ...).")
    ],
    task_column: Annotated[str, text("--task-column", "NAME", "The column with the tasks.")] = "task",
    label_column: LabelColumn = "label",
    db: Db = DB,
    as_json: Json = False,
) -> None:
    """Make tasks control questions: given among the others, and never shown as such.

    Their labels tell how good each worker is. They are not paid from the budget, unless the campaign was created with
    --gold-in-budget. An answer can be corrected by giving it again.
    """
    from nextlabel.files.answers import read_answers

    found = read_answers(answers, task_column, label_column)
    if not found:
        raise InputError(f"{answers} has no answers.", "Give at least one task with its label.")
    with service_at(db) as service:
        changed = service.set_gold(id, found)
        controls = service.store.row(id).controls
    if as_json:
        print_json({"changed": changed, "controls": controls})
    else:
        say(f"{counted(changed, 'answer')} new or corrected; {id} has {counted(controls, 'control question')}.")
