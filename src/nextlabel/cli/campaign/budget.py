"""``nextlabel campaign budget``: another budget, while the campaign runs."""

from __future__ import annotations

from typing import Annotated

import typer

from nextlabel.cli.campaign.common import Id, number_of, service_at, show_change
from nextlabel.cli.options import DB, Db, Json


def budget(
    id: Id,
    labels: Annotated[str, typer.Argument(metavar="LABELS", help="The new budget; +N and -N change the old one.")],
    db: Db = DB,
    as_json: Json = False,
) -> None:
    """Set another budget while the campaign runs."""
    with service_at(db) as service:
        number = number_of("the budget", labels)
        if labels[:1] in "+-":
            number += service.store.row(id).budget
        row = service.change(id, {"budget": number})
    sentence = f"{id} may buy {row.budget:,} labels: {row.spent:,} are spent, {row.reserved:,} out, {row.left:,} left."
    show_change(row, sentence, as_json)
