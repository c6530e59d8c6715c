"""Webhooks are added, and told what happens: in the order of the log, at least once, and outside of transactions.

A process that tells a webhook has claimed it for some seconds, so that no other does the same; if it is killed, the
claim runs out, and another goes on from the last place that was written. What has been told since is told again, under
the same ids. A receiver that fails is tried again after ``WAITS_S``; after ``GIVEN_UP_S`` of failing the webhook is
disabled, and goes on where it was when it is enabled.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from nextlabel.campaign.events import Event
from nextlabel.campaign.notices import Notice, notice_table
from nextlabel.campaign.results import label_counts
from nextlabel.campaign.webhooks import (
    MOST_WEBHOOKS,
    TEST,
    Message,
    Reply,
    Webhook,
    checked_types,
    message_id,
    no_webhook,
    types_told,
)
from nextlabel.errors import ConflictError, NotFoundError
from nextlabel.store.sql import SqlStore
from nextlabel.wording import iso

#: Seconds before the next try after one failure, two in a row, and so on; the last one from then on.
WAITS_S: Final = (1.0, 5.0, 30.0, 120.0, 600.0, 1800.0, 3600.0, 7200.0, 21_600.0)
#: A receiver that says when to try again is waited for, but not longer.
LONGEST_TOLD_S: Final = 3600.0
#: Seconds of failing after which a webhook is disabled.
GIVEN_UP_S: Final = 3 * 86_400.0
#: Events that are read at once; messages, and seconds, after which it is written how far a webhook has got.
AT_ONCE, SAVED_AFTER, SAVED_AFTER_S = 500, 20, 2.0
#: Events without a message that may pass before that is written.
PASSED: Final = 200
#: Characters of a receiver's reply that are kept.
KEPT: Final = 200
_log = logging.getLogger("nextlabel.application")

Send = Callable[[Webhook, Message], Awaitable[Reply]]


class Webhooks:
    """The webhooks of one store; ``claim_s`` is for how long a process claims one."""

    def __init__(self, store: SqlStore, claim_s: float = 30.0, clock: Callable[[], float] | None = None) -> None:
        self._store, self._claim_s = store, claim_s
        self._clock = clock or store.clock
        self._owner = secrets.token_hex(8)
        #: By webhook: its position, and up to which event there is nothing after it that it is told.
        self._looked: dict[str, tuple[int, int]] = {}

    def add(self, campaign: str, url: str, types: Sequence[str] | None = None, from_start: bool = False) -> Webhook:
        """A webhook that is told what happens from now on, or all that has happened too; ``url`` has been checked."""
        row = self._store.row(campaign)
        there = self._store.records.find(Webhook, campaign=campaign)
        if len(there) >= MOST_WEBHOOKS:
            raise ConflictError(f"campaign {campaign!r} has {MOST_WEBHOOKS} webhooks.", "Remove one first.")
        made = Webhook(
            "wh_" + secrets.token_hex(12), campaign, url, checked_types(types, url), self._clock(),
            0 if from_start else row.seq,
        )  # fmt: skip
        self._store.records.add(made)
        return made

    def of(self, campaign: str) -> list[Webhook]:
        """Those of a campaign, oldest first."""
        self._store.row(campaign)
        return self._store.records.find(Webhook, campaign=campaign)

    def get(self, campaign: str, id: str) -> Webhook:
        """One of a campaign's."""
        found = next((one for one in self.of(campaign) if one.id == id), None)
        if found is None:
            raise no_webhook(id)
        return found

    def remove(self, campaign: str, id: str) -> None:
        """Tell it nothing more."""
        if not self._store.records.remove(Webhook, campaign=campaign, id=id):
            raise no_webhook(id)

    def enable(self, campaign: str, id: str) -> Webhook:
        """Go on with one that was disabled, or try one that fails again at once; nothing was lost meanwhile."""
        values = {"disabled": None, "failures": 0, "first_failed_at": None, "next_at": 0.0}
        if not self._store.records.change(Webhook, values, campaign=campaign, id=id):
            raise no_webhook(id)
        return self.get(campaign, id)

    def trial(self, webhook: Webhook) -> Message:
        """A message that says nothing but that it has arrived."""
        id = f"{webhook.campaign}.test.{secrets.token_hex(8)}"
        return Message(id, TEST, self._clock(), {"campaign": webhook.campaign, "webhook": webhook.id})

    # Telling -----------------------------------------------------------------------------------------------------

    def due(self) -> list[Webhook]:
        """Those that have something to be told."""
        return self._store.records.due(self._clock())

    async def deliver(self, webhook: Webhook, send: Send) -> int:
        """Tell a webhook what it has not been told; returns how many messages were acknowledged."""
        events, told, unsaved = await asyncio.to_thread(self._messages, webhook), 0, 0
        if not events or not await self._write(self._store.records.claim_webhook, webhook, self._clock()):
            return 0  # nothing is written for events that it is not told
        written, released = self._clock(), True
        try:
            while events:
                for seq, messages in events:
                    for message in messages:
                        reply = await send(webhook, message)
                        if not reply.ok:
                            webhook = self._failed(webhook, reply)
                            return told
                        told, unsaved = told + 1, unsaved + 1
                        webhook = replace(
                            webhook, delivered=webhook.delivered + 1, failures=0, first_failed_at=None, next_at=0.0,
                            last_at=self._clock(), last_reply=reply.said[:KEPT],
                        )  # fmt: skip
                    webhook = replace(webhook, position=seq)
                    if unsaved >= SAVED_AFTER or (unsaved and self._clock() > written + SAVED_AFTER_S):
                        if not await self._write(self._store.records.save_webhook, webhook):
                            return told  # removed, or another process has taken over
                        unsaved, written = 0, self._clock()
                events = await asyncio.to_thread(self._messages, webhook)
            return told
        except BaseException as error:
            released = isinstance(error, asyncio.CancelledError)  # the service ends: another one goes on at once
            raise
        finally:
            if released:
                await asyncio.to_thread(self._store.records.save_webhook, webhook, self._owner, 0.0)

    async def _write(self, write: Callable[..., bool], webhook: Webhook, *now: float) -> bool:
        """Claim a webhook for a while, or write how far it has got and claim it further; False if others have it."""
        return await asyncio.to_thread(write, webhook, self._owner, *now, self._clock() + self._claim_s)

    def _failed(self, webhook: Webhook, reply: Reply) -> Webhook:
        now = self._clock()
        since = now if webhook.first_failed_at is None else webhook.first_failed_at
        wait = WAITS_S[min(webhook.failures, len(WAITS_S) - 1)]
        wait = max(wait, min(reply.retry_after or 0.0, LONGEST_TOLD_S))
        disabled = None
        if reply.gone:
            disabled = f"The receiver does not want to be told any more: {reply.said[:KEPT]}"
        elif now - since >= GIVEN_UP_S:
            disabled = f"It has failed for {GIVEN_UP_S / 86_400:.0f} days, {webhook.failures + 1:,} times in a row."
        if disabled is not None:
            _log.warning("webhook %s of %s is disabled: %s", webhook.id, webhook.campaign, disabled)
        return replace(
            webhook, failures=webhook.failures + 1, first_failed_at=since, next_at=now + wait, disabled=disabled,
            last_at=now, last_reply=reply.said[:KEPT],
        )  # fmt: skip

    def _messages(self, webhook: Webhook) -> list[tuple[int, list[Message]]]:
        """The next events by number, with what is told of each; empty if there is nothing worth writing down."""
        position, looked = self._looked.get(webhook.id, (-1, 0))
        start = looked if position == webhook.position else webhook.position
        try:
            events = self._store.light_events(webhook.campaign, AT_ONCE, after=start)
        except NotFoundError:  # deleted meanwhile
            return []
        wanted = [(event, [type for type in types_told(event) if type in webhook.types]) for event in events]
        if not any(types for _, types in wanted):
            end = events[-1].seq if events else start
            self._looked[webhook.id] = webhook.position, end
            return [(end, [])] if end - webhook.position >= PASSED else []
        last = max(k for k, (_, types) in enumerate(wanted) if types)
        wanted = wanted[: last + 1]
        made = self._data(webhook.campaign, [event for event, types in wanted if types])
        return [
            (event.seq, [_message(webhook.campaign, event, type, made[event.seq]) for type in types])
            for event, types in wanted
            if types
        ]

    def _data(self, campaign: str, events: list[Event]) -> dict[int, dict[str, Any]]:
        """What is told of each event, by its number."""
        row = self._store.row(campaign)
        named = [one.data["lease"] for one in events if "lease" in one.data]
        leases = {lease.id: lease for lease in self._store.leases(campaign, ids=named)}
        tasks = self._store.tasks_by_number(campaign, [lease.task for lease in leases.values()])
        out: dict[int, dict[str, Any]] = {}
        for event in events:
            data: dict[str, Any] = {"campaign": campaign, "event": event.seq}
            lease = leases.get(event.data.get("lease", ""))
            if lease is not None:
                task = tasks[lease.task]
                counts = label_counts(row.config, task.node)
                data |= {
                    "task": task.key, "lease": lease.id, "worker": lease.worker,
                    "label": row.config.answer_type.name_of(event.data["label"]),
                    "labels": dict(zip(row.config.labels, counts, strict=True)) if len(counts) > 1 else {},
                }  # fmt: skip
            data |= {name: event.data[name] for name in ("counted", "comment", "reason") if name in event.data}
            if event.kind == "noticed":
                data["notices"] = [notice_table(Notice(*one)) for one in event.data["new"]]
            out[event.seq] = {**data, "late": True} if event.kind == "late" else data
        return out


#: What a message of a type has besides campaign and event.
_FIELDS: Final[dict[str, tuple[str, ...]]] = {
    "label.created": ("task", "worker", "label", "lease", "counted", "late", "comment"),
    "label.undone": ("task", "worker", "label", "lease"),
    "task.closed": ("task", "labels"),
    "campaign.closed": ("reason",),
    "campaign.reopened": (),
    "campaign.notice": ("notices",),
}


def _message(campaign: str, event: Event, type: str, data: dict[str, Any]) -> Message:
    names = ("campaign", "event", *_FIELDS[type])
    told = {name: data[name] for name in names if name in data}
    return Message(message_id(campaign, event.seq, type), type, event.at, told)


def body_of(message: Message) -> dict[str, Any]:
    """The body of a message, as JSON."""
    return {"type": message.type, "timestamp": iso(message.at), "data": message.data}
