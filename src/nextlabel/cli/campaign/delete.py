"""``nextlabel campaign delete``: a campaign with everything in it, for good."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from nextlabel.cli.campaign.common import Id, service_at
from nextlabel.cli.options import DB, Db, Json
from nextlabel.cli.output import print_json, say, working
from nextlabel.errors import InputError
from nextlabel.prose import counted


def delete(
    id: Id,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    db: Db = DB,
    as_json: Json = False,
) -> None:
    """Delete a campaign with its tasks, labels, log and links, for good. Export first what you want to keep."""
    with service_at(db) as service:
        row = service.store.row(id)
        if not yes:
            _ask(id, f"{counted(row.tasks, 'task')} and {counted(row.kept, 'label')}")
        with working("Deleting") as progress:
            removed = service.delete(id, progress)
    if as_json:
        print_json({"id": id, "deleted": True, "rows_removed": removed})
    else:
        say(f"{id} is deleted.")


def _ask(id: str, what: str) -> None:
    """Have the id typed in again."""
    if not sys.stdin.isatty():
        raise InputError(f"nobody can be asked whether {id} with {what} is to be deleted.", "Give --yes if it is.")
    typed = typer.prompt(f"Delete {id} with {what} for good? Type its id", default="", show_default=False, err=True)
    if typed.strip() != id:
        raise InputError(f"{typed[:60]!r} is not the id of the campaign: nothing was deleted.", "Type its id.")
