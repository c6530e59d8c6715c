"""HTML from templates, everything escaped; style sheets and scripts; and protection against other sites' forms."""

from __future__ import annotations

import hashlib
import mimetypes
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from fastapi import FastAPI, Request
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, Response

from nextlabel.errors import NotAllowedError
from nextlabel.service.app_state import app_state

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
    return templates


def render(template: str, **context: Any) -> str:
    """Render a template to text."""
    return replace_surrogates(environment().get_template(template).render(**context))


def replace_surrogates(text: str) -> str:
    """Replace lone surrogates, which JSON allows and UTF-8 does not, by question marks."""
    return text.encode("utf-8", "replace").decode("utf-8")


def page(
    template: str,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    media: bool = False,
    own_policy: Mapping[str, str] | None = None,
    **context: Any,
) -> HTMLResponse:
    """A page; with ``media`` it may show pictures and play sounds from other sites, ``own_policy`` wins over ours."""
    policy = {**POLICY, **(MEDIA if media else {}), **(own_policy or {})}
    safe = {
        "content-security-policy": "; ".join(f"{name} {value}" for name, value in policy.items()),
        "referrer-policy": REFERRER,
    }
    return HTMLResponse(render(template, **context), status, {**safe, **(headers or {})})


class StaticFile(NamedTuple):
    """One file, ready to be sent."""

    data: bytes
    media_type: str
    version: str


@cache
def static_files() -> dict[str, StaticFile]:
    """All files, by their path in the folder."""
    return {path.relative_to(FOLDER).as_posix(): _read(path) for path in sorted(FOLDER.rglob("*")) if path.is_file()}


def static_url(name: str) -> str:
    """The address of a file."""
    return f"{ADDRESS}/{name}?v={static_files()[name].version}"


def mount_static(app: FastAPI) -> None:
    """Serve the files."""
    app.add_api_route(f"{ADDRESS}/{{name:path}}", _serve, methods=["GET", "HEAD"], include_in_schema=False)


async def _serve(name: str, request: Request) -> Response:
    file = static_files().get(name)
    if file is None:
        raise HTTPException(404)
    versioned = request.query_params.get("v") == file.version
    headers = {"cache-control": CACHE_FOREVER if versioned else REVALIDATE, "etag": f'"{file.version}"'}
    if request.headers.get("if-none-match") == headers["etag"]:
        return Response(status_code=304, headers=headers)
    return Response(file.data, headers=headers, media_type=file.media_type)


def _read(path: Path) -> StaticFile:
    data = path.read_bytes()
    kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    return StaticFile(data, kind, hashlib.sha256(data).hexdigest()[:12])


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
