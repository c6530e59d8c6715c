"""What the commands of ``nextlabel webhook`` share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nextlabel.cli.database import opened_store

if TYPE_CHECKING:
    from nextlabel.campaign.ledger import Store
    from nextlabel.campaign.webhooks import Webhook
    from nextlabel.campaigns.webhooks import Webhooks

WebhookId = Annotated[str, typer.Argument(metavar="WEBHOOK", help="Its id; nextlabel webhook list shows them.")]


@contextmanager
def webhooks_at(db: str) -> Iterator[tuple[Webhooks, Store]]:
    """The webhooks of a database."""
    with opened_store(db) as store:
        from nextlabel.campaigns.webhooks import Webhooks

        yield Webhooks(store), store


def fields_of(webhook: Webhook) -> dict[str, Any]:
    """What ``--json`` prints of a webhook."""
    return {**asdict(webhook), "state": webhook.state}
