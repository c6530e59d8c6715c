"""``nextlabel label-studio``: campaigns whose people label in Label Studio."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from nextlabel.campaign.declaration import declared
from nextlabel.cli.database import names_of, service_at
from nextlabel.cli.options import (
    DB,
    HOST,
    LOG_LEVEL,
    PORT,
    PUBLIC_URL,
    LogLevel,
    flag,
    number,
    positive,
    verb,
    whole,
)
from nextlabel.cli.output import Said, say
from nextlabel.cli.serve import check_port, needs_service, show_token
from nextlabel.errors import InputError, NotFoundError
from nextlabel.wording import counted, listed

if TYPE_CHECKING:
    from fastapi import FastAPI

app = typer.Typer(help="Campaigns whose people label in Label Studio.")
URL = flag("URL", "The address of Label Studio, e.g. http://localhost:8080.", ...)
TOKEN = flag(
    "TOKEN", "A token of Label Studio: a personal access token or a legacy one.", "", envvar="LABEL_STUDIO_API_KEY"
)
PROJECT = whole("N", 1, "3", "The project's number, which its address shows.", ...)
CONTROL = flag("NAME", "The Choices that are the labels. Default: the only ones that the project has.")


@app.command()
@verb()
def connect(
    url: str = URL,
    project: int = PROJECT,
    token: str = TOKEN,
    budget: int | None = number("U", str(declared("budget").description), "1200"),
    control: str | None = CONTROL,
    annotators: str | None = flag(
        "A,B", "E-mail addresses of those who get tasks. Default: everybody in the organisation."
    ),
    policy: str | None = flag("NAME", str(declared("policy").description)),
    lease_seconds: float | None = number("S", str(declared("lease_seconds").description)),
    campaign: str | None = flag("ID", "The id of the new campaign. Default: label_studio_N."),
    every: float = positive("S", "5", "Seconds between two readings of what has changed.", default=5.0),
    db: str = DB,
    host: str | None = HOST,
    port: int | None = PORT,
    public_url: str | None = flag(*PUBLIC_URL),
    log_level: LogLevel | None = LOG_LEVEL,
) -> None:
    """Give the annotators of a Label Studio project their next tasks, and take their labels in, until Ctrl-C.

    The campaign is made when the project is first connected. Label Studio tells of annotations at --public-url, which
    also has the dashboard.
    """
    needs_service()
    from nextlabel.integrations.label_studio.api import LabelStudio
    from nextlabel.integrations.label_studio.bridge import control_of
    from nextlabel.integrations.label_studio.connection import (
        campaign_of_project,
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
    settings = ServiceSettings(host=host, port=port, processes=1, public_url=public_url, log_level=log_level)
    check_port(settings.host, settings.port)

    def pages(app: FastAPI) -> None:
        mount_pages(app)
        bridge = connect(
            studio, project, app.state.nextlabel.campaign_service, say, control=control, campaign=campaign,
            annotators=None if annotators is None else names_of(annotators), budget=budget, policy=policy,
            lease_seconds=lease_seconds,
        )  # fmt: skip
        bridge.reconcile()
        secret = register_webhook(bridge, settings.base_url, settings.key_file)
        mount_webhook(app, bridge, secret, every)
        row = bridge.service.store.row(bridge.campaign)
        say(
            f"Project {bridge.project} at {bridge.studio.url} is campaign {row.id}: {counted(row.tasks, 'task')}, "
            f"labels {listed(row.config.labels)}, {row.spent:,} of {row.budget:,} labels spent."
        )
        say(f"Dashboard: {settings.base_url}. Ctrl-C ends the connection, and nothing is lost.")
        say("Each annotator labels at a link of their own (not by Label Studio's button Label All Tasks):")
        for annotator in bridge.annotators.all:
            say(f"  {annotator.worker}  {bridge.annotators.link(annotator.user)}")

    with LabelStudio(url, token) as studio, suppress(KeyboardInterrupt):
        control_of(read_project(studio, project), control)  # refused before a database is made
        if budget is None:
            try:
                with service_at(db) as service:
                    campaign_of_project(studio, project, service)
            except NotFoundError:
                raise InputError(
                    "the campaign has no budget.", "Give --budget, the number of labels that may be bought."
                ) from None
        run(settings, db, pages=pages, show_token=show_token)
    say("nextlabel label-studio connect ended; connect again to go on.")


@app.command("push")
@verb()
def push_results(
    url: str = URL,
    project: int = PROJECT,
    token: str = TOKEN,
    control: str | None = CONTROL,
    db: str = DB,
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
