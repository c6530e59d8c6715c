"""``nextlabel campaign``: create, watch and steer live campaigns in a database, whether a service uses it or not."""

from __future__ import annotations

import typer

from nextlabel.cli.campaign.change import budget, change, clock, deadline, delete, pause, rebuild, rename, resume
from nextlabel.cli.campaign.create import add, create, gold, predictions
from nextlabel.cli.campaign.status import audit, events, export, status
from nextlabel.cli.campaign.workers import links, revoke, worker, workers

app = typer.Typer(help="Create, watch and steer live campaigns.", no_args_is_help=True)
_COMMANDS = (
    create, add, gold, audit, predictions, status, pause, resume, budget, deadline, change, rename, workers, worker,
    links, revoke, export, events, rebuild, clock, delete,
)  # fmt: skip
for _command in _COMMANDS:
    app.command()(_command)
