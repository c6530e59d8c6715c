"""HTML from templates, everything escaped; style sheets and scripts; and what all routes of pages have in common."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Coroutine, Mapping
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from fastapi import Request
from fastapi.routing import APIRoute
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.responses import HTMLResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from nextlabel.errors import NotAllowedError
from nextlabel.service.app_state import app_state
from nextlabel.service.middleware import prefixed, request_context
from nextlabel.service.problem_details import problem_response, problem_type
from nextlabel.web.dashboard import formatting
from nextlabel.wording import counted

TEMPLATES = Path(__file__).parent / "templates"

#: What pages may load; a task's media may come from anywhere.
POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "font-src": "'self'",
    "connect-src": "'self'",
    "img-src": "'self'",
    "form-action": "'self'",
    "base-uri": "'none'",
    "frame-ancestors": "'none'",
}
MEDIA = {"img-src": "'self' https: http:", "media-src": "'self' https: http:"}

#: With no referrer at all, browsers send 'Origin: null' with forms, which ``origin`` would refuse.
REFERRER = "same-origin"
FOLDER = Path(__file__).parent / "static"
ADDRESS = "/static"
CACHE_FOREVER, REVALIDATE = "public, max-age=31536000, immutable", "no-cache"


@cache
def environment() -> Environment:
    """The template environment."""
    templates = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    templates.globals["static"] = static_url
    shown = ("percent", "points", "count", "shortly", "duration", "rate", "when", "clock", "stamp", "until", "sentence")
    templates.filters |= {name: getattr(formatting, name) for name in shown} | {"plural": counted}
    return templates


def render(template: str, **context: Any) -> str:
    """Render a template to text."""
    return replace_surrogates(environment().get_template(template).render(**context))


def replace_surrogates(text: str) -> str:
    """Replace lone surrogates, which JSON allows and UTF-8 does not, by question marks."""
    return text.encode("utf-8", "replace").decode("utf-8")


def page(
    template: str,
    status: int | None = None,
    headers: Mapping[str, str] | None = None,
    media: bool = False,
    own_policy: Mapping[str, str] | None = None,
    **context: Any,
) -> HTMLResponse:
    """A page; with ``media`` it may show pictures and play sounds from other sites, ``own_policy`` wins over ours.

    One that tells of a ``problem`` has the status 422, unless another one is given.
    """
    policy = {**POLICY, **(MEDIA if media else {}), **(own_policy or {})}
    safe = {
        "content-security-policy": "; ".join(f"{name} {value}" for name, value in policy.items()),
        "referrer-policy": REFERRER,
    }
    code = status or (422 if context.get("problem") else 200)
    return HTMLResponse(prefixed(render(template, **context)), code, {**safe, **(headers or {})})


class Static(StaticFiles):
    """Style sheets and scripts: kept for ever at the address of their version, asked for again at any other."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        """A file."""
        response = await super().get_response(path, scope)
        is_version = scope["query_string"] == f"v={version_of(path)}".encode()
        response.headers["cache-control"] = CACHE_FOREVER if is_version else REVALIDATE
        return response


@cache
def version_of(name: str) -> str:
    """What changes with the content of a file."""
    return hashlib.sha256((FOLDER / name).read_bytes()).hexdigest()[:12]


def static_url(name: str) -> str:
    """The address of a file."""
    return f"{ADDRESS}/{name}?v={version_of(name)}"


class PageRoute(APIRoute):
    """A route of pages: no other site sends its forms, and errors, but for internal ones, are pages too.

    A script that asks for JSON gets problem details.
    """

    async def before(self, request: Request) -> Response | None:
        """What goes before the handler, or an answer in its place."""
        return None

    async def error_page(self, request: Request, error: Exception, status: int, headers: dict[str, str]) -> Response:
        """The page that tells of an error."""
        raise NotImplementedError

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler, with what goes around it."""
        inner = super().get_route_handler()

        async def handle(request: Request) -> Response:
            try:
                if request.method not in ("GET", "HEAD"):
                    check_origin(request)
                return await self.before(request) or await inner(request)
            except Exception as error:
                status, context = problem_type(error).status, request_context(request)
                if status >= 500 and status != 503:
                    raise
                context.cause = error
                if wants_json(request):
                    return problem_response(error, context.request_id)
                retry = getattr(error, "retry_after", 5 if status == 503 else None)
                headers = {} if retry is None else {"retry-after": str(retry)}
                return await self.error_page(request, error, status, headers)

        return handle


def wants_json(request: Request) -> bool:
    """Whether a page's script asks."""
    return request.headers.get("accept", "").startswith("application/json")


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
