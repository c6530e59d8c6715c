"""``nextlabel campaign links``: links for workers."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from nextlabel.cli.campaign.common import Id, service_at
from nextlabel.cli.options import DB, Db, Json, PublicUrl
from nextlabel.cli.output import print_json, say


def links(
    id: Id,
    workers: Annotated[list[str] | None, typer.Argument(metavar="WORKERS...", help="The workers' names.")] = None,
    public_url: PublicUrl = None,
    db: Db = DB,
    as_json: Json = False,
) -> None:
    """Make a link per worker, and one for platforms such as Prolific."""
    with service_at(db) as service:
        from nextlabel.service.links import LinkSigner, join_url, worker_url
        from nextlabel.service.public_address import link_warning
        from nextlabel.service.settings import ServiceSettings

        service.store.row(id)
        settings = ServiceSettings(public_url=public_url)
        base, signer = settings.base_url, LinkSigner.of(service.store, settings.key_file)
        made = {worker: worker_url(base, signer.worker_token(id, worker)) for worker in workers or []}
        join = join_url(base, signer.join_token(id))
        warning = link_warning(base)
    if warning:
        say(f"warning: {warning}")
    if as_json:
        print_json({"workers": made, "join": join, "warning": warning or None})
        return
    for worker, link in made.items():
        sys.stdout.write(f"{worker}\t{link}\n")
    sys.stdout.write(f"any\t{join}?PROLIFIC_PID=...\n")
