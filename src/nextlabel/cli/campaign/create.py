"""``nextlabel campaign create``: a campaign and its first tasks, all of it or nothing."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from nextlabel.cli.campaign.common import (
    TASKS_FILE,
    IdColumn,
    ScoreColumn,
    check_file,
    fields_of,
    number_of,
    read_tasks,
    service_at,
    state_of,
)  # fmt: skip
from nextlabel.cli.flag_values import parse_number, parse_prior
from nextlabel.cli.options import DB, Db, Json, refuse_idle, text_option
from nextlabel.cli.output import print_json, say, working
from nextlabel.cli.serve import needs_service
from nextlabel.errors import InputError
from nextlabel.prose import counted


def create(
    context: typer.Context,
    tasks: Annotated[str | None, TASKS_FILE] = None,
    budget: Annotated[str | None, text_option("--budget", "U", "Number of labels to buy; required.")] = None,
    labels: Annotated[
        str, typer.Option(metavar="A,B", help="The answers; with two of them the second is answer 1.")
    ] = "no,yes",
    question: Annotated[str, text_option("--question", "TEXT", "What workers are asked.")] = "",
    name: Annotated[str, text_option("--name", "TEXT", "The campaign's name.")] = "",
    deadline: Annotated[
        str | None, text_option("--deadline", "TIME", "Hand out no tasks after this time, e.g. 2026-07-01T12:00:00Z.")
    ] = None,
    lease_seconds: Annotated[
        str | None, text_option("--lease-seconds", "S", "How long a worker may hold a task. Default: learnt.")
    ] = None,
    policy: Annotated[str, typer.Option(metavar="NAME", help="The policy that chooses the next task.")] = "index",
    prior: Annotated[
        str | None, text_option("--prior", "A,B", "The prior of a task without a score. Default: 1,1.")
    ] = None,
    threshold: Annotated[
        str, typer.Option(metavar="D", help="The truth of a task is 1 if its theta is above D.")
    ] = "0.5",
    strength: Annotated[str, typer.Option(metavar="S", help="How many labels a score is worth.")] = "4",
    label_cost: Annotated[str, typer.Option(metavar="C", help="What one label costs, in tasks right.")] = "0",
    most_labels: Annotated[str, typer.Option(metavar="N", help="Labels that one task can get at most.")] = "64",
    id: Annotated[str | None, text_option("--id", "ID", "The campaign's id. Default: a random one.")] = None,
    id_column: IdColumn = None,
    score_column: ScoreColumn = None,
    db: Db = DB,
    as_json: Json = False,
) -> None:
    """Create a campaign with its first tasks."""
    if tasks is None:
        refuse_idle(context, ["id_column", "score_column"], "a file of TASKS")
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
    if tasks is not None:
        check_file(Path(tasks))
    with service_at(db) as service, working("Adding tasks"):
        first = () if tasks is None else read_tasks(Path(tasks), id_column, score_column)
        row = service.create(config, id, first)
    if as_json:
        print_json(fields_of(row))
    else:
        sys.stdout.write(f"{row.id}\n")
        say(f"Campaign {row.id}: {counted(row.tasks, 'task')}, {counted(row.budget, 'label')}, {state_of(row)}.")
    say(f"Serve it: nextlabel serve --db {db}. Links: nextlabel campaign links {row.id} ann bob --db {db}.")
