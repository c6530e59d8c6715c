"""``nextlabel token revoke``: end a token."""

from __future__ import annotations

from typing import Annotated

import typer

from nextlabel.cli.database import opened_store
from nextlabel.cli.options import DB, Db, Json
from nextlabel.cli.output import print_json, say


def revoke(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The token's name; nextlabel token list shows them.")],
    db: Db = DB,
    as_json: Json = False,
) -> None:
    """End a token and the sessions of browsers that signed in with it, in running services within seconds."""
    with opened_store(db) as store:
        from nextlabel.service.tokens import revoke_token

        revoke_token(store, name)
    if as_json:
        print_json({"revoked": name})
    else:
        say(f"The token {name} is no longer valid.")
