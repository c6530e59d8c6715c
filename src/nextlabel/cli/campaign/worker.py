"""``nextlabel campaign worker``: pause, block or restore one worker; drop or restore their labels."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from nextlabel.cli.campaign.common import Id, service_at
from nextlabel.cli.options import DB, Db, Json, refuse_idle
from nextlabel.cli.output import print_json, say
from nextlabel.prose import counted

Action = Literal["pause", "block", "restore", "drop-labels", "restore-labels"]


def worker(
    context: typer.Context,
    id: Id,
    name: Annotated[str, typer.Argument(metavar="WORKER", help="The worker's name.")],
    action: Annotated[Action, typer.Argument(metavar="ACTION", help="What to do, as described above.")],
    reason: Annotated[
        str, typer.Option(metavar="TEXT", help="Why, for the log; the worker does not see it.", show_default=False)
    ] = "",
    db: Db = DB,
    as_json: Json = False,
) -> None:
    """Change how one worker stands: pause, block, restore, drop-labels or restore-labels.

    A paused worker gets no new task. A blocked one gets none, loses the one that they hold, and no answer that still
    comes counts. Dropped labels leave the results but stay spent; restored ones come back where there is room.
    """
    from nextlabel.campaign.standing import STANDINGS, Standing

    standings: dict[str, Standing] = {"pause": "paused", "block": "blocked", "restore": "active"}
    if action in ("restore", "restore-labels"):
        refuse_idle(context, ["reason"], "pause, block or drop-labels")
    with service_at(db) as service:
        if action in standings:
            row = service.set_standing(id, name, standings[action], reason)
            table: dict[str, object] = {"worker": name, "standing": row.standing, "reason": row.reason}
            sentence = f"{name} is {row.standing}. {STANDINGS[row.standing]}"
        elif action == "drop-labels":
            changed = service.drop_labels(id, name, reason).changed
            table = {"worker": name, "dropped": changed}
            sentence = f"{counted(changed, 'label')} of {name} dropped; they stay spent."
        else:
            done = service.restore_labels(id, name)
            table = {"worker": name, "restored": done.changed, "left": done.left}
            left = f" {counted(done.left, 'label')} found no room." if done.left else ""
            sentence = f"{counted(done.changed, 'label')} of {name} restored.{left}"
    if as_json:
        print_json(table)
    else:
        say(sentence)
