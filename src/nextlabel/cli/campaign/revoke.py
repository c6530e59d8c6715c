"""``nextlabel campaign revoke``: end links of workers."""

from __future__ import annotations

from typing import Annotated

import typer

from nextlabel.cli.campaign.common import Id, service_at
from nextlabel.cli.options import DB, Db, Json
from nextlabel.cli.output import print_json, say
from nextlabel.errors import InputError
from nextlabel.prose import listed


def revoke(
    id: Id,
    workers: Annotated[list[str] | None, typer.Argument(metavar="WORKERS...", help="The workers' names.")] = None,
    join: Annotated[
        bool, typer.Option("--join", help="The link for platforms, and the sessions of all who came by it.")
    ] = False,
    audit: Annotated[bool, typer.Option("--audit", help="The links of experts who answer an audit.")] = False,
    db: Db = DB,
    as_json: Json = False,
) -> None:
    """End the links of workers, in running services within seconds; 'campaign links' then makes new ones."""
    if not workers and not join and not audit:
        raise InputError("nothing says whose links are to end.", "Name workers, or give --join or --audit.")
    with service_at(db) as service:
        from nextlabel.service.links import revoke_links

        service.store.row(id)
        revoke_links(service.store, id, workers or [], join, audit)
    if as_json:
        print_json({"campaign": id, "workers": workers or [], "join": join, "audit": audit})
        return
    ended = [*(workers or []), *(["everybody who came from a platform"] if join else [])]
    ended += ["experts"] if audit else []
    say(f"Links to {id} are no longer valid for {listed(ended)}.")
