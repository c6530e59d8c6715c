"""``nextlabel campaign events``: the log of a campaign."""

from __future__ import annotations

import json
import sys
from typing import Annotated

from nextlabel.cli.campaign.common import Id, service_at
from nextlabel.cli.options import DB, Db, Json, whole
from nextlabel.cli.output import print_json


def events(
    id: Id,
    after: Annotated[int, whole("--after", "SEQ", 0, "0", "Only events after the one with this number.")] = 0,
    limit: Annotated[int, whole("--limit", "N", 1, "1000", "At most this many events.")] = 1000,
    db: Db = DB,
    as_json: Json = False,
) -> None:
    """Print the log of a campaign, one JSON object per line."""
    with service_at(db) as service:
        rows = [
            {"seq": event.seq, "at": event.at, "kind": event.kind, "data": event.data}
            for event in service.store.events(id, after, limit)
        ]
    if as_json:
        print_json({"events": rows})
    else:
        sys.stdout.writelines(json.dumps(row) + "\n" for row in rows)
