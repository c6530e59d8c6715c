"""``nextlabel campaign add``: more tasks from a file, all of them or none."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from nextlabel.cli.campaign.common import (
    TASKS_FILE,
    GoldColumn,
    Id,
    IdColumn,
    ScoreColumn,
    import_bar,
    opened_tasks,
    say_columns,
    service_at,
)
from nextlabel.cli.options import DB, Db, Json
from nextlabel.cli.output import print_json, say, say_read, working
from nextlabel.prose import counted


def add(
    id: Id,
    tasks: Annotated[str, TASKS_FILE],
    id_column: IdColumn = None,
    score_column: ScoreColumn = None,
    gold_column: GoldColumn = None,
    db: Db = DB,
    as_json: Json = False,
) -> None:
    """Add tasks, all of them or none."""
    with (
        opened_tasks(tasks, id_column, score_column, gold_column) as more,
        service_at(db) as service,
        working("Adding tasks") as progress,
    ):
        added = service.add_tasks(id, more, progress=import_bar(more, progress))
        config = service.store.row(id).config
    read = [*say_read(more.report), *say_columns(config, more, score_column)]
    if as_json:
        print_json({**asdict(added), "read": read})
    else:
        say(f"{counted(added.added, 'task')} added, {added.known:,} known before, {added.tasks:,} in all.")
