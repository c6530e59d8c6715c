"""``nextlabel prolific``: a campaign as a study on Prolific."""

from __future__ import annotations

import typer

from nextlabel.cli.prolific.bonus import bonus
from nextlabel.cli.prolific.statuses import statuses
from nextlabel.cli.prolific.study import study

app = typer.Typer(help="Run a campaign as a study on Prolific.", no_args_is_help=True)
for _command in (study, statuses, bonus):
    app.command()(_command)
