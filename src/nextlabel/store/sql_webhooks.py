"""Webhooks (``campaign.webhooks``) in a database."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from sqlalchemy import Connection, Row, delete, insert, select, update

from nextlabel.campaign.webhooks import Webhook
from nextlabel.store.memory import no_campaign
from nextlabel.store.statements import GONE
from nextlabel.store.tables import campaigns, webhooks

Begin = Callable[[], AbstractContextManager[Connection]]
#: What is written as a webhook is told.
PROGRESS = (
    "position", "delivered", "failures", "first_failed_at", "next_at", "disabled", "last_at", "last_reply",
)  # fmt: skip
_found = select(webhooks, campaigns.c.id.label("campaign_id")).join(
    campaigns, campaigns.c.number == webhooks.c.campaign
)
_fields = ("id", "url", "created_at", *PROGRESS)


class SqlWebhooks:
    """The webhooks of a database; ``read`` and ``write`` begin transactions."""

    def __init__(self, read: Begin, write: Begin) -> None:
        self._read, self._write = read, write

    def add(self, webhook: Webhook) -> None:
        """A new webhook."""
        values = {name: getattr(webhook, name) for name in _fields}
        with self._write() as connection:
            number = connection.execute(select(campaigns.c.number).where(campaigns.c.id == webhook.campaign)).scalar()
            if number is None:
                raise no_campaign(webhook.campaign)
            values |= {"campaign": number, "types": ",".join(webhook.types), "owner": "", "claimed_until": 0.0}
            connection.execute(insert(webhooks).values(values))

    def of(self, campaign: str) -> list[Webhook]:
        """Those of a campaign, oldest first."""
        order = (webhooks.c.created_at, webhooks.c.id)
        with self._read() as connection:
            found = connection.execute(_found.where(campaigns.c.id == campaign).order_by(*order))
            return [_webhook(row) for row in found]

    def remove(self, campaign: str, id: str) -> bool:
        """End one."""
        with self._write() as connection:
            return connection.execute(delete(webhooks).where(*_which(campaign, id))).rowcount > 0

    def due(self, now: float) -> list[Webhook]:
        """Those that have something to be told."""
        wanted = (
            webhooks.c.disabled.is_(None), webhooks.c.next_at <= now, webhooks.c.claimed_until <= now,
            campaigns.c.seq > webhooks.c.position, campaigns.c.id.not_like(f"{GONE}%"),
        )  # fmt: skip
        with self._read() as connection:
            return [_webhook(row) for row in connection.execute(_found.where(*wanted))]

    def claim(self, webhook: Webhook, owner: str, now: float, until: float) -> bool:
        """Be the one who tells it: only if it is where it was read."""
        same = (
            webhooks.c.id == webhook.id, webhooks.c.claimed_until <= now, webhooks.c.position == webhook.position,
            webhooks.c.failures == webhook.failures, webhooks.c.disabled.is_(None),
        )  # fmt: skip
        with self._write() as connection:
            change = update(webhooks).where(*same).values(owner=owner, claimed_until=until)
            return connection.execute(change).rowcount > 0

    def save(self, webhook: Webhook, owner: str, until: float) -> bool:
        """Write how far it has got."""
        values: dict[str, Any] = {name: getattr(webhook, name) for name in PROGRESS}
        which = (webhooks.c.id == webhook.id, webhooks.c.owner == owner)
        with self._write() as connection:
            change = update(webhooks).where(*which).values(**values, claimed_until=until)
            return connection.execute(change).rowcount > 0

    def enable(self, campaign: str, id: str) -> bool:
        """Go on with one."""
        values = {"disabled": None, "failures": 0, "first_failed_at": None, "next_at": 0.0}
        with self._write() as connection:
            return connection.execute(update(webhooks).where(*_which(campaign, id)).values(values)).rowcount > 0


def _which(campaign: str, id: str) -> tuple[Any, Any]:
    number = select(campaigns.c.number).where(campaigns.c.id == campaign).scalar_subquery()
    return webhooks.c.id == id, webhooks.c.campaign == number


def _webhook(row: Row[Any]) -> Webhook:
    values = {name: getattr(row, name) for name in _fields}
    return Webhook(campaign=row.campaign_id, types=tuple(row.types.split(",")), **values)
