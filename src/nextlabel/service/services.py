"""What every route needs, put together once by ``create_app``."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.requests import Request

from nextlabel.campaigns.certificate import Certificates
from nextlabel.campaigns.service import CampaignService
from nextlabel.service.links import Links
from nextlabel.service.metrics import Metrics
from nextlabel.service.settings import Settings
from nextlabel.service.writer import Writer


@dataclass(frozen=True, slots=True)
class Services:
    """The office and its ways in."""

    campaign_service: CampaignService
    writer: Writer
    settings: Settings
    links: Links
    tally: Metrics
    certificates: Certificates


def services_of(request: Request) -> Services:
    """The services of the app that a request came to."""
    services: Services = request.app.state.services
    return services
