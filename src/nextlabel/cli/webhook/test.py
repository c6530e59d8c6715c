"""``nextlabel webhook test``: a message on trial."""

from __future__ import annotations

from anyio.from_thread import start_blocking_portal

from nextlabel.cli.campaign.common import Id
from nextlabel.cli.options import DB, Db, Json
from nextlabel.cli.output import print_json, say
from nextlabel.cli.serve import needs_service
from nextlabel.cli.webhook.common import WebhookId, webhooks_at
from nextlabel.errors import UnavailableError


def test(id: Id, webhook: WebhookId, db: Db = DB, as_json: Json = False) -> None:
    """Send a signed message of the type webhook.test now, and show what the receiver says."""
    needs_service()
    from nextlabel.service.settings import ServiceSettings
    from nextlabel.service.webhook_sender import send_trial

    with webhooks_at(db) as (webhooks, store):
        found = webhooks.get(id, webhook)
        with start_blocking_portal() as portal:
            reply = portal.call(send_trial, store, ServiceSettings(), found, webhooks.trial(found))
    if not reply.ok:
        raise UnavailableError(f"{found.url} did not acknowledge the message: {reply.said}.", "See the receiver's log.")
    if as_json:
        print_json({"ok": reply.ok, "said": reply.said})
    else:
        say(f"{found.url} acknowledged the message: {reply.said}.")
