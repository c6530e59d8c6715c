"""``nextlabel campaign``: create, watch and steer live campaigns in a database, whether a service uses it or not."""

from __future__ import annotations

import typer

from nextlabel.cli.campaign.add import add
from nextlabel.cli.campaign.change import change
from nextlabel.cli.campaign.create import create
from nextlabel.cli.campaign.maintenance import clock, delete, verify
from nextlabel.cli.campaign.status import audit, export, status
from nextlabel.cli.campaign.webhooks import webhooks
from nextlabel.cli.campaign.workers import links, workers

app = typer.Typer(help="Create, watch and steer live campaigns.", no_args_is_help=True)
for _command in (create, add, status, change, workers, links, export, audit, webhooks, verify, clock, delete):
    app.command()(_command)
