"""``nextlabel campaign rebuild``: hold the state of a campaign against its events, and derive it from them again."""

from __future__ import annotations

from typing import Annotated

import typer

from nextlabel.cli.campaign.common import Id, fields_of, service_at
from nextlabel.cli.options import DB, Db, Json
from nextlabel.cli.output import print_json, say, working
from nextlabel.prose import counted

#: What a row of each table is.
NOUNS = {
    "campaigns": ("row of counters", "rows of counters"), "tasks": ("task", "tasks"), "leases": ("lease", "leases"),
    "workers": ("worker's tally", "workers' tallies"), "states": ("group of tasks", "groups of tasks"),
    "classes": ("prior", "priors"), "batches": ("batch", "batches"),
}  # fmt: skip


def rebuild(
    id: Id,
    check: Annotated[bool, typer.Option("--check", help="Report what differs and write nothing.")] = False,
    db: Db = DB,
    as_json: Json = False,
) -> None:
    """Derive everything but the events from the events again, and report what did not follow from them.

    The campaign goes on meanwhile. With --check the exit code is 1 if something differs.
    """
    with service_at(db) as service:
        with working("Replaying events") as progress:
            found = service.verify(id, not check, progress)
        row = service.store.row(id)
    if as_json:
        print_json({**fields_of(row), "events": found.events, "unchanged": found.right, "differing": found.differing})
    else:
        say(f"{id}: {counted(found.events, 'event')} replayed. {_finding(found.differing, check)}")
    if check and not found.right:
        raise typer.Exit(1)


def _finding(differing: dict[str, int], check: bool) -> str:
    if not differing:
        return "Every row follows from them."
    rows = ", ".join(counted(number, *NOUNS.get(table, ("row", "rows"))) for table, number in differing.items())
    return f"Not following from them: {rows}. {'Nothing was written' if check else 'All of it was rebuilt'}."
