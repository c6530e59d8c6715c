"""``nextlabel campaign change``: pause a campaign, change its settings or set the answers of items, while it runs."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from nextlabel.cli.campaign.setting_flags import setting_flags, typed_settings
from nextlabel.cli.database import Id, fields_of, service_at, state_of
from nextlabel.cli.options import DB, Db, Json, text
from nextlabel.cli.output import answer
from nextlabel.errors import InputError


@setting_flags(changing=True)
def change(
    id: Id,
    paused: Annotated[
        bool | None,
        typer.Option("--pause/--resume", help="Hand out no new tasks, or hand them out again.", show_default=False),
    ] = None,
    adjudicate: Annotated[
        tuple[str, str] | None,
        typer.Option(
            "--adjudicate",
            metavar="TASK ANSWER",
            help="Set the answer of a doubtful item: it is final, teaches who is good, and is marked in the results.",
            show_default=False,
        ),
    ] = None,
    undo: Annotated[
        str | None, text("--undo-adjudication", "TASK", "Take such an answer back: the labels decide about it again.")
    ] = None,
    db: Db = DB,
    as_json: Json = False,
    **typed: Any,
) -> None:
    """Pause a campaign, resume it, change settings while it runs, or set the answers of doubtful items.

    Workers who hold a task when it is paused can finish it, and see other texts with their next task. --budget +N and
    -N change the old budget; none takes away what may be left out, e.g. --deadline none.
    """
    values = typed_settings(typed, changing=True)
    if not values and paused is None and adjudicate is None and undo is None:
        raise InputError("nothing says what to change.", "Give e.g. --budget, --pause or --question.")
    with service_at(db) as service:
        if (typed["budget"] or "")[:1] in ("+", "-"):
            values["budget"] += service.store.row(id).budget
        if adjudicate is not None:
            service.adjudicate(id, dict([adjudicate]))
        if undo is not None:
            service.undo_adjudication(id, [undo])
        row = service.change(id, values) if values else service.store.row(id)
        if paused is not None:
            row = service.pause(id) if paused else service.resume(id)
    sentence = f"{id} is {state_of(row)}"
    if "budget" in values:
        sentence += f" and may buy {row.budget:,} labels: {row.spent:,} spent, {row.reserved:,} out, {row.left:,} left"
    said = "" if adjudicate is None else f" The answer of {adjudicate[0]} is {adjudicate[1]}."
    said += "" if undo is None else f" The labels decide about {undo} again."
    answer(as_json, fields_of(row), f"{sentence}.{said}")
