"""Webhooks (``campaign.webhooks``) in memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from threading import RLock

from nextlabel.campaign.webhooks import Webhook


class MemoryWebhooks:
    """The webhooks of one process; ``last_event`` is the number of a campaign's last event, or raises."""

    def __init__(self, lock: RLock, last_event: Callable[[str], int]) -> None:
        self._lock, self._last_event = lock, last_event
        self._webhooks: dict[str, Webhook] = {}
        self._claims: dict[str, tuple[str, float]] = {}

    def add(self, webhook: Webhook) -> None:
        """A new webhook."""
        with self._lock:
            self._last_event(webhook.campaign)
            self._webhooks[webhook.id] = webhook

    def of(self, campaign: str) -> list[Webhook]:
        """Those of a campaign."""
        with self._lock:
            return [one for one in self._webhooks.values() if one.campaign == campaign]

    def remove(self, campaign: str, id: str) -> bool:
        """End one."""
        with self._lock:
            if not any(one.id == id for one in self.of(campaign)):
                return False
            del self._webhooks[id]
            return True

    def forget(self, campaign: str) -> None:
        """The campaign was deleted."""
        for one in self.of(campaign):
            self.remove(campaign, one.id)

    def due(self, now: float) -> list[Webhook]:
        """Those that have something to be told."""
        with self._lock:
            return [
                one
                for one in self._webhooks.values()
                if one.disabled is None
                and one.next_at <= now
                and self._last_event(one.campaign) > one.position
                and self._claims.get(one.id, ("", 0.0))[1] <= now
            ]

    def claim(self, webhook: Webhook, owner: str, now: float, until: float) -> bool:
        """Be the one who tells it."""
        with self._lock:
            if self._webhooks.get(webhook.id) != webhook or self._claims.get(webhook.id, ("", 0.0))[1] > now:
                return False
            self._claims[webhook.id] = owner, until
            return True

    def save(self, webhook: Webhook, owner: str, until: float) -> bool:
        """Write how far it has got."""
        with self._lock:
            if webhook.id not in self._webhooks or self._claims.get(webhook.id, ("", 0.0))[0] != owner:
                return False
            self._webhooks[webhook.id] = webhook
            self._claims[webhook.id] = owner, until
            return True

    def enable(self, campaign: str, id: str) -> bool:
        """Go on with one."""
        with self._lock:
            found = next((one for one in self.of(campaign) if one.id == id), None)
            if found is None:
                return False
            self._webhooks[id] = replace(found, disabled=None, failures=0, first_failed_at=None, next_at=0.0)
            return True
