"""``nextlabel campaign rebuild``: derive the state of a campaign from its events again."""

from __future__ import annotations

from nextlabel.cli.campaign.common import Id, fields_of, service_at
from nextlabel.cli.options import DB, Db, Json
from nextlabel.cli.output import print_json, say, working
from nextlabel.prose import counted


def rebuild(id: Id, db: Db = DB, as_json: Json = False) -> None:
    """Derive everything but the events from the events again."""
    with service_at(db) as service:
        before = service.store.row(id)
        with working("Replaying events") as progress:
            row = service.rebuild(id, progress)
    if as_json:
        print_json({**fields_of(row), "unchanged": row == before})
        return
    same = "as before" if row == before else "not as before: the old ones did not follow from the events"
    say(f"{id}: {counted(row.seq, 'event')} replayed, counters {same}.")
