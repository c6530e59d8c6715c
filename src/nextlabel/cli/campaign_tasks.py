"""``nextlabel campaign create`` and ``add``: campaigns and tasks from files, all of it or nothing."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nextlabel.campaign.declaration import declared
from nextlabel.cli.campaign_common import Id, fields_of, number_of, service_at, state_of
from nextlabel.cli.flag_values import parse_number, parse_prior
from nextlabel.cli.output import JsonFlag, counted, print_json, say, working
from nextlabel.cli.serve import DB, DbFlag, needs_service
from nextlabel.errors import FileFormatError, InputError

if TYPE_CHECKING:
    from nextlabel.campaign.rows import CampaignRow

IdColumn = Annotated[
    str | None, typer.Option(metavar="NAME", help="The column with the tasks' ids.", show_default=False)
]
ScoreColumn = Annotated[
    str | None, typer.Option(metavar="NAME", help="The column with a model's probabilities.", show_default=False)
]


def _option(name: str, metavar: str) -> Any:
    """An option with the help text of a campaign's setting."""
    return typer.Option(metavar=metavar, help=declared(name).help, show_default=bool(declared(name).default))


def create(
    tasks: Annotated[str | None, typer.Argument(metavar="TASKS", help="CSV, JSON lines or JSON.")] = None,
    budget: Annotated[str, _option("budget", "U")] = "",
    labels: Annotated[str, _option("labels", "A,B")] = declared("labels").example,
    question: Annotated[str, _option("question", "TEXT")] = "",
    name: Annotated[str, _option("name", "TEXT")] = "",
    deadline: Annotated[str | None, _option("deadline", "TIME")] = None,
    lease_seconds: Annotated[str | None, _option("lease_seconds", "S")] = None,
    policy: Annotated[str, _option("policy", "NAME")] = declared("policy").default,
    prior: Annotated[str | None, _option("prior", "A,B")] = None,
    threshold: Annotated[str, _option("threshold", "D")] = f"{declared('threshold').default:g}",
    strength: Annotated[str, _option("strength", "N")] = f"{declared('strength').default:g}",
    label_cost: Annotated[str, _option("label_cost", "C")] = f"{declared('label_cost').default:g}",
    most_labels: Annotated[str, _option("most_labels", "N")] = f"{declared('most_labels').default}",
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
    from nextlabel.campaign.settings import CampaignSettings

    config = CampaignSettings.from_dict(
        {
            "budget": parse_number("--budget", budget, "Give a whole number, e.g. --budget 1200."),
            "labels": [label.strip() for label in labels.split(",")],
            "question": question,
            "name": name,
            "deadline": deadline,
            "lease_seconds": None if lease_seconds is None else number_of("--lease-seconds", lease_seconds),
            "policy": policy,
            "prior": None if prior is None else parse_prior(prior),
            "threshold": number_of("--threshold", threshold),
            "strength": number_of("--strength", strength),
            "label_cost": number_of("--label-cost", label_cost),
            "most_labels": number_of("--most-labels", most_labels),
        }
    )
    if tasks is not None:
        _check(Path(tasks))
    with service_at(db) as campaign_service, working("Taking tasks in"):
        given = () if tasks is None else _tasks(Path(tasks), id_column, score_column)
        row = campaign_service.create(config, id, given)
    _show_row(row, as_json)
    say(f"Serve it: nextlabel serve --db {db}. Links: nextlabel campaign links {row.id} ann bob --db {db}.")


def add(
    id: Id,
    tasks: Annotated[str, typer.Argument(metavar="TASKS", help="CSV, JSON lines or JSON.")],
    id_column: IdColumn = None,
    score_column: ScoreColumn = None,
    db: DbFlag = DB,
) -> None:
    """Take more tasks in, all of them or none."""
    _check(Path(tasks))
    with service_at(db) as campaign_service, working("Taking tasks in"):
        added = campaign_service.add_tasks(id, _tasks(Path(tasks), id_column, score_column))
    say(f"{counted(added.added, 'task')} added, {added.known:,} known before, {added.tasks:,} in all.")


def _tasks(path: Path, id_column: str | None, score_column: str | None) -> Iterator[Any]:
    from nextlabel.service.task_files import READERS, with_columns

    kinds = {".csv": "text/csv", ".jsonl": "application/x-ndjson", ".ndjson": "application/x-ndjson"}
    reader = READERS[kinds.get(path.suffix.lower(), "application/json")]
    empty = True
    with path.open("rb") as file:
        for task in with_columns(reader(file), id_column, score_column):
            empty = False
            yield task
    if empty:
        raise FileFormatError(f"{path} has no tasks.", "Give one task a row, below a row with the columns' names.")


def _check(path: Path) -> None:
    try:
        with path.open("rb"):
            pass
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}.", "Give a CSV, .jsonl or .json file.") from None


def _show_row(row: CampaignRow, as_json: bool) -> None:
    if as_json:
        print_json(fields_of(row))
    else:
        sys.stdout.write(f"{row.id}\n")
        say(f"Campaign {row.id}: {counted(row.tasks, 'task')}, {counted(row.budget, 'label')}, {state_of(row)}.")
