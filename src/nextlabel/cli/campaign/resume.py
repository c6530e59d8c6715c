"""``nextlabel campaign resume``: hand out tasks again."""

from __future__ import annotations

from nextlabel.cli.campaign.common import Id, service_at, show_change, state_of
from nextlabel.cli.options import DB, Db, Json


def resume(id: Id, db: Db = DB, as_json: Json = False) -> None:
    """Hand out new tasks again."""
    with service_at(db) as service:
        row = service.resume(id)
    show_change(row, f"{id} is {state_of(row)}.", as_json)
