"""``nextlabel campaign rename``: another name; the id stays."""

from __future__ import annotations

from typing import Annotated

import typer

from nextlabel.cli.campaign.common import Id, service_at, show_change
from nextlabel.cli.options import DB, Db, Json


def rename(
    id: Id,
    name: Annotated[str, typer.Argument(metavar="NAME", help="What it is called from now on; empty for its id.")],
    db: Db = DB,
    as_json: Json = False,
) -> None:
    """Give a campaign another name; its id, links and files stay as they are."""
    with service_at(db) as service:
        row = service.change(id, {"name": name})
    show_change(row, f"{id} is called {row.config.name or id}.", as_json)
