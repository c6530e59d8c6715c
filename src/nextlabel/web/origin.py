"""Forms that other sites send in a visitor's name: the cookie stays at home (SameSite), and this looks once more."""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.requests import Request

from nextlabel.errors import NotAllowedError
from nextlabel.service.app_state import app_state


def check_origin(request: Request) -> None:
    """NotAllowedError if the browser says that another site sent this.

    ``Sec-Fetch-Site`` decides where there is one; ``Origin`` is compared with the address that was called and with
    the service's public one. Browsers that send neither are left to SameSite.
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
        raise NotAllowedError("the form was sent by another site.", "Open your link again and answer there.")
