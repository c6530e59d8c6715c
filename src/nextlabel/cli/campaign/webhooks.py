"""``nextlabel campaign webhooks``: addresses that are told what happens in a campaign."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from nextlabel.cli.database import Id, names_of, opened_store
from nextlabel.cli.options import DB, Db, Json, refuse_idle, text
from nextlabel.cli.output import answer, print_json, print_table, say
from nextlabel.cli.serve import needs_service
from nextlabel.errors import InputError, UnavailableError
from nextlabel.prose import counted

if TYPE_CHECKING:
    from nextlabel.campaign.webhooks import Webhook
    from nextlabel.campaigns.webhooks import Webhooks
    from nextlabel.store.sql import SqlStore


def webhooks(
    context: typer.Context,
    id: Id,
    action: Annotated[
        Literal["add", "test", "enable", "remove"] | None,
        typer.Argument(metavar="[ACTION]", help="add, test, enable or remove. Default: show them."),
    ] = None,
    which: Annotated[
        str | None, typer.Argument(metavar="[WHICH]", help="To add: the address, https://... Else a webhook's id.")
    ] = None,
    types: Annotated[
        str | None,
        text("--types", "A,B", "With add: what to tell: label.created, task.closed, ... Default: everything."),
    ] = None,
    from_start: Annotated[bool, typer.Option("--from-start", help="With add: also tell what happened before.")] = False,
    db: Db = DB,
    as_json: Json = False,
) -> None:
    """Show the addresses that are told what happens in a campaign, or change them.

    A webhook that is added signs its messages with a secret that is shown only once. test sends a message now, enable
    goes on with one that was disabled or fails: it is told all that it has missed.
    """
    needs_service()
    if action != "add":
        refuse_idle(context, ["types", "from_start"], "add")
    if action is not None and which is None:
        raise InputError(f"nothing says what to {action}.", "Give the address to add, or the webhook's id.")
    with opened_store(db) as store:
        from nextlabel.campaigns.webhooks import Webhooks

        hooks = Webhooks(store)
        if action == "add":
            _add(hooks, store, id, str(which), None if types is None else names_of(types), from_start, as_json)
        elif action == "test":
            _test(hooks, store, id, str(which), as_json)
        elif action == "enable":
            enabled = hooks.enable(id, str(which))
            sentence = f"Webhook {which} goes on after event {enabled.position:,}, as soon as a service runs."
            answer(as_json, _fields(enabled), sentence)
        elif action == "remove":
            hooks.remove(id, str(which))
            answer(as_json, {"removed": which}, f"Webhook {which} was removed.")
        else:
            _show(id, hooks.of(id), as_json)


def _add(
    hooks: Webhooks, store: SqlStore, id: str, url: str, types: list[str] | None, from_start: bool, as_json: bool
) -> None:
    from nextlabel.service.settings import ServiceSettings
    from nextlabel.service.webhooks import WebhookSender, checked_url

    settings = ServiceSettings()
    made = hooks.add(id, str(checked_url(url, settings)), types, from_start)
    secret = WebhookSender(store, settings).secret_of(made.id)
    if as_json:
        print_json({**_fields(made), "secret": secret})
        return
    say(f"Webhook {made.id} tells {made.url}: {', '.join(made.types)}. Its secret, shown this once:")
    sys.stdout.write(secret + "\n")


def _test(hooks: Webhooks, store: SqlStore, id: str, webhook: str, as_json: bool) -> None:
    from anyio.from_thread import start_blocking_portal

    from nextlabel.service.settings import ServiceSettings
    from nextlabel.service.webhooks import send_trial

    tested = hooks.get(id, webhook)
    with start_blocking_portal() as portal:
        reply = portal.call(send_trial, store, ServiceSettings(), tested, hooks.trial(tested))
    if not reply.ok:
        raise UnavailableError(
            f"{tested.url} did not acknowledge the message: {reply.said}.", "See the receiver's log."
        )
    answer(as_json, {"ok": reply.ok, "said": reply.said}, f"{tested.url} acknowledged the message: {reply.said}.")


def _show(id: str, hooks: list[Webhook], as_json: bool) -> None:
    if as_json:
        print_json({"webhooks": [_fields(one) for one in hooks]})
        return
    cells = [[one.id, one.url, one.state, f"{one.delivered:,}", f"{one.position:,}", one.last_reply] for one in hooks]
    broken = [f"{one.id}: {one.disabled}" for one in hooks if one.disabled is not None]
    caption = " ".join([f"{counted(len(hooks), 'webhook')}.", *broken])
    print_table(f"Webhooks of {id}", ["id", "address", "state", "told", "up to event", "last reply"], cells, caption)


def _fields(webhook: Webhook) -> dict[str, Any]:
    return {**asdict(webhook), "state": webhook.state}
