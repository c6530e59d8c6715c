"""``nextlabel campaign create`` and ``add``: campaigns and tasks from files, all of it or nothing."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nextlabel.cli.campaign_common import Id, fields_of, number_of, service_at, state_of
from nextlabel.cli.flag_values import parse_number, parse_prior
from nextlabel.cli.output import JsonFlag, counted, print_json, say, say_read, working
from nextlabel.cli.serve import DB, DbFlag, needs_service
from nextlabel.errors import InputError

if TYPE_CHECKING:
    from nextlabel.campaign.rows import CampaignRow
    from nextlabel.files.tasks import TaskReader

IdColumn = Annotated[
    str | None, typer.Option(metavar="NAME", help="The column with the tasks' ids.", show_default=False)
]
ScoreColumn = Annotated[
    str | None, typer.Option(metavar="NAME", help="The column with a model's probabilities.", show_default=False)
]


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
    from nextlabel.campaign.config import CampaignSettings
    from nextlabel.service.times import parse_time

    config = CampaignSettings.from_dict(
        {
            "budget": parse_number("--budget", budget, "Give a whole number, e.g. --budget 1200."),
            "labels": [label.strip() for label in labels.split(",")],
            "question": question,
            "name": name,
            "deadline": parse_time("deadline", deadline),
            "lease_seconds": None if lease_seconds is None else number_of("--lease-seconds", lease_seconds),
            "policy": policy,
            "prior": None if prior is None else parse_prior(prior),
            "threshold": number_of("--threshold", threshold),
            "strength": number_of("--strength", strength),
            "label_cost": number_of("--label-cost", label_cost),
            "most_labels": number_of("--most-labels", most_labels),
        }
    )
    with _opened(tasks, id_column, score_column) as given:
        with service_at(db) as campaign_service, working("Taking tasks in"):
            row = campaign_service.create(config, id, given or ())
        read = [] if given is None else say_read(given.report)
    _show_row(row, read, as_json)
    say(f"Serve it: nextlabel serve --db {db}. Links: nextlabel campaign links {row.id} ann bob --db {db}.")


def add(
    id: Id,
    tasks: Annotated[str, typer.Argument(metavar="TASKS", help="CSV, JSON lines or JSON.")],
    id_column: IdColumn = None,
    score_column: ScoreColumn = None,
    db: DbFlag = DB,
) -> None:
    """Take more tasks in, all of them or none."""
    with _opened(tasks, id_column, score_column) as given:
        with service_at(db) as campaign_service, working("Taking tasks in"):
            added = campaign_service.add_tasks(id, given or ())
        if given is not None:
            say_read(given.report)
    say(f"{counted(added.added, 'task')} added, {added.known:,} known before, {added.tasks:,} in all.")


def _opened(
    path: str | None, id_column: str | None, score_column: str | None
) -> AbstractContextManager[TaskReader | None]:
    """The tasks in a file, if one is given."""
    if path is None:
        return nullcontext()
    from nextlabel.files.tasks import open_tasks

    return open_tasks(path, id_column=id_column, score_column=score_column)


def _show_row(row: CampaignRow, read: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        print_json({**fields_of(row), "read": read})
    else:
        sys.stdout.write(f"{row.id}\n")
        say(f"Campaign {row.id}: {counted(row.tasks, 'task')}, {counted(row.budget, 'label')}, {state_of(row)}.")
