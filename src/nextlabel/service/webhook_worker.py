"""Webhooks are told in the background, by a thread with an event loop of its own: nobody who asks waits for them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from nextlabel.campaign.webhooks import Webhook
from nextlabel.campaigns.webhooks import Webhooks
from nextlabel.errors import UnavailableError
from nextlabel.service.logs import request_log
from nextlabel.service.webhook_sender import WebhookSender

#: Seconds between two looks at the logs; webhooks that are told at the same time; seconds to end in.
INTERVAL_S, MOST_AT_ONCE, END_S = 1.0, 20, 3.0


class WebhookWorker:
    """Tells the webhooks of a store."""

    def __init__(self, webhooks: Webhooks, sender: WebhookSender) -> None:
        self._webhooks, self._sender = webhooks, sender
        self._busy: dict[str, asyncio.Task[None]] = {}

    @contextmanager
    def running(self) -> Iterator[None]:
        """Tell webhooks until the end of the block."""
        loop = asyncio.new_event_loop()
        ended = asyncio.Event()
        thread = threading.Thread(target=self._run, args=(loop, ended), name="webhook-worker", daemon=True)
        thread.start()
        try:
            yield
        finally:
            loop.call_soon_threadsafe(ended.set)
            thread.join(END_S)

    def _run(self, loop: asyncio.AbstractEventLoop, ended: asyncio.Event) -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(self._work(ended))

    async def _work(self, ended: asyncio.Event) -> None:
        while not ended.is_set():
            try:
                for webhook in await asyncio.to_thread(self._webhooks.due):
                    if webhook.id not in self._busy and len(self._busy) < MOST_AT_ONCE:
                        self._busy[webhook.id] = asyncio.create_task(self._deliver(webhook))
            except UnavailableError:  # tried again
                pass
            except Exception as error:
                request_log.warning("webhooks could not be looked at", exc_info=error)
            try:
                await asyncio.wait_for(ended.wait(), INTERVAL_S)
            except TimeoutError:
                continue
        for task in list(self._busy.values()):
            task.cancel()
        await asyncio.gather(*self._busy.values(), return_exceptions=True)
        await self._sender.close()

    async def _deliver(self, webhook: Webhook) -> None:
        try:
            told = await self._webhooks.deliver(webhook, self._sender.send)
            if told:
                request_log.debug("webhook %s of %s was told %d messages", webhook.id, webhook.campaign, told)
            now = await asyncio.to_thread(self._webhooks.find, webhook)
            if now is not None and now.disabled is not None:
                request_log.warning("webhook %s of %s is disabled: %s", now.id, now.campaign, now.disabled)
        except UnavailableError:  # tried again
            pass
        except Exception as error:
            request_log.warning("webhook %s of %s could not be told", webhook.id, webhook.campaign, exc_info=error)
        finally:
            self._busy.pop(webhook.id, None)
