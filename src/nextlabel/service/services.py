"""What every route needs, put together once by ``create_app``."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.requests import Request

from nextlabel.service.links import Links
from nextlabel.service.metrics import Tally
from nextlabel.service.settings import Settings
from nextlabel.service.writer import Writer
from nextlabel.store.certificate import Certificates
from nextlabel.store.office import Office


@dataclass(frozen=True, slots=True)
class Services:
    """The office and its ways in."""

    office: Office
    writer: Writer
    settings: Settings
    links: Links
    tally: Tally
    certificates: Certificates


def services_of(request: Request) -> Services:
    """The services of the app that a request came to."""
    services: Services = request.app.state.services
    return services
