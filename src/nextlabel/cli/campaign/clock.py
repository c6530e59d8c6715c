"""``nextlabel campaign clock``: hold the clock against the campaigns' last events, and accept it."""

from __future__ import annotations

from typing import Annotated

import typer

from nextlabel.cli.campaign.common import service_at
from nextlabel.cli.options import DB, Db, Json
from nextlabel.cli.output import print_json, print_table, say
from nextlabel.prose import counted


def clock(
    id: Annotated[str | None, typer.Argument(metavar="ID", help="The campaign's id. Default: all campaigns.")] = None,
    accept: Annotated[
        bool, typer.Option("--accept", help="Go on by the clock although it is far from the last event.")
    ] = False,
    db: Db = DB,
    as_json: Json = False,
) -> None:
    """Show the clock that campaigns run by, and accept it after it was set.

    Commands are refused while the clock is more than a minute behind, or more than 30 days ahead of a campaign's last
    event. Check the clock first. Once it is accepted, leases that were given out by a wrong clock end as if they had
    been given out now, and a campaign that was closed too early by its deadline is open again.
    """
    from nextlabel.campaign.clock import doubt_about
    from nextlabel.service.times import iso

    with service_at(db) as service:
        rows = service.store.campaigns() if id is None else [service.store.row(id)]
        accepted = [row.id for row in rows if service.accept_clock(row.id)] if accept else []
        rows = [service.store.row(row.id) for row in rows]
        now = service.clock()
    refused = [row.id for row in rows if doubt_about(row, now) is not None]
    if as_json:
        fields = [{"id": row.id, "last_at": iso(row.last_at), "ahead_s": now - row.last_at} for row in rows]
        print_json({"clock": iso(now), "campaigns": fields, "refused": refused, "accepted": accepted})
        return
    if accept:
        say(f"The clock says {iso(now)}; {counted(len(accepted), 'campaign')} accepted it.")
        return
    cells = [[row.id, iso(row.last_at), "refused" if row.id in refused else "fine"] for row in rows]
    caption = f"{counted(len(refused), 'campaign')} of {len(rows):,} cannot go on by this clock."
    print_table(f"The clock says {iso(now)}", ["id", "last event", "clock"], cells, caption)
