"""``nextlabel token``: a new requester token for a database."""

from __future__ import annotations

import sys

from nextlabel.cli.options import DB, Db, Json
from nextlabel.cli.output import print_json
from nextlabel.cli.serve import needs_service


def token(db: Db = DB, as_json: Json = False) -> None:
    """Make and show a new requester token; the old one stops working."""
    needs_service()
    from nextlabel.service.tokens import new_token
    from nextlabel.store.open import open_store

    store = open_store(db)
    try:
        made = new_token(store)
    finally:
        store.close()
    if as_json:
        print_json({"token": made})
    else:
        sys.stdout.write(made + "\n")
