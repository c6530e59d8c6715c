"""Webhooks are told in the background: each message signed, to addresses that may be called, within a time.

The headers are those of Standard Webhooks::

    webhook-id         the message's id, the same at every try
    webhook-timestamp  seconds since 1970, of this try
    webhook-signature  v1,BASE64 of HMAC-SHA256(secret, "ID.TIMESTAMP.BODY")

The secret is ``whsec_`` and base64. It is made from the key file and the webhook's id, so that a copy of the database
signs nothing (docs/decisions/0033). Addresses must be https and lead out of the private network, whatever the
name service says at the time of the call; ``webhook_hosts`` of the settings names exceptions. Redirections are
not followed.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import re
import time
from collections.abc import AsyncIterator, Coroutine, Iterable
from contextlib import asynccontextmanager
from email.message import EmailMessage
from email.utils import formatdate
from functools import cached_property
from html import escape
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from smtplib import SMTP, SMTP_SSL
from ssl import create_default_context
from typing import Any
from urllib.parse import unquote, urlsplit

import httpx

from nextlabel.application.webhooks import Webhooks, body_of
from nextlabel.campaign.webhooks import CHAT, LONGEST_URL, MAIL, Message, Reply, Webhook, in_words
from nextlabel.errors import InputError, UnavailableError
from nextlabel.service.links import signing_key
from nextlabel.service.logs import request_log
from nextlabel.service.settings import MAIL_ADDRESS, PREFIX, ServiceSettings
from nextlabel.store.sql import SqlStore
from nextlabel.version import __version__

SECRET = "whsec_"
_ALLOW = f"Name the host in {PREFIX}WEBHOOK_HOSTS to allow it."

#: Seconds between two looks at the logs; webhooks that are told at the same time; seconds to end in.
INTERVAL_S, MOST_AT_ONCE, END_S = 1.0, 20, 3.0

#: Networks whose addresses end in one of IPv4: translated (NAT64, RFC 6052) and compatible ones.
_HOLD_IPV4 = (IPv6Network("64:ff9b::/96"), IPv6Network("::/96"))


class WebhookSender:
    """Sends messages, within one event loop; to be closed."""

    def __init__(self, store: SqlStore, settings: ServiceSettings) -> None:
        self._key = signing_key(store, settings.key_file)
        self._settings = settings

    @cached_property
    def _http(self) -> httpx.AsyncClient:
        """Made when it is needed: most services have no webhooks."""
        return httpx.AsyncClient(
            timeout=self._settings.webhook_seconds, follow_redirects=False, trust_env=False,
            headers={"user-agent": f"nextlabel/{__version__}", "content-type": "application/json"},
        )  # fmt: skip

    async def close(self) -> None:
        """Close the connections."""
        if "_http" in vars(self):
            await vars(self).pop("_http").aclose()

    def secret_of(self, webhook: Webhook) -> str:
        """The secret of a webhook; people need none."""
        return "" if webhook.told_in_words else SECRET + base64.b64encode(self._secret(webhook.id)).decode()

    def _secret(self, id: str) -> bytes:
        return hmac.digest(self._key, b"webhook " + id.encode(), hashlib.sha256)

    async def send(self, webhook: Webhook, message: Message) -> Reply:
        """Send one message, and see what the receiver says."""
        try:
            async with asyncio.timeout(self._settings.webhook_seconds):
                return await self._send(webhook, message)
        except TimeoutError:
            return Reply(False, f"no reply within {self._settings.webhook_seconds:g} seconds")
        except InputError as error:
            return Reply(False, error.message)
        except (httpx.HTTPError, OSError) as error:
            return Reply(False, f"{type(error).__name__}: {error}"[:300])

    def _mail(self, webhook: Webhook, message: Message) -> Reply:
        """Send a message as mail; its id stays the same, so that a second one can be told."""
        server, text, mail = urlsplit(self._settings.smtp), in_words(message), EmailMessage()
        mail["To"] = checked_address(webhook.url, self._settings).removeprefix(MAIL)
        mail["From"] = sender = self._settings.mail_from or f"nextlabel@{server.hostname}"
        mail["Subject"], mail["Date"] = " ".join(text.split())[:120], formatdate(message.at)
        mail["Message-ID"] = f"<{message.id}.{webhook.id}@{sender.partition('@')[2]}>"
        mail.set_content(f"{text}\n\n{self._settings.public_url}/campaigns/{webhook.campaign}\n")
        host, seconds, trusted = server.hostname or "", self._settings.webhook_seconds, create_default_context()
        with (
            SMTP_SSL(host, server.port or 465, timeout=seconds, context=trusted)
            if server.scheme == "smtps"
            else SMTP(host, server.port or 25, timeout=seconds)
        ) as smtp:
            smtp.ehlo()
            if server.scheme != "smtps" and (smtp.has_extn("starttls") or server.password):
                smtp.starttls(context=trusted)
            if server.password:
                smtp.login(unquote(server.username or ""), unquote(server.password))
            smtp.send_message(mail)
        return Reply(True, "sent")

    async def _send(self, webhook: Webhook, message: Message) -> Reply:
        if webhook.url.startswith(MAIL):
            return await asyncio.to_thread(self._mail, webhook, message)
        url = checked_url(webhook.url.removeprefix(CHAT), self._settings)
        port = url.port or {"https": 443, "http": 80}[url.scheme]
        found = await asyncio.get_running_loop().getaddrinfo(url.host, port, type=1)
        addresses = [str(one[4][0]) for one in found]
        check_addresses(url, addresses, self._settings)
        # chats take what stands between < and > for links, and <!channel> for everybody
        said = {"text": escape(in_words(message), quote=False)} if webhook.told_in_words else body_of(message)
        body = json.dumps(said, separators=(",", ":"), ensure_ascii=False).encode()
        request = self._http.build_request(
            "POST", url.copy_with(host=addresses[0]), content=body,
            headers={**signature_headers(self._secret(webhook.id), message.id, body), "host": url.netloc.decode()},
            extensions={"sni_hostname": url.host, "timeout": httpx.Timeout(self._settings.webhook_seconds).as_dict()},
        )  # fmt: skip
        response = await self._http.send(request, stream=True)
        await response.aclose()  # what it says beside its status is not read
        told = response.headers.get("retry-after", "")
        return Reply(
            response.is_success, f"status {response.status_code}", response.status_code == 410,
            float(told) if told.isdigit() and len(told) < 10 else None,
        )  # fmt: skip


def signature_headers(secret: bytes, id: str, body: bytes, now: float | None = None) -> dict[str, str]:
    """The headers of Standard Webhooks."""
    stamp = str(int(time.time() if now is None else now))
    signature = hmac.digest(secret, f"{id}.{stamp}.".encode() + body, hashlib.sha256)
    return {
        "webhook-id": id, "webhook-timestamp": stamp,
        "webhook-signature": f"v1,{base64.b64encode(signature).decode()}",
    }  # fmt: skip


def checked_address(given: Any, settings: ServiceSettings) -> str:
    """An address that messages may go to: a web address, a chat's, or one of mail if there is a server for it."""
    if not isinstance(given, str) or not given.startswith(MAIL):
        chat = CHAT if isinstance(given, str) and given.startswith(CHAT) else ""
        return chat + str(checked_url(given[len(chat) :] if chat else given, settings))
    if re.fullmatch(MAIL_ADDRESS, given.removeprefix(MAIL)) is None:
        raise InputError(f"{given[:80]!r} is not an address of mail.", "Give e.g. mailto:ann@example.org.")
    if not settings.smtp:
        raise InputError("no mail server is set up.", f"Set {PREFIX}SMTP, e.g. to smtp://mail.example.org:587.")
    return given


