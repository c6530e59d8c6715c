"""``nextlabel campaign``: create, watch and steer live campaigns in a database, while a service uses it or not."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from nextlabel.cli.flag_values import parse_number, parse_prior, parse_whole
from nextlabel.cli.output import JsonFlag, counted, print_json, print_table, say, working
from nextlabel.cli.serve import DB, DbFlag, needs_service
from nextlabel.errors import InputError

if TYPE_CHECKING:
    from nextlabel.campaign.rows import CampaignRow
    from nextlabel.store.office import Office

app = typer.Typer(help="Create, watch and steer live campaigns.", no_args_is_help=True)

Id = Annotated[str, typer.Argument(metavar="ID", help="The campaign; see nextlabel campaign status.")]
IdColumn = Annotated[
    str | None, typer.Option(metavar="NAME", help="The column with the tasks' ids.", show_default=False)
]
ScoreColumn = Annotated[
    str | None, typer.Option(metavar="NAME", help="The column with a model's probabilities.", show_default=False)
]


@contextmanager
def office_at(db: str) -> Iterator[Office]:
    """Commands on the database."""
    needs_service()
    from nextlabel.store.office import Office
    from nextlabel.store.open import open_store

    office = Office(open_store(db))
    try:
        yield office
    finally:
        office.close()


@app.command()
def create(
    tasks: Annotated[str | None, typer.Argument(metavar="TASKS", help="CSV, JSON lines or JSON.")] = None,
    budget: Annotated[str, typer.Option(metavar="U", help="Labels that may be bought.")] = "",
    labels: Annotated[str, typer.Option(metavar="A,B", help="The answers; the second is answer 1.")] = "no,yes",
    question: Annotated[str, typer.Option(help="What workers are asked.")] = "",
    name: Annotated[str, typer.Option(help="What the campaign is called.")] = "",
    deadline: Annotated[
        str | None, typer.Option(metavar="TIME", help="E.g. 2026-07-01T12:00:00Z.", show_default=False)
    ] = None,
    lease_seconds: Annotated[
        str | None, typer.Option(metavar="S", help="How long a worker may hold a task. Default: learnt.")
    ] = None,
    policy: Annotated[str, typer.Option(help="Who gets the next label.")] = "index",
    prior: Annotated[
        str | None, typer.Option(metavar="A,B", help="Prior of tasks without a score.", show_default=False)
    ] = None,
    threshold: Annotated[str, typer.Option(metavar="D", help="The truth of a task is 1 if theta > D.")] = "0.5",
    strength: Annotated[str, typer.Option(metavar="N", help="Labels that a score is worth.")] = "4",
    label_cost: Annotated[str, typer.Option(metavar="C", help="What a label costs, in tasks right.")] = "0",
    most_labels: Annotated[str, typer.Option(metavar="N", help="Labels a task at most.")] = "64",
    id: Annotated[str | None, typer.Option("--id", metavar="ID", help="Default: by lot.", show_default=False)] = None,
    id_column: IdColumn = None,
    score_column: ScoreColumn = None,
    db: DbFlag = DB,
    as_json: JsonFlag = False,
) -> None:
    """Make a campaign, and take its tasks in."""
    if not budget:
        raise InputError("the campaign has no budget.", "Give --budget, the number of labels that may be bought.")
    needs_service()
    from nextlabel.campaign.config import Config
    from nextlabel.service.times import seconds_of

    config = Config.from_dict(
        {
            "budget": parse_number("--budget", budget, "Give a whole number, e.g. --budget 1200."),
            "labels": [label.strip() for label in labels.split(",")],
            "question": question,
            "name": name,
            "deadline": seconds_of("deadline", deadline),
            "lease_seconds": None if lease_seconds is None else _number("--lease-seconds", lease_seconds),
            "policy": policy,
            "prior": None if prior is None else parse_prior(prior),
            "threshold": _number("--threshold", threshold),
            "strength": _number("--strength", strength),
            "label_cost": _number("--label-cost", label_cost),
            "most_labels": _number("--most-labels", most_labels),
        }
    )
    if tasks is not None:
        _check(Path(tasks))
    with office_at(db) as office, working("Taking tasks in"):
        given = () if tasks is None else _tasks(Path(tasks), id_column, score_column)
        row = office.create(config, id, given)
    _show_row(row, as_json)
    say(f"Serve it: nextlabel serve --db {db}. Links: nextlabel campaign links {row.id} ann bob --db {db}.")


@app.command()
def add(
    id: Id,
    tasks: Annotated[str, typer.Argument(metavar="TASKS", help="CSV, JSON lines or JSON.")],
    id_column: IdColumn = None,
    score_column: ScoreColumn = None,
    db: DbFlag = DB,
) -> None:
    """Take more tasks in, all of them or none."""
    _check(Path(tasks))
    with office_at(db) as office, working("Taking tasks in"):
        added = office.add_tasks(id, _tasks(Path(tasks), id_column, score_column))
    say(f"{counted(added.added, 'task')} added, {added.known:,} known before, {added.tasks:,} in all.")


@app.command()
def status(
    id: Annotated[str | None, typer.Argument(metavar="ID", help="One campaign; without it all.")] = None,
    db: DbFlag = DB,
    as_json: JsonFlag = False,
) -> None:
    """How campaigns stand."""
    with office_at(db) as office:
        if id is not None:
            office.store.row(id)
            with working("Working out the certificate"):
                _show_status(office, id, as_json)
            return
        rows = office.store.campaigns()
    if as_json:
        print_json({"campaigns": [_fields(row) for row in rows]})
        return
    cells = [
        [
            row.id,
            row.config.name[:30],
            _state(row),
            f"{row.tasks:,}",
            f"{row.spent:,} of {row.budget:,}",
            f"{row.reserved:,}",
        ]
        for row in rows
    ]
    print_table(
        f"Campaigns in {db}",
        ["id", "name", "state", "tasks", "labels", "out"],
        cells,
        f"{counted(len(rows), 'campaign')}.",
    )


@app.command()
def pause(id: Id, db: DbFlag = DB) -> None:
    """No new leases; those that are out go on."""
    with office_at(db) as office:
        row = office.pause(id)
    say(f"{id} is {_state(row)}.")


@app.command()
def resume(id: Id, db: DbFlag = DB) -> None:
    """New leases again."""
    with office_at(db) as office:
        row = office.resume(id)
    say(f"{id} is {_state(row)}.")


@app.command()
def budget(
    id: Id,
    labels: Annotated[str, typer.Argument(metavar="LABELS", help="The new budget; +N and -N change the old one.")],
    db: DbFlag = DB,
) -> None:
    """Another budget, while the campaign runs."""
    with office_at(db) as office:
        number = _number("the budget", labels)
        if labels[:1] in "+-":
            number += office.store.row(id).budget
        row = office.change(id, {"budget": number})
    say(f"{id} may buy {row.budget:,} labels: {row.spent:,} are spent, {row.reserved:,} out, {row.left:,} left.")


@app.command()
def deadline(
    id: Id,
    time: Annotated[str, typer.Argument(metavar="TIME", help="E.g. 2026-07-01T12:00:00Z, or none.")],
    db: DbFlag = DB,
) -> None:
    """Another deadline, or none."""
    needs_service()
    from nextlabel.service.times import seconds_of

    with office_at(db) as office:
        row = office.change(id, {"deadline": None if time == "none" else seconds_of("deadline", time)})
    say(f"{id} is {_state(row)}; deadline: {time}.")


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
    """Links for workers, and the one for platforms such as Prolific."""
    with office_at(db) as office:
        from nextlabel.service.links import Links, join_url, worker_url
        from nextlabel.service.settings import Settings

        office.store.row(id)
        base, signer = Settings(public_url=public_url).base_url, Links.of(office.store)
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
    with office_at(db) as office:
        office.store.row(id)
        from nextlabel.cli.export_results import write_results

        written = write_results(office, id, None if out is None else Path(out), form)
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
    with office_at(db) as office:
        for event in office.store.events(id, first, most):
            line = {"seq": event.seq, "at": event.at, "kind": event.kind, "data": event.data}
            sys.stdout.write(json.dumps(line) + "\n")


@app.command()
def rebuild(id: Id, db: DbFlag = DB) -> None:
    """Make everything but the events anew from them."""
    with office_at(db) as office:
        before = office.store.row(id)
        with working("Replaying events") as progress:
            row = office.rebuild(id, progress)
    same = "as before" if row == before else "other than before: what was there did not follow from the events"
    say(f"{id}: {counted(row.seq, 'event')} replayed, counters {same}.")


def _tasks(path: Path, id_column: str | None, score_column: str | None) -> Iterator[Any]:
    from nextlabel.service.task_files import READERS, with_columns

    kinds = {".csv": "text/csv", ".jsonl": "application/x-ndjson", ".ndjson": "application/x-ndjson"}
    reader = READERS[kinds.get(path.suffix.lower(), "application/json")]
    with path.open("rb") as file:
        yield from with_columns(reader(file), id_column, score_column)


def _check(path: Path) -> None:
    try:
        with path.open("rb"):
            pass
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}.", "Give a CSV, .jsonl or .json file.") from None


def _number(name: str, text: str) -> float:
    return parse_number(name, text, "Give a number.")


def _state(row: CampaignRow) -> str:
    if row.closed_reason is not None:
        return row.closed_reason.replace("_", " ")
    return "paused" if row.paused else "open"


def _fields(row: CampaignRow) -> dict[str, Any]:
    names = (
        "id",
        "tasks",
        "budget",
        "spent",
        "reserved",
        "left",
        "given",
        "kept",
        "late",
        "expired",
        "released",
        "seq",
    )
    return {**{name: getattr(row, name) for name in names}, "name": row.config.name, "state": _state(row)}


def _show_row(row: CampaignRow, as_json: bool) -> None:
    if as_json:
        print_json(_fields(row))
    else:
        sys.stdout.write(f"{row.id}\n")
        say(f"Campaign {row.id}: {counted(row.tasks, 'task')}, {counted(row.budget, 'label')}, {_state(row)}.")


def _show_status(office: Office, id: str, as_json: bool) -> None:
    from nextlabel.campaign.rates import arrival_rate, completion_rate, lease_seconds
    from nextlabel.store.certificate import certificate

    row = office.store.row(id)
    found = certificate(office, id) if row.tasks else None
    if as_json:
        extra = (
            {} if found is None else {"now": found.now, "upper": found.upper, "gap": found.gap, "price": found.price}
        )
        print_json({**_fields(row), **extra})
        return
    r, mu = arrival_rate(row), completion_rate(row)
    rows = [
        ["state", _state(row)],
        ["tasks", f"{row.tasks:,}"],
        ["labels", f"{row.spent:,} of {row.budget:,}, {row.reserved:,} out, {row.left:,} left"],
        ["late, expired, released", f"{row.late:,}, {row.expired:,}, {row.released:,}"],
        ["workers a minute", "not known yet" if r is None else f"{60 * r:.3g}"],
        ["seconds a label", "not known yet" if mu is None else f"{1 / mu:.3g}"],
        ["lease", f"{lease_seconds(row):.0f} s"],
    ]
    caption = "No tasks yet: nextlabel campaign add."
    if found is not None:
        rows += [["expected now", f"{found.now:.4f}"], ["at most in the end", f"{found.upper:.4f}"],
                 ["price of the next label", f"{found.price:.4f}"]]  # fmt: skip
        caption = (
            f"Expected {found.now:.2%} of the tasks right if it stopped now; no way of spending the "
            f"{counted(row.left + row.reserved, 'label')} left can be expected to get past {found.upper:.2%}."
        )
    print_table(f"{row.id} {row.config.name}".strip(), ["", ""], rows, caption)
