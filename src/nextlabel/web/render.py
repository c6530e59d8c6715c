"""HTML from the templates. Everything is escaped; the security policy lets nothing run but our own script files."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.responses import HTMLResponse

from nextlabel.web.static_files import static_url

TEMPLATES = Path(__file__).parent / "templates"
#: What pages may load; media of tasks come from anywhere.
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
#: Forms of pages without any referrer would say that they come from nowhere; ours go to ourselves.
REFERRER = "same-origin"


@cache
def environment() -> Environment:
    """The templates."""
    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.globals["static"] = static_url
    return made


def rendered(template: str, **context: Any) -> str:
    """A template's text."""
    return replace_surrogates(environment().get_template(template).render(**context))


def replace_surrogates(text: str) -> str:
    """The text with question marks for halves of characters, which JSON can say and UTF-8 cannot."""
    return text.encode("utf-8", "replace").decode("utf-8")


def page(
    template: str, status: int = 200, headers: Mapping[str, str] | None = None, media: bool = False, **context: Any
) -> HTMLResponse:
    """A page; ``media``: it may show pictures and play sounds from other sites."""
    policy = {**POLICY, **MEDIA} if media else POLICY
    safe = {
        "content-security-policy": "; ".join(f"{name} {value}" for name, value in policy.items()),
        "referrer-policy": REFERRER,
    }
    return HTMLResponse(rendered(template, **context), status, {**safe, **(headers or {})})
