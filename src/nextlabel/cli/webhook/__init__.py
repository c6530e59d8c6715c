"""``nextlabel webhook``: addresses that are told what happens in a campaign."""

from __future__ import annotations

import typer

from nextlabel.cli.webhook.add import add
from nextlabel.cli.webhook.enable import enable
from nextlabel.cli.webhook.list import list_webhooks
from nextlabel.cli.webhook.remove import remove
from nextlabel.cli.webhook.test import test

app = typer.Typer(help="Tell other systems what happens in a campaign.")
app.command()(add)
app.command(name="list")(list_webhooks)
app.command()(test)
app.command()(enable)
app.command()(remove)
