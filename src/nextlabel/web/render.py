"""HTML from templates. Everything is escaped, and the security policy allows no scripts but our own files."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.responses import HTMLResponse

from nextlabel.web.static_files import static_url

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