def checked_url(given: Any, settings: ServiceSettings) -> httpx.URL:
    """An address that webhooks may go to, as far as can be told without the name service."""
    try:
        if not isinstance(given, str) or not 0 < len(given) <= LONGEST_URL or not given.isprintable():
            raise httpx.InvalidURL("not an address")
        url = httpx.URL(given)
    except httpx.InvalidURL:
        raise InputError(
            f"{str(given)[:80]!r} is not an address.", "Give e.g. https://example.org/hooks/labels."
        ) from None
    if url.scheme not in ("http", "https") or not url.host:
        raise InputError(f"{given[:80]!r} is not a web address.", "Give e.g. https://example.org/hooks/labels.")
    if url.userinfo:
        raise InputError("the address has a user or a password in it.", "Give it without; messages are signed.")
    if url.scheme == "http" and not _is_exception(url, settings):
        raise InputError(f"{url.host!r} would be told without encryption.", f"Give an https address. {_ALLOW}")
    try:
        check_addresses(url, [str(ip_address(url.host))], settings)
    except ValueError:  # a name
        if url.host == "localhost" or url.host.endswith(".localhost"):
            check_addresses(url, ["127.0.0.1"], settings)
    return url


def check_addresses(url: httpx.URL, addresses: Iterable[str], settings: ServiceSettings) -> None:
    """Refuse a host that is on this machine or in a private network, unless the settings name it."""
    if _is_exception(url, settings):
        return
    for address in addresses:
        if any(not one.is_global or one.is_multicast for one in _reached(ip_address(address.partition("%")[0]))):
            raise InputError(f"{url.host!r} is an address of a private network.", _ALLOW)


