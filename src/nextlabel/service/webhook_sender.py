"""A message is sent to a webhook's address: signed, to addresses that may be called, within a time.

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
import time
from collections.abc import Iterable
from ipaddress import IPv6Address, ip_address
from typing import Any

import httpx

from nextlabel.campaign.ledger import Store
from nextlabel.campaign.webhooks import LONGEST_URL, Message, Reply, Webhook
from nextlabel.campaigns.webhooks import body_of
from nextlabel.errors import InputError
from nextlabel.service.key_file import signing_key
from nextlabel.service.settings import PREFIX, ServiceSettings
from nextlabel.version import __version__

SECRET = "whsec_"
_ALLOW = f"Name the host in {PREFIX}WEBHOOK_HOSTS to allow it."


class WebhookSender:
    """Sends messages, within one event loop; to be closed."""

    def __init__(self, store: Store, settings: ServiceSettings) -> None:
        self._key = signing_key(store, settings.key_file)
        self._settings = settings
        self._client: httpx.AsyncClient | None = None

    @property
    def _http(self) -> httpx.AsyncClient:
        """Made when it is needed: most services have no webhooks."""
        if self._client is None:
            self._client = httpx.AsyncClient(
                timeout=self._settings.webhook_seconds, follow_redirects=False, trust_env=False,
                headers={"user-agent": f"nextlabel/{__version__}", "content-type": "application/json"},
            )  # fmt: skip
        return self._client

    async def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.aclose()

    def secret_of(self, id: str) -> str:
        """The secret of a webhook."""
        return SECRET + base64.b64encode(self._secret(id)).decode()

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

    async def _send(self, webhook: Webhook, message: Message) -> Reply:
        url = checked_url(webhook.url, self._settings)
        port = url.port or {"https": 443, "http": 80}[url.scheme]
        found = await asyncio.get_running_loop().getaddrinfo(url.host, port, type=1)
        addresses = [str(one[4][0]) for one in found]
        check_addresses(url, addresses, self._settings)
        body = json.dumps(body_of(message), separators=(",", ":"), ensure_ascii=False).encode()
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
        found = ip_address(address.partition("%")[0])
        if isinstance(found, IPv6Address) and found.ipv4_mapped is not None:
            found = found.ipv4_mapped
        if not found.is_global or found.is_multicast:
            raise InputError(f"{url.host!r} is an address of a private network.", _ALLOW)


def _is_exception(url: httpx.URL, settings: ServiceSettings) -> bool:
    """Whether the settings name the host, with its port or without."""
    names = settings.webhook_hosts.split(", ")
    return url.host in names or f"{url.host}:{url.port}" in names


async def send_trial(store: Store, settings: ServiceSettings, webhook: Webhook, message: Message) -> Reply:
    """Send one message with connections of its own."""
    sender = WebhookSender(store, settings)
    try:
        return await sender.send(webhook, message)
    finally:
        await sender.close()
