"""``nextlabel webhook add``: a further address that is told what happens."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from nextlabel.cli.campaign.common import Id, names_of
from nextlabel.cli.options import DB, Db, Json, text
from nextlabel.cli.output import print_json, say
from nextlabel.cli.serve import needs_service
from nextlabel.cli.webhook.common import fields_of, webhooks_at


def add(
    id: Id,
    url: Annotated[str, typer.Argument(metavar="URL", help="The address, https://...")],
    types: Annotated[
        str | None, text("--types", "A,B", "What to tell: label.created, task.closed, ... Default: everything.")
    ] = None,
    from_start: Annotated[bool, typer.Option("--from-start", help="Also tell what happened before.")] = False,
    db: Db = DB,
    as_json: Json = False,
) -> None:
    """Tell an address what happens in a campaign, signed with a secret that is shown only once."""
    needs_service()
    from nextlabel.service.settings import ServiceSettings
    from nextlabel.service.webhook_sender import WebhookSender, checked_url

    settings = ServiceSettings()
    address = str(checked_url(url, settings))
    with webhooks_at(db) as (webhooks, store):
        made = webhooks.add(id, address, None if types is None else names_of(types), from_start)
        secret = WebhookSender(store, settings).secret_of(made.id)
    if as_json:
        print_json({**fields_of(made), "secret": secret})
        return
    say(f"Webhook {made.id} tells {made.url}: {', '.join(made.types)}. Its secret, shown this once:")
    sys.stdout.write(secret + "\n")
