"""``nextlabel prolific statuses``: submissions, and their statuses from a file where there is no webhook."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from nextlabel.cli.campaign.common import Id, service_at
from nextlabel.cli.options import DB, Db, Json
from nextlabel.cli.output import print_json, say
from nextlabel.cli.serve import needs_service
from nextlabel.prose import counted


def statuses(
    id: Id,
    file: Annotated[
        str | None, typer.Argument(metavar="EXPORT", help="Prolific's list of submissions, a CSV file. Default: none.")
    ] = None,
    db: Db = DB,
    as_json: Json = False,
) -> None:
    """List the submissions of a campaign; with Prolific's export, do first what its webhook would have done.

    What participants hold who returned their submission or ran out of time goes to others. Labels of rejected
    submissions are dropped, and taken in again if the rejection is taken back.
    """
    needs_service()
    changes = []
    if file is not None:
        from nextlabel.files.open_table import open_stream
        from nextlabel.integrations.prolific import read_export

        with open_stream(file) as stream:
            changes = read_export(stream, file)
    with service_at(db) as service:
        from nextlabel.service.settings import ServiceSettings

        service.store.row(id)
        effects = service.visits.statuses_changed(id, changes, ServiceSettings().drop_statuses)
        found = service.store.visits.of(id, "prolific")
    if file is not None:
        done = ", ".join(f"{many} {effect}" for effect, many in effects.items()) or "none of this campaign"
        say(f"{counted(len(changes), 'submission')} read: {done}.")
    if as_json:
        rows = [{"submission": one.id, "worker": one.worker, "study": one.study, "status": one.status} for one in found]
        print_json({"submissions": rows, "effects": effects})
        return
    for one in found:
        sys.stdout.write(f"{one.id}\t{one.worker}\t{one.status or '-'}\n")
