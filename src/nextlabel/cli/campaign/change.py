"""``nextlabel campaign change``: pause a campaign, or change its settings, while it runs."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from nextlabel.cli.campaign.setting_flags import setting_flags, typed_settings
from nextlabel.cli.database import Id, fields_of, service_at, state_of
from nextlabel.cli.options import DB, Db, Json
from nextlabel.cli.output import answer
from nextlabel.errors import InputError


@setting_flags(changing=True)
def change(
    id: Id,
    paused: Annotated[
        bool | None,
        typer.Option("--pause/--resume", help="Hand out no new tasks, or hand them out again.", show_default=False),
    ] = None,
    db: Db = DB,
    as_json: Json = False,
    **typed: Any,
) -> None:
    """Pause a campaign, resume it, or change settings while it runs.

    Workers who hold a task when it is paused can finish it, and see other texts with their next task. --budget +N and
    -N change the old budget; none takes away what may be left out, e.g. --deadline none.
    """
    values = typed_settings(typed, changing=True)
    if not values and paused is None:
        raise InputError("nothing says what to change.", "Give e.g. --budget, --pause or --question.")
    with service_at(db) as service:
        if (typed["budget"] or "")[:1] in ("+", "-"):
            values["budget"] += service.store.row(id).budget
        row = service.change(id, values) if values else service.store.row(id)
        if paused is not None:
            row = service.pause(id) if paused else service.resume(id)
    sentence = f"{id} is {state_of(row)}"
    if "budget" in values:
        sentence += f" and may buy {row.budget:,} labels: {row.spent:,} spent, {row.reserved:,} out, {row.left:,} left"
    answer(as_json, fields_of(row), f"{sentence}.")
