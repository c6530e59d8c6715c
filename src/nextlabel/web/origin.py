"""Protection against forms that other sites submit in a visitor's name, in addition to SameSite cookies."""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.requests import Request

from nextlabel.errors import NotAllowedError
from nextlabel.service.app_state import app_state


def check_origin(request: Request) -> None:
    """Raise NotAllowedError if the browser says that another site sent the request.

    ``Sec-Fetch-Site`` decides if the browser sends it. Otherwise ``Origin`` is compared with the address of the request
    and with the service's public address. Browsers that send neither header are covered by SameSite alone.
    """
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    if site is not None:
        allowed = site in ("same-origin", "none")
    elif origin is not None:
        public = urlsplit(app_state(request).settings.base_url).netloc
        allowed = urlsplit(origin).netloc in (request.headers.get("host", ""), public) and origin != "null"
    else:
        allowed = True
    if not allowed:
        raise NotAllowedError("the form was sent by another site.", "Open the page again and use the form there.")
