"""``nextlabel campaign``: create, watch and steer live campaigns in a database, while a service uses it or not."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from nextlabel.cli.campaign_common import Id, number_of, service_at, state_of
from nextlabel.cli.campaign_status import status
from nextlabel.cli.campaign_tasks import add, create
from nextlabel.cli.flag_values import parse_whole
from nextlabel.cli.output import JsonFlag, counted, print_json, say, working
from nextlabel.cli.serve import DB, DbFlag, needs_service

app = typer.Typer(help="Create, watch and steer live campaigns.", no_args_is_help=True)
for _verb in (create, add, status):
    app.command()(_verb)


@app.command()
def pause(id: Id, db: DbFlag = DB) -> None:
    """No new leases; those that are out go on."""
    with service_at(db) as campaign_service:
        row = campaign_service.pause(id)
    say(f"{id} is {state_of(row)}.")


@app.command()
def resume(id: Id, db: DbFlag = DB) -> None:
    """New leases again."""
    with service_at(db) as campaign_service:
        row = campaign_service.resume(id)
    say(f"{id} is {state_of(row)}.")


@app.command()
def budget(
    id: Id,
    labels: Annotated[str, typer.Argument(metavar="LABELS", help="The new budget; +N and -N change the old one.")],
    db: DbFlag = DB,
) -> None:
    """Another budget, while the campaign runs."""
    with service_at(db) as campaign_service:
        number = number_of("the budget", labels)
        if labels[:1] in "+-":
            number += campaign_service.store.row(id).budget
        row = campaign_service.change(id, {"budget": number})
    say(f"{id} may buy {row.budget:,} labels: {row.spent:,} are spent, {row.reserved:,} out, {row.left:,} left.")


@app.command()
def deadline(
    id: Id,
    time: Annotated[str, typer.Argument(metavar="TIME", help="E.g. 2026-07-01T12:00:00Z, or none.")],
    db: DbFlag = DB,
) -> None:
    """Another deadline, or none."""
    needs_service()
    from nextlabel.service.times import parse_time

    with service_at(db) as campaign_service:
        row = campaign_service.change(id, {"deadline": None if time == "none" else parse_time("deadline", time)})
    say(f"{id} is {state_of(row)}; deadline: {time}.")


@app.command()
def links(
    id: Id,
    workers: Annotated[list[str] | None, typer.Argument(metavar="WORKERS...", help="Their names.")] = None,
    public_url: Annotated[
        str, typer.Option(metavar="URL", help="Where the service is reached.")
    ] = "http://127.0.0.1:8000",
    db: DbFlag = DB,
    as_json: JsonFlag = False,
) -> None:
    """LinkSigner for workers, and the one for platforms such as Prolific."""
    with service_at(db) as campaign_service:
        from nextlabel.service.links import LinkSigner, join_url, worker_url
        from nextlabel.service.settings import ServiceSettings

        campaign_service.store.row(id)
        base, signer = ServiceSettings(public_url=public_url).base_url, LinkSigner.of(campaign_service.store)
        made = {worker: worker_url(base, signer.worker_token(id, worker)) for worker in workers or []}
        join = join_url(base, signer.join_token(id))
    if as_json:
        print_json({"workers": made, "join": join})
        return
    for worker, link in made.items():
        sys.stdout.write(f"{worker}\t{link}\n")
    sys.stdout.write(f"any\t{join}?PROLIFIC_PID=...\n")


@app.command()
def export(
    id: Id,
    out: Annotated[str | None, typer.Option("--out", "-o", metavar="FILE", help="Default: stdout.")] = None,
    form: Annotated[Literal["csv", "jsonl"], typer.Option("--format", help="What to write.")] = "csv",
    db: DbFlag = DB,
) -> None:
    """Every task: label, probability, labels, and the event that closed it."""
    with service_at(db) as campaign_service:
        campaign_service.store.row(id)
        from nextlabel.cli.export_results import write_results

        written = write_results(campaign_service, id, None if out is None else Path(out), form)
    say(f"{counted(written, 'task')} written{'' if out is None else f' to {out}'}.")


@app.command()
def events(
    id: Id,
    after: Annotated[str, typer.Option(metavar="SEQ", help="Only events after this one.")] = "0",
    limit: Annotated[str, typer.Option(metavar="N", help="At most so many.")] = "1000",
    db: DbFlag = DB,
) -> None:
    """The log, one JSON object a line."""
    first = parse_whole("--after", after, 0, "Give the number of an event, e.g. --after 0.")
    most = parse_whole("--limit", limit, 1, "Give e.g. --limit 1000.")
    with service_at(db) as campaign_service:
        for event in campaign_service.store.events(id, first, most):
            line = {"seq": event.seq, "at": event.at, "kind": event.kind, "data": event.data}
            sys.stdout.write(json.dumps(line) + "\n")


@app.command()
def rebuild(id: Id, db: DbFlag = DB) -> None:
    """Make everything but the events anew from them."""
    with service_at(db) as campaign_service:
        before = campaign_service.store.row(id)
        with working("Replaying events") as progress:
            row = campaign_service.rebuild(id, progress)
    same = "as before" if row == before else "other than before: what was there did not follow from the events"
    say(f"{id}: {counted(row.seq, 'event')} replayed, counters {same}.")