def _reached(address: IPv4Address | IPv6Address) -> list[IPv4Address | IPv6Address]:
    """An address, and those that a router or a system may take it for: IPv4 within IPv6."""
    found: list[IPv4Address | IPv6Address | None] = [address]
    if isinstance(address, IPv6Address):
        found += [address.sixtofour, *(address.teredo or ())]
        if address.ipv4_mapped is not None:
            found = [address.ipv4_mapped]
        elif any(address in network for network in _HOLD_IPV4):
            found = [IPv4Address(int(address) & 0xFFFFFFFF)]
    return [one for one in found if one is not None]


def _is_exception(url: httpx.URL, settings: ServiceSettings) -> bool:
    """Whether the settings name the host, with its port or without."""
    names = settings.webhook_hosts.split(", ")
    return url.host in names or f"{url.host}:{url.port}" in names


async def send_trial(store: SqlStore, settings: ServiceSettings, webhook: Webhook, message: Message) -> Reply:
    """Send one message with connections of its own."""
    sender = WebhookSender(store, settings)
    try:
        return await sender.send(webhook, message)
    finally:
        await sender.close()


class WebhookWorker:
    """Tells the webhooks of a store."""

    def __init__(self, webhooks: Webhooks, sender: WebhookSender) -> None:
        self._webhooks, self._sender = webhooks, sender
        self._busy: dict[str, asyncio.Task[None]] = {}

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Tell webhooks until the end of the block."""
        work = asyncio.create_task(self._work())
        try:
            yield
        finally:
            work.cancel()
            await asyncio.wait([work], timeout=END_S)

    async def _work(self) -> None:
        try:
            while True:
                await self._guarded(self._begin(), "webhooks could not be looked at")
                await asyncio.sleep(INTERVAL_S)
        finally:
            for task in self._busy.values():
                task.cancel()
            await asyncio.gather(*self._busy.values(), return_exceptions=True)
            await self._sender.close()

    async def _begin(self) -> None:
        for webhook in await asyncio.to_thread(self._webhooks.due):
            if webhook.id not in self._busy and len(self._busy) < MOST_AT_ONCE:
                failed = f"webhook {webhook.id} of {webhook.campaign} could not be told"
                task = asyncio.create_task(self._guarded(self._webhooks.deliver(webhook, self._sender.send), failed))
                self._busy[webhook.id] = task
                task.add_done_callback(lambda _, id=webhook.id: self._busy.pop(id))  # type: ignore[misc]

    async def _guarded(self, work: Coroutine[Any, Any, Any], failed: str) -> None:
        try:
            await work
        except UnavailableError:  # tried again
            pass
        except Exception as error:
            request_log.warning(failed, exc_info=error)
