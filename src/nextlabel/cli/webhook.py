"""``nextlabel webhook``: addresses that are told what happens in a campaign."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nextlabel.cli.database import Id, names_of, opened_store
from nextlabel.cli.options import DB, Db, Json, text
from nextlabel.cli.output import answer, print_json, print_table, say
from nextlabel.cli.serve import needs_service
from nextlabel.errors import UnavailableError
from nextlabel.prose import counted

if TYPE_CHECKING:
    from nextlabel.campaign.webhooks import Webhook
    from nextlabel.campaigns.webhooks import Webhooks
    from nextlabel.store.sql import SqlStore

app = typer.Typer(help="Tell other systems what happens in a campaign.")
WebhookId = Annotated[str, typer.Argument(metavar="WEBHOOK", help="Its id; nextlabel webhook list shows them.")]


def add(
    id: Id,
    url: Annotated[str, typer.Argument(metavar="URL", help="The address, https://...")],
    types: Annotated[
        str | None, text("--types", "A,B", "What to tell: label.created, task.closed, ... Default: everything.")
    ] = None,
    from_start: Annotated[bool, typer.Option("--from-start", help="Also tell what happened before.")] = False,
    db: Db = DB,
    as_json: Json = False,
) -> None:
    """Tell an address what happens in a campaign, signed with a secret that is shown only once."""
    needs_service()
    from nextlabel.service.settings import ServiceSettings
    from nextlabel.service.webhooks import WebhookSender, checked_url

    settings = ServiceSettings()
    address = str(checked_url(url, settings))
    with webhooks_at(db) as (webhooks, store):
        made = webhooks.add(id, address, None if types is None else names_of(types), from_start)
        secret = WebhookSender(store, settings).secret_of(made.id)
    if as_json:
        print_json({**fields_of(made), "secret": secret})
        return
    say(f"Webhook {made.id} tells {made.url}: {', '.join(made.types)}. Its secret, shown this once:")
    sys.stdout.write(secret + "\n")


def list_webhooks(id: Id, db: Db = DB, as_json: Json = False) -> None:
    """Show the webhooks of a campaign, how far each has got, and which of them fail or were disabled."""
    with webhooks_at(db) as (webhooks, _):
        found = webhooks.of(id)
    if as_json:
        print_json({"webhooks": [fields_of(one) for one in found]})
        return
    cells = [[one.id, one.url, one.state, f"{one.delivered:,}", f"{one.position:,}", one.last_reply] for one in found]
    broken = [f"{one.id}: {one.disabled}" for one in found if one.disabled is not None]
    caption = " ".join([f"{counted(len(found), 'webhook')}.", *broken])
    print_table(f"Webhooks of {id}", ["id", "address", "state", "told", "up to event", "last reply"], cells, caption)


def test(id: Id, webhook: WebhookId, db: Db = DB, as_json: Json = False) -> None:
    """Send a signed message of the type webhook.test now, and show what the receiver says."""
    needs_service()
    from anyio.from_thread import start_blocking_portal

    from nextlabel.service.settings import ServiceSettings
    from nextlabel.service.webhooks import send_trial

    with webhooks_at(db) as (webhooks, store):
        found = webhooks.get(id, webhook)
        with start_blocking_portal() as portal:
            reply = portal.call(send_trial, store, ServiceSettings(), found, webhooks.trial(found))
    if not reply.ok:
        raise UnavailableError(f"{found.url} did not acknowledge the message: {reply.said}.", "See the receiver's log.")
    answer(as_json, {"ok": reply.ok, "said": reply.said}, f"{found.url} acknowledged the message: {reply.said}.")


def enable(id: Id, webhook: WebhookId, db: Db = DB, as_json: Json = False) -> None:
    """Go on with a webhook that was disabled, or try one that fails at once; it is told all that it has missed."""
    with webhooks_at(db) as (webhooks, _):
        found = webhooks.enable(id, webhook)
    answer(
        as_json,
        fields_of(found),
        f"Webhook {found.id} goes on after event {found.position:,}, as soon as a service runs.",
    )


def remove(id: Id, webhook: WebhookId, db: Db = DB, as_json: Json = False) -> None:
    """Tell an address nothing more."""
    with webhooks_at(db) as (webhooks, _):
        webhooks.remove(id, webhook)
    answer(as_json, {"removed": webhook}, f"Webhook {webhook} was removed.")


app.command()(add)


app.command(name="list")(list_webhooks)


app.command()(test)


app.command()(enable)


app.command()(remove)


@contextmanager
def webhooks_at(db: str) -> Iterator[tuple[Webhooks, SqlStore]]:
    """The webhooks of a database."""
    with opened_store(db) as store:
        from nextlabel.campaigns.webhooks import Webhooks

        yield Webhooks(store), store


def fields_of(webhook: Webhook) -> dict[str, Any]:
    """What ``--json`` prints of a webhook."""
    return {**asdict(webhook), "state": webhook.state}
