"""Report pages: self-contained HTML from the templates beside this module, every text escaped."""

from __future__ import annotations

import base64
import io
from typing import TYPE_CHECKING, Any

from nextlabel.errors import InputError
from nextlabel.version import __version__

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def render_page(template: str, *, title: str, lead: str, command: str, **parts: Any) -> str:
    """The page of ``template`` (without .html); ``command`` is what was typed to make it."""
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError as error:
        raise InputError("a page needs the package jinja2.", "pip install 'nextlabel[figures]'.") from error
    loader = PackageLoader("nextlabel.reporting")
    pages = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, keep_trailing_newline=True)
    page = pages.get_template(f"{template}.html")
    return page.render(title=title, lead=lead, command=command, version=__version__, **parts)


def embedded(figure: Figure) -> str:
    """The figure as the address of an image that is inside the page."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=130)
    return f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode('ascii')}"
