"""``nextlabel campaign deadline``: another deadline, or none."""

from __future__ import annotations

from typing import Annotated

import typer

from nextlabel.cli.campaign.common import Id, service_at, show_change, state_of
from nextlabel.cli.options import DB, Db, Json
from nextlabel.cli.serve import needs_service


def deadline(
    id: Id,
    time: Annotated[str, typer.Argument(metavar="TIME", help="A time such as 2026-07-01T12:00:00Z, or none.")],
    db: Db = DB,
    as_json: Json = False,
) -> None:
    """Set another deadline, or none, while the campaign runs."""
    needs_service()
    with service_at(db) as service:
        row = service.change(id, {"deadline": None if time == "none" else time})
    show_change(row, f"{id} is {state_of(row)}; deadline: {time}.", as_json)
