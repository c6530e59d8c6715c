"""``nextlabel campaign pause``: hand out no tasks for now."""

from __future__ import annotations

from nextlabel.cli.campaign.common import Id, service_at, show_change, state_of
from nextlabel.cli.options import DB, Db, Json


def pause(id: Id, db: Db = DB, as_json: Json = False) -> None:
    """Hand out no new tasks; workers can finish those they hold."""
    with service_at(db) as service:
        row = service.pause(id)
    show_change(row, f"{id} is {state_of(row)}.", as_json)
