"""``nextlabel campaign create``: a campaign with its first tasks."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nextlabel.cli.campaign.setting_flags import LABELS, setting_flags, typed_settings
from nextlabel.cli.database import (
    TASKS_FILE,
    GoldColumn,
    IdColumn,
    ScoreColumn,
    fields_of,
    import_bar,
    opened_tasks,
    say_columns,
    service_at,
    state_of,
)
from nextlabel.cli.options import DB, Db, Json, refuse_idle, text
from nextlabel.cli.output import print_json, say, say_read, working
from nextlabel.cli.serve import needs_service
from nextlabel.errors import InputError
from nextlabel.prose import counted, has_password, listed

if TYPE_CHECKING:
    from nextlabel.files.tasks import TaskReader


@setting_flags()
def create(
    context: typer.Context,
    tasks: Annotated[str | None, TASKS_FILE] = None,
    id: Annotated[str | None, text("--id", "ID", "The campaign's id. Default: a random one.")] = None,
    id_column: IdColumn = None,
    score_column: ScoreColumn = None,
    gold_column: GoldColumn = None,
    db: Db = DB,
    as_json: Json = False,
    **typed: Any,
) -> None:
    """Create a campaign with its first tasks."""
    if tasks is None:
        refuse_idle(context, ["id_column", "score_column", "gold_column"], "a file of TASKS")
    if not typed["budget"]:
        raise InputError("the campaign has no budget.", "Give --budget, the number of labels that may be bought.")
    needs_service()
    from nextlabel.campaign.settings import CampaignSettings

    settings = {"labels": LABELS, **typed_settings(typed)}
    CampaignSettings.from_dict(settings)  # refused before the file is opened
    opened: AbstractContextManager[TaskReader | None] = (
        nullcontext() if tasks is None else opened_tasks(tasks, id_column, score_column, gold_column)
    )
    with opened as first:
        config = CampaignSettings.from_dict({**settings, "show": _shown(settings.get("show"), first, score_column)})
        with service_at(db, create=True) as service, working("Adding tasks") as progress:
            row = service.create(config, id, first or (), import_bar(first, progress))
    read = [] if first is None else [*say_read(first.report), *say_columns(config, first, score_column)]
    if as_json:
        print_json({**fields_of(row), "read": read})
    else:
        sys.stdout.write(f"{row.id}\n")
        say(f"Campaign {row.id}: {counted(row.tasks, 'task')}, {counted(row.budget, 'label')}, {state_of(row)}.")
    where = "" if has_password(db) else f" --db {db}"  # an address with a password came from NEXTLABEL_DB
    say(f"Serve it: nextlabel serve{where}. Links: nextlabel campaign links {row.id} ann bob{where}.")


def _shown(show: list[str] | None, tasks: TaskReader | None, score_column: str | None) -> list[str] | None:
    """The columns that workers are shown: those named; else, without the scores, those that may be seen by anybody."""
    from nextlabel.campaign.settings import ALL, is_shown

    columns = () if tasks is None else tasks.columns
    if show is None:
        safe = [name for name in columns if is_shown(None, name) and name != score_column]
        return safe if score_column is not None and safe else None
    unknown = next((name for name in show if columns and name != ALL and name not in columns), None)
    if unknown is not None:
        raise InputError(f"--show: the file has no column {unknown[:60]!r}.", f"It has {listed(columns)}.")
    return show
