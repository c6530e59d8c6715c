"""``nextlabel campaign change``: other settings, while the campaign runs."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from nextlabel.campaign.declaration import declared
from nextlabel.cli.campaign.common import Id, number_of, service_at, show_change
from nextlabel.cli.options import DB, Db, Json
from nextlabel.errors import InputError


def change(
    id: Id,
    pay_per_label: Annotated[
        str | None, typer.Option(metavar="P", help=declared("pay_per_label").help, show_default=False)
    ] = None,
    most_labels_per_worker: Annotated[
        str | None, typer.Option(metavar="N", help="Most labels that one worker may give; none for no limit.")
    ] = None,
    turn_away: Annotated[
        bool | None, typer.Option("--turn-away/--serve-all", help=declared("turn_away").help, show_default=False)
    ] = None,
    db: Db = DB,
    as_json: Json = False,
) -> None:
    """Change settings while the campaign runs; budget and deadline have commands of their own."""
    values: dict[str, Any] = {}
    if pay_per_label is not None:
        values["pay_per_label"] = number_of("--pay-per-label", pay_per_label)
    if most_labels_per_worker is not None:
        none = most_labels_per_worker == "none"
        values["most_labels_per_worker"] = (
            None if none else number_of("--most-labels-per-worker", most_labels_per_worker)
        )
    if turn_away is not None:
        values["turn_away"] = turn_away
    if not values:
        raise InputError(
            "nothing says what to change.", "Give --pay-per-label, --most-labels-per-worker or --turn-away."
        )
    with service_at(db) as service:
        row = service.change(id, values)
    show_change(row, f"{id} is changed.", as_json)
