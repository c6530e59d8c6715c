"""``nextlabel label-studio``: campaigns whose people label in Label Studio."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from nextlabel.campaign.declaration import declared
from nextlabel.cli.database import names_of, service_at
from nextlabel.cli.options import DB, Db, Flag, Host, LogLevel, Port, PublicUrl, number, positive, verb, whole
from nextlabel.cli.output import Said, say
from nextlabel.cli.serve import check_port, needs_service, show_token
from nextlabel.errors import InputError, NotFoundError
from nextlabel.prose import counted, listed

if TYPE_CHECKING:
    from fastapi import FastAPI

    from nextlabel.integrations.label_studio.api import LabelStudio
    from nextlabel.integrations.label_studio.bridge import Bridge

app = typer.Typer(help="Campaigns whose people label in Label Studio.")
Url = Annotated[str, Flag("URL", "The address of Label Studio, e.g. http://localhost:8080.")]

Token = Annotated[
    str,
    Flag("TOKEN", "A token of Label Studio: a personal access token or a legacy one.", envvar="LABEL_STUDIO_API_KEY"),
]  # fmt: skip
Project = Annotated[int, whole("N", 1, "3", "The project's number, which its address shows.")]

Control = Annotated[
    str | None,
    Flag(
        "NAME",
        "The Choices that are the labels. Default: the only ones that the project has.",
    ),
]


@app.command()
@verb()
def connect(
    url: Url,
    project: Project,
    token: Token = "",
    budget: Annotated[int | None, number("U", str(declared("budget").description), "1200")] = None,
    control: Control = None,
    annotators: Annotated[
        str | None,
        Flag("A,B", "E-mail addresses of those who get tasks. Default: everybody in the organisation."),
    ] = None,
    policy: Annotated[str | None, Flag("NAME", str(declared("policy").description))] = None,
    lease_seconds: Annotated[float | None, number("S", str(declared("lease_seconds").description))] = None,
    campaign: Annotated[str | None, Flag("ID", "The id of the new campaign. Default: label_studio_N.")] = None,
    every: Annotated[float, positive("S", "5", "Seconds between two readings of what has changed.")] = 5.0,
    db: Db = DB,
    host: Host = None,
    port: Port = None,
    public_url: PublicUrl = None,
    log_level: LogLevel = None,
) -> None:
    """Give the annotators of a Label Studio project their next tasks, and take their labels in, until Ctrl-C.

    The campaign is made when the project is first connected. Label Studio tells of annotations at --public-url, which
    also has the dashboard.
    """
    needs_service()
    from nextlabel.integrations.label_studio.api import LabelStudio
    from nextlabel.integrations.label_studio.bridge import control_of
    from nextlabel.integrations.label_studio.connection import (
        Wishes,
        connect,
        mount_webhook,
        read_project,
        register_webhook,
    )
    from nextlabel.service.run import serve as run
    from nextlabel.service.settings import ServiceSettings
    from nextlabel.web.pages import mount_pages

    if db.strip() == "memory:":
        raise InputError("a campaign in memory would be lost with the connection.", "Give --db FILE.db.")
    wishes = Wishes(
        budget=budget,
        policy=policy,
        lease_seconds=lease_seconds,
        control=control,
        campaign=campaign,
        annotators=None if annotators is None else names_of(annotators),
    )
    settings = ServiceSettings(host=host, port=port, processes=1, public_url=public_url, log_level=log_level)
    check_port(settings.host, settings.port)

    def pages(app: FastAPI) -> None:
        mount_pages(app)
        bridge = connect(studio, project, app.state.nextlabel.campaign_service, wishes, say)
        bridge.reconcile()
        secret = register_webhook(bridge, settings.base_url, settings.key_file)
        mount_webhook(app, bridge, secret, every)
        _say_connected(bridge, settings.base_url)

    with LabelStudio(url, token) as studio, suppress(KeyboardInterrupt):
        control_of(read_project(studio, project), control)  # refused before a database is made
        if budget is None:
            _check_connected(studio, project, db)
        run(settings, db, pages=pages, show_token=show_token)
    say("nextlabel label-studio connect ended; connect again to go on.")


def _check_connected(studio: LabelStudio, project: int, db: str) -> None:
    """Refuse a new campaign without a budget, before a database is made."""
    from nextlabel.integrations.label_studio.connection import campaign_of_project

    try:
        with service_at(db) as service:
            campaign_of_project(studio, project, service)
    except NotFoundError:
        raise InputError(
            "the campaign has no budget.", "Give --budget, the number of labels that may be bought."
        ) from None


def _say_connected(bridge: Bridge, address: str) -> None:
    row = bridge.service.store.row(bridge.campaign)
    say(
        f"Project {bridge.project} at {bridge.studio.url} is campaign {row.id}: {counted(row.tasks, 'task')}, labels "
        f"{listed(row.config.labels)}, {row.spent:,} of {row.budget:,} labels spent."
    )
    say(f"Dashboard: {address}. Ctrl-C ends the connection, and nothing is lost.")
    say("Each annotator labels at a link of their own (not by Label Studio's button Label All Tasks):")
    for annotator in bridge.annotators.all:
        say(f"  {annotator.worker}  {bridge.annotators.link(annotator.user)}")


@app.command("push")
@verb()
def push_results(
    url: Url,
    project: Project,
    token: Token = "",
    control: Control = None,
    db: Db = DB,
) -> Said:
    """Write the results into Label Studio as predictions with a score; the same again changes nothing.

    Annotators see predictions where the project shows them: write them when the labelling is over.
    """
    with service_at(db) as service:
        from nextlabel.integrations.label_studio.api import LabelStudio
        from nextlabel.integrations.label_studio.bridge import control_of, push_results
        from nextlabel.integrations.label_studio.connection import campaign_of_project, read_project

        with LabelStudio(url, token) as studio:
            found = read_project(studio, project)
            campaign = campaign_of_project(studio, project, service)
            pushed = push_results(studio, project, control_of(found, control), service, campaign)
    return Said(
        {"campaign": campaign, **asdict(pushed)},
        f"Project {project} has {counted(pushed.created, 'new prediction')} of {pushed.model_version}; "
        f"{pushed.changed:,} changed, {pushed.same:,} were right.",
    )
