"""``nextlabel label-studio``: campaigns whose people label in Label Studio."""

from __future__ import annotations

import typer

from nextlabel.cli.label_studio.connect import connect
from nextlabel.cli.label_studio.push_results import push_results

app = typer.Typer(help="Campaigns whose people label in Label Studio.")
app.command()(connect)
app.command(name="push-results")(push_results)
