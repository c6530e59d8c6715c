"""``nextlabel webhook enable``: go on with a webhook that was disabled."""

from __future__ import annotations

from nextlabel.cli.campaign.common import Id
from nextlabel.cli.options import DB, Db, Json
from nextlabel.cli.output import print_json, say
from nextlabel.cli.serve import needs_service
from nextlabel.cli.webhook.common import WebhookId, fields_of, webhooks_at


def enable(id: Id, webhook: WebhookId, db: Db = DB, as_json: Json = False) -> None:
    """Go on with a webhook that was disabled, or try one that fails at once; it is told all that it has missed."""
    needs_service()
    with webhooks_at(db) as (webhooks, _):
        found = webhooks.enable(id, webhook)
    if as_json:
        print_json(fields_of(found))
    else:
        say(f"Webhook {found.id} goes on after event {found.position:,}, as soon as a service runs.")
