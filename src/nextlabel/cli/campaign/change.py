"""``nextlabel campaign change`` and its kin: steer a campaign, check its clock and its state, delete it."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from nextlabel.cli.campaign.setting_flags import setting_flags, typed_settings
from nextlabel.cli.database import Id, fields_of, number_of, service_at, show_change, state_of
from nextlabel.cli.options import DB, Db, Json
from nextlabel.cli.output import answer, print_json, print_table, say, working
from nextlabel.cli.serve import needs_service
from nextlabel.errors import InputError
from nextlabel.prose import counted

#: What a row of each table is.
NOUNS = {
    "campaigns": ("row of counters", "rows of counters"), "tasks": ("task", "tasks"), "leases": ("lease", "leases"),
    "workers": ("worker's tally", "workers' tallies"), "states": ("group of tasks", "groups of tasks"),
    "classes": ("prior", "priors"), "batches": ("batch", "batches"),
}  # fmt: skip


@setting_flags(changing=True)
def change(id: Id, db: Db = DB, as_json: Json = False, **typed: Any) -> None:
    """Change settings while the campaign runs. Workers see other texts with their next task.

    The value none takes away what may be left out, e.g. --deadline none.
    """
    values = typed_settings(typed, changing=True)
    if not values:
        raise InputError("nothing says what to change.", "Give e.g. --question or --pay-per-label.")
    with service_at(db) as service:
        row = service.change(id, values)
    show_change(row, f"{id} is changed.", as_json)


def pause(id: Id, db: Db = DB, as_json: Json = False) -> None:
    """Hand out no new tasks; workers can finish those they hold."""
    with service_at(db) as service:
        row = service.pause(id)
    show_change(row, f"{id} is {state_of(row)}.", as_json)


def resume(id: Id, db: Db = DB, as_json: Json = False) -> None:
    """Hand out new tasks again."""
    with service_at(db) as service:
        row = service.resume(id)
    show_change(row, f"{id} is {state_of(row)}.", as_json)


def budget(
    id: Id,
    labels: Annotated[str, typer.Argument(metavar="LABELS", help="The new budget; +N and -N change the old one.")],
    db: Db = DB,
    as_json: Json = False,
) -> None:
    """Set another budget while the campaign runs."""
    with service_at(db) as service:
        number = number_of("the budget", labels)
        if labels[:1] in "+-":
            number += service.store.row(id).budget
        row = service.change(id, {"budget": number})
    sentence = f"{id} may buy {row.budget:,} labels: {row.spent:,} are spent, {row.reserved:,} out, {row.left:,} left."
    show_change(row, sentence, as_json)


def deadline(
    id: Id,
    time: Annotated[str, typer.Argument(metavar="TIME", help="A time such as 2026-07-01T12:00:00Z, or none.")],
    db: Db = DB,
    as_json: Json = False,
) -> None:
    """Set another deadline, or none, while the campaign runs."""
    needs_service()
    with service_at(db) as service:
        row = service.change(id, {"deadline": None if time == "none" else time})
    show_change(row, f"{id} is {state_of(row)}; deadline: {time}.", as_json)


def rename(
    id: Id,
    name: Annotated[str, typer.Argument(metavar="NAME", help="What it is called from now on; empty for its id.")],
    db: Db = DB,
    as_json: Json = False,
) -> None:
    """Give a campaign another name; its id, links and files stay as they are."""
    with service_at(db) as service:
        row = service.change(id, {"name": name})
    show_change(row, f"{id} is called {row.config.name or id}.", as_json)


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
    answer(
        as_json,
        {**fields_of(row), "events": found.events, "unchanged": found.right, "differing": found.differing},
        f"{id}: {counted(found.events, 'event')} replayed. {_finding(found.differing, check)}",
    )
    if check and not found.right:
        raise typer.Exit(1)


def _finding(differing: dict[str, int], check: bool) -> str:
    if not differing:
        return "Every row follows from them."
    rows = ", ".join(counted(number, *NOUNS.get(table, ("row", "rows"))) for table, number in differing.items())
    return f"Not following from them: {rows}. {'Nothing was written' if check else 'All of it was rebuilt'}."
