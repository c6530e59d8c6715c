"""What routes need, created once by ``create_app``; and the address that links for workers begin with.

The address that links for workers begin with: the one by which the service is really reached.

That is the setting ``public_url``; without it, the address by which the requester who makes the links has come
(``Host``, and behind a trusted proxy ``X-Forwarded-Host`` and ``X-Forwarded-Proto``). One that only this machine
reaches comes with a warning.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import Depends
from starlette.requests import Request

from nextlabel.application.service import CampaignService
from nextlabel.application.webhooks import Webhooks
from nextlabel.service.access import AccessCache
from nextlabel.service.command_queue import CommandQueue
from nextlabel.service.limits import RequestLimits
from nextlabel.service.links import LinkSigner
from nextlabel.service.metrics import Metrics
from nextlabel.service.middleware import current_prefix
from nextlabel.service.settings import ServiceSettings

_HOST = re.compile(r"[A-Za-z0-9.-]+(?::\d{1,5})?|\[[0-9A-Fa-f:.]+\](?::\d{1,5})?")

ONLY_HERE = (
    "These links work on this machine only. Start the service with --public-url, or open the dashboard by an address "
    "that workers reach."
)


@dataclass(frozen=True, slots=True)
class AppState:
    """The campaign service and what surrounds it in one process."""

    campaign_service: CampaignService
    command_queue: CommandQueue
    settings: ServiceSettings
    access: AccessCache
    links: LinkSigner
    metrics: Metrics
    limits: RequestLimits
    webhooks: Webhooks


def app_state(request: Request) -> AppState:
    """The state of the app that a request came to."""
    state: AppState = request.app.state.nextlabel
    return state


def _service(request: Request) -> CampaignService:
    return app_state(request).campaign_service


#: The campaign service, as routes take it.
Service = Annotated[CampaignService, Depends(_service)]


def link_base(request: Request) -> str:
    """What links begin with that are made in answer to a request."""
    settings = app_state(request).settings
    if settings.public_url:
        return settings.public_url
    host = request.headers.get("host", "")
    if request.client is not None and request.client.port == 0:  # uvicorn names the visitor of a trusted proxy so
        host = request.headers.get("x-forwarded-host", host).partition(",")[0].strip()
    return f"{request.url.scheme}://{host}{current_prefix()}" if _HOST.fullmatch(host) else settings.base_url


def link_warning(base: str) -> str:
    """What to tell whoever makes links that begin so; empty if others reach them."""
    return ONLY_HERE if only_this_machine(base) else ""


def only_this_machine(address: str) -> bool:
    """Whether an address means the machine that it is used on."""
    host = urlsplit(address).hostname or ""
    try:
        found = ip_address(host)
    except ValueError:
        return host in ("", "localhost") or host.endswith(".localhost")
    return found.is_loopback or found.is_unspecified
