"""``nextlabel mturk``: a campaign as a HIT on Amazon Mechanical Turk."""

from __future__ import annotations

import typer

from nextlabel.cli.mturk.bonus import bonus
from nextlabel.cli.mturk.question import question

app = typer.Typer(help="Run a campaign as a HIT on Amazon Mechanical Turk.", no_args_is_help=True)
for _command in (question, bonus):
    app.command()(_command)
