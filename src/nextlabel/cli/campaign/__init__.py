"""``nextlabel campaign``: create, watch and steer live campaigns in a database, whether a service uses it or not."""

from __future__ import annotations

import typer

from nextlabel.cli.campaign.add import add
from nextlabel.cli.campaign.audit import audit
from nextlabel.cli.campaign.budget import budget
from nextlabel.cli.campaign.change import change
from nextlabel.cli.campaign.clock import clock
from nextlabel.cli.campaign.create import create
from nextlabel.cli.campaign.deadline import deadline
from nextlabel.cli.campaign.delete import delete
from nextlabel.cli.campaign.events import events
from nextlabel.cli.campaign.export import export
from nextlabel.cli.campaign.gold import gold
from nextlabel.cli.campaign.links import links
from nextlabel.cli.campaign.pause import pause
from nextlabel.cli.campaign.predictions import predictions
from nextlabel.cli.campaign.rebuild import rebuild
from nextlabel.cli.campaign.rename import rename
from nextlabel.cli.campaign.resume import resume
from nextlabel.cli.campaign.revoke import revoke
from nextlabel.cli.campaign.status import status
from nextlabel.cli.campaign.worker import worker
from nextlabel.cli.campaign.workers import workers

app = typer.Typer(help="Create, watch and steer live campaigns.", no_args_is_help=True)
_COMMANDS = (
    create, add, gold, audit, predictions, status, pause, resume, budget, deadline, change, rename, workers, worker,
    links, revoke, export, events, rebuild, clock, delete,
)  # fmt: skip
for _command in _COMMANDS:
    app.command()(_command)
