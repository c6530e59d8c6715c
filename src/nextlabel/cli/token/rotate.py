"""``nextlabel token rotate``: a new secret for links and cookies."""

from __future__ import annotations

from nextlabel.cli.database import opened_store
from nextlabel.cli.options import DB, Db, Json
from nextlabel.cli.output import print_json, say


def rotate(db: Db = DB, as_json: Json = False) -> None:
    """Invalidate all workers' links and end all sessions, in running services within seconds. Tokens stay valid."""
    with opened_store(db) as store:
        from nextlabel.service.access import rotate_secrets

        rotate_secrets(store)
    if as_json:
        print_json({"rotated": True})
    else:
        say("All links and sessions have ended. Make links again: nextlabel campaign links. Tokens are as before.")
