"""``nextlabel webhook list``: the webhooks of a campaign, and how far each has got."""

from __future__ import annotations

from nextlabel.cli.campaign.common import Id
from nextlabel.cli.options import DB, Db, Json
from nextlabel.cli.output import print_json, print_table
from nextlabel.cli.serve import needs_service
from nextlabel.cli.webhook.common import fields_of, webhooks_at
from nextlabel.prose import counted


def list_webhooks(id: Id, db: Db = DB, as_json: Json = False) -> None:
    """Show the webhooks of a campaign, how far each has got, and which of them fail or were disabled."""
    needs_service()
    with webhooks_at(db) as (webhooks, _):
        found = webhooks.of(id)
    if as_json:
        print_json({"webhooks": [fields_of(one) for one in found]})
        return
    cells = [[one.id, one.url, one.state, f"{one.delivered:,}", f"{one.position:,}", one.last_reply] for one in found]
    broken = [f"{one.id}: {one.disabled}" for one in found if one.disabled is not None]
    caption = " ".join([f"{counted(len(found), 'webhook')}.", *broken])
    print_table(f"Webhooks of {id}", ["id", "address", "state", "told", "up to event", "last reply"], cells, caption)
