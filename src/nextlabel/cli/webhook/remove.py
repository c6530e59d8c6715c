"""``nextlabel webhook remove``: tell an address nothing more."""

from __future__ import annotations

from nextlabel.cli.campaign.common import Id
from nextlabel.cli.options import DB, Db, Json
from nextlabel.cli.output import print_json, say
from nextlabel.cli.serve import needs_service
from nextlabel.cli.webhook.common import WebhookId, webhooks_at


def remove(id: Id, webhook: WebhookId, db: Db = DB, as_json: Json = False) -> None:
    """Tell an address nothing more."""
    needs_service()
    with webhooks_at(db) as (webhooks, _):
        webhooks.remove(id, webhook)
    if as_json:
        print_json({"removed": webhook})
    else:
        say(f"Webhook {webhook} was removed.")
