"""``nextlabel label-studio push-results``: what the campaign found out, as predictions in Label Studio."""

from __future__ import annotations

from dataclasses import asdict

from nextlabel.cli.campaign.common import service_at
from nextlabel.cli.label_studio.options import ControlName, Project, Token, Url
from nextlabel.cli.options import DB, Db, Json
from nextlabel.cli.output import print_json, say
from nextlabel.prose import counted


def push_results(
    url: Url,
    project: Project,
    token: Token = "",
    control: ControlName = None,
    db: Db = DB,
    as_json: Json = False,
) -> None:
    """Write the results into Label Studio as predictions with a score; the same again changes nothing.

    Annotators see predictions where the project shows them: write them when the labelling is over.
    """
    with service_at(db) as service:
        from nextlabel.integrations.label_studio.api import LabelStudio
        from nextlabel.integrations.label_studio.connection import campaign_of_project, read_project
        from nextlabel.integrations.label_studio.project import control_of
        from nextlabel.integrations.label_studio.results import push_results

        with LabelStudio(url, token) as studio:
            found = read_project(studio, project)
            campaign = campaign_of_project(studio, project, service)
            pushed = push_results(studio, project, control_of(found, control), service, campaign)
    if as_json:
        print_json({"campaign": campaign, **asdict(pushed)})
    else:
        say(
            f"Project {project} has {counted(pushed.created, 'new prediction')} of {pushed.model_version}; "
            f"{pushed.changed:,} changed, {pushed.same:,} were right."
        )
