"""``nextlabel campaign verify``, ``clock`` and ``delete``: for whoever keeps the database."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from nextlabel.cli.database import Id, fields_of, service_at
from nextlabel.cli.options import DB, Db, Json
from nextlabel.cli.output import answer, print_json, print_table, say, working
from nextlabel.errors import InputError
from nextlabel.prose import counted

#: What a row of each table is.
NOUNS = {
    "campaigns": ("row of counters", "rows of counters"), "tasks": ("task", "tasks"), "leases": ("lease", "leases"),
    "workers": ("worker's tally", "workers' tallies"), "states": ("group of tasks", "groups of tasks"),
    "classes": ("prior", "priors"), "batches": ("batch", "batches"),
}  # fmt: skip


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
    answer(as_json, {"id": id, "deleted": True, "rows_removed": removed}, f"{id} is deleted.")


def _ask(id: str, what: str) -> None:
    """Have the id typed in again."""
    if not sys.stdin.isatty():
        raise InputError(f"nobody can be asked whether {id} with {what} is to be deleted.", "Give --yes if it is.")
    typed = typer.prompt(f"Delete {id} with {what} for good? Type its id", default="", show_default=False, err=True)
    if typed.strip() != id:
        raise InputError(f"{typed[:60]!r} is not the id of the campaign: nothing was deleted.", "Type its id.")


def clock(
    id: Annotated[str | None, typer.Argument(metavar="ID", help="The campaign's id. Default: all campaigns.")] = None,
    accept: Annotated[
        bool, typer.Option("--accept", help="Go on by the clock although it is far from the last event.")
    ] = False,
    db: Db = DB,
    as_json: Json = False,
) -> None:
    """Show the clock that campaigns run by, and accept it after it was set.

    Commands are refused while the clock is more than a minute behind, or more than 30 days ahead of a campaign's last
    event. Check the clock first. Once it is accepted, leases that were given out by a wrong clock end as if they had
    been given out now, and a campaign that was closed too early by its deadline is open again.
    """
    from nextlabel.campaign.commands import doubt_about
    from nextlabel.prose import iso

    with service_at(db) as service:
        rows = service.store.campaigns() if id is None else [service.store.row(id)]
        accepted = [row.id for row in rows if service.accept_clock(row.id)] if accept else []
        rows = [service.store.row(row.id) for row in rows]
        now = service.clock()
    refused = [row.id for row in rows if doubt_about(row, now) is not None]
    if as_json:
        fields = [{"id": row.id, "last_at": iso(row.last_at), "ahead_s": now - row.last_at} for row in rows]
        print_json({"clock": iso(now), "campaigns": fields, "refused": refused, "accepted": accepted})
        return
    if accept:
        say(f"The clock says {iso(now)}; {counted(len(accepted), 'campaign')} accepted it.")
        return
    cells = [[row.id, iso(row.last_at), "refused" if row.id in refused else "fine"] for row in rows]
    caption = f"{counted(len(refused), 'campaign')} of {len(rows):,} cannot go on by this clock."
    print_table(f"The clock says {iso(now)}", ["id", "last event", "clock"], cells, caption)


def verify(
    id: Id,
    repair: Annotated[bool, typer.Option("--repair", help="Write anew whatever does not follow from the log.")] = False,
    db: Db = DB,
    as_json: Json = False,
) -> None:
    """Replay the log beside the campaign, and report what does not follow from it.

    The campaign goes on meanwhile. Without --repair nothing is written, and the exit code is 1 if something differs.
    """
    with service_at(db) as service:
        with working("Replaying events") as progress:
            found = service.verify(id, repair, progress)
        row = service.store.row(id)
    answer(
        as_json,
        {**fields_of(row), "events": found.events, "unchanged": found.right, "differing": found.differing},
        f"{id}: {counted(found.events, 'event')} replayed. {_finding(found.differing, repair)}",
    )
    if not repair and not found.right:
        raise typer.Exit(1)


def _finding(differing: dict[str, int], repair: bool) -> str:
    if not differing:
        return "Every row follows from them."
    rows = ", ".join(counted(number, *NOUNS.get(table, ("row", "rows"))) for table, number in differing.items())
    return f"Not following from them: {rows}. {'All of it was rebuilt' if repair else 'Nothing was written'}."
