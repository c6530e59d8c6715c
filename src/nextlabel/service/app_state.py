"""What routes need, created once by ``create_app``."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.requests import Request

from nextlabel.campaigns.service import CampaignService
from nextlabel.campaigns.webhooks import Webhooks
from nextlabel.service.access import AccessCache
from nextlabel.service.command_queue import CommandQueue
from nextlabel.service.limits import RequestLimits
from nextlabel.service.links import LinkSigner
from nextlabel.service.metrics import Metrics
from nextlabel.service.settings import ServiceSettings


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
